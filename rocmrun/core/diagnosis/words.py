"""What programs print for the same thing, as patterns (lower case) that rules share."""

DENIED = (
    r"(?:permission denied|permissionerrors?\b(?!: \[)|permission errors?\b|\beacces\b|errno 13\b)"
)
NOT_PERMITTED = r"(?:operation not permitted|\beperm\b|errno ?[=:]? ?1\b)"
NO_FILE = (
    r"(?:no such file|\benoent\b|errno 2\b|cannot open shared object|not found|does not exist)"
)
READ_ONLY = r"(?:read-only file ?system|\berofs\b|errno 30\b)"
NO_SPACE = r"(?:no space left on device|\benospc\b|errno 28\b|not enough (?:free )?disk space|too much (?:disk )?space\b)"
AGAIN = r"(?:resource temporarily unavailable|\beagain\b|errno ?[=:]? ?11\b)"
NO_GPU = (
    r"no (?:hip|cuda|rocm|amd) (?:gpus?|devices?)(?: are| is)? (?:available|found|detected)|no (?:usable |compatible |supported )?gpus? (?:was |were )?(?:detected|found|available)"
    r"|hiperrornodevice|no rocm-capable device|no hip-?(?:capable )?devices?|no devices found|is_available\(\)\W{0,6}(?:is |returns |= ?|-> ?)?false|is_available:? ?false|^false$"
    r"|(?:failed|unable) to detect (?:a |any |the )?gpus?(?=\W*$|[.,;!]| (?:in|on|inside|device)\b)|cuda_available:? ?false|gpu active: no|device_count\(\)?\W{0,6}0\b|0 rocm devices|found 0 (?:rocm|hip|gpu)|no agents? of type gpu|hsa_status_error_not_initialized|no gpu agents?"
    r"|\b(?:finds?|found|sees?|detects?|detected) no (?:amd |rocm |hip )?gpus?\b|\bno gpus? (?:is |are )?(?:visible|seen|usable)\b|\bgpus? (?:is |are |was )?not (?:detected|visible|recogni[sz]ed|seen)\b"
    r"|\bhip_error_nodevice\b|\bno accelerator \([^\n)]{1,80}\)[^\n]{0,30} is available|failed to infer device type|torch is not able to use gpu|no compatible gpus were discovered"
    r"|no visible gpu devices|no supported devices found for platform rocm"
)
# A signal 9 as a code: 137 alone is a line, a count, a process.
ENDED_137 = r"(?:(?:\b|_)(?:exit\w*|code|status|return\w*|rc|terminated|killed)[ :=\"'(\[]{0,4}(?:\w+[ :=\"'(]{1,3}){0,2}137\b|\(137\)|\b137 ?\()"
# No kill, where an engine says that there was none.
OOM_KILLED = r"oomkilled(?!\W{1,5}(?:false|no\b))"
CRASH = r"segmentation fault|sigsegv|memory access fault|core dumped|signal 11\b|exit code 139|exited with 139"
FAULT = (
    r"memory access fault|page not present|hsa_status_error_memory_fault|memory_aperture_violation"
)
# What an engine, a kubelet or a sandbox prints of a path of its own side, before the path and after it.
NO_NODE = r"(?:mountvolume\.setup failed|hostpath type check failed|missing source path|mount source|failed to mount|can't find source path|the configured device|gathering device information|adding custom device|adding device|\bl?stat\b|creating device node|failed to (?:generate|add|apply|create|start|stat)|is not a device|error response|not a device node)"
NO_NODE_BEFORE = r"(?:bind (?:mount )?source path does not exist|required device path doesn't exist|no such file or directory - failed to mount)[^\n]{0,100}?"
# Of a node that a command passes.
PASSED_IS_MISSING = r"/dev/kfd (?:is |was )(?:missing|not there|absent)\b"
# Where compiled kernels and downloads are kept.
CACHE = r"(?:(?<!ld\.so)(?<!ld\.so\.)\.?cache\b|caches?/|\.triton|triton/|miopen|inductor|\.config/|numba|matplotlib|mplconfig|huggingface|hf_home|hf_hub|torch_extensions|\.local/share(?!/(?:uv|pipx|mise|pyenv)/)|\.vllm|vllm_cache|xdg_cache|\.inductor|hub/models)"
HYPERVISED = r"docker desktop|desktop-linux|docker-desktop|linuxkit|rancher[ -]desktop|\bcolima\b|podman[ -]machine|orbstack|\blima-vm\b|/\.docker/desktop/docker\.sock|/\.rd/docker\.sock|^(?:host|os|platform|system)[\w.]*: [^\n]{0,20}\b(?:mac ?os|darwin)\b|\b[a-z]:\\[^\n>]{0,200}> ?docker\b"
# gVisor tells every program this date as that of its kernel.
SANDBOX = r"\bsun jan 10 15:06:54 pst 2016\b|\b(?:lib)?krun\b|\brunsc\b|gvisor|\bkata\b|kata-|sysbox|firecracker"
TAG_MOVED = r"digest[^\n]{0,60}(?:changed|differs?|mismatch|moved|another)|tag[^\n]{0,60}(?:moved|re-?pushed|overwritten|points to|changed|replaced|(?:names?|is|has) another)|same tag[^\n]{0,60}(?:different|other|another)|\btag\b[^\n]{0,20}\b(?:same|unchanged|identical)\b[^\n]{0,120}\b(?:differs?|different|changed|another)|different (?:image|digest)|\b(?:push|publish|re-?build|updat)\w*\b[^\n]{0,40}\b(?:to|over|onto|under|of)\b[^\n]{0,20}\b(?:old|older|existing|same|published|released)\b[^\n]{0,30}\btags?\b"
DRIVER_OF_ANOTHER_VERSION = (
    r"driver/library version mismatch|api mismatch: the client has (?:the )?version"
)
EVERY_RIGHT_WORKS = (
    r"privileged\W{1,4}(?:works|ok\b|yes|true)|(?:works|succeeds)[^\n]{0,20}privileged"
)
WSL = r"\bwsl ?2?\b(?!-)|microsoft-standard|/dev/dxg|libdxcore|librocdxg|dxg_detection|\bwindows (?:10|11|server|host)|(?:host|os|platform|system)[\w.]*: windows|hip sdk for windows"
ROOTLESS = r"\bhostusers\W{1,3}false|lxc\.idmap|--userns[= ](?:auto|nomap)|^unprivileged: (?:1|true|yes)\b|\brootless\b|keep-groups|keep-id|\bsubgid|\bsubuid|newgidmap|userns-remap|user namespace"
APU = r"gfx(?:902|909|90c|1013|1033|1035|1036|1037|1103|115[0-3])"
ATTENTION = r"flash[-_ ]?attn|flash[-_ ]?attention|flash_attn_2_cuda|fmha_(?:fwd|bwd)|aotriton|scaled_dot_product|mem(?:ory)?[-_ ]?efficient[-_ ]attention|sage[-_ ]?attention|\bsdpa?\b|multi-?head-?attention|xformers|cudnn attention"
