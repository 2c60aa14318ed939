"""The engine: another kernel than this host's, confinement, sandboxes, and flags that are not AMD's."""

import re

from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.denials import MOUNT_REFUSED
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    flag,
    opened,
    remedy,
    text,
    told,
    unquoted,
)
from rocmrun.core.diagnosis.words import (
    DENIED,
    DRIVER_OF_ANOTHER_VERSION,
    ENDED_137,
    HYPERVISED,
    NO_GPU,
    NO_NODE,
    NO_NODE_BEFORE,
    NOT_PERMITTED,
    OOM_KILLED,
    SANDBOX,
    TAG_MOVED,
    WSL,
)

_SNAP = any_of(
    text(
        r"/run/snap\.docker|/var/snap/docker|snap\.docker|/snap/(?:bin/)?docker|snap install docker|docker[^\n]{0,30}\bsnap\b|\bsnap\b[^\n]{0,30}docker|^docker +\d\S* +\d+ +\S+/\S+ +canonical"
    ),
    fact(lambda seen: seen.engine and seen.engine.snap),
)
_NO_GPU_THERE = any_of(
    text(rf"{NO_GPU}|rock module is not loaded|not found in modules|driver not initialized"),
    text(r"/dev/(?:kfd|dri)[^\n]{0,80}(?:no such file|not found)"),
    opened("ENOENT|EACCES|EPERM"),
)
_WSL = any_of(
    text(rf"{WSL}|\bdxgk(?:rnl|:)"), anywhere(r"/dev/dxg|librocdxg|libdxcore|dxg_detection")
)
# Engines without CDI take the name of such a device for a path.
_CDI_NAME_AS_PATH = text(r"(?:\bstat|adding custom device) \W?(?:nvidia|amd)\.com/gpu\b")
# Each is said on a host with NVIDIA's GPUs too, when its own part is missing there.
_ASKED_FOR_NVIDIA = all_of(
    text(r"could not find any nv files|insufficient nvidia\.com/gpu"),
    text(r"\bamd(?:gpu)?\b|radeon|instinct|\brocm\b|\bmi\d{2,3}\w?\b|\bgfx\d|no hip gpus"),
)
_PROFILE_NOT_LOADED = text(
    r"cannot enforce apparmor|apparmor spec opts: apparmor profile not found|apparmor profile [^\n]{1,80} (?:specified but not loaded|is not loaded)"
)
_NAMESPACES_CONFINED = all_of(
    text(r"apparmor_restrict_unprivileged_userns\W{1,4}1\b"),
    text(
        rf"(?:uid_?map|newuidmap|newgidmap|unshare|userns|rootlesskit|clone)\b[^\n]{{0,120}}(?:{DENIED}|{NOT_PERMITTED}|fail)"
    ),
)
# BuildKit says the same of a file that COPY does not find, without a reference before it.
_NO_SUCH_REFERENCE = text(
    r"failed to solve: [\w./:@-]{1,200}: [\w./-]{1,200}[:@][\w.:-]{1,200}: not found|resolve source metadata for [\w./:@-]{1,300}: [\w./:@-]{1,300}: not found|manifests/\S{1,120}[^\n]{0,60}\b404\b|tag \S{1,128} not found in repository|no such tag\b|\b(?:registry|image|pull)\b[^\n]{0,60}\btag\b[^\n]{0,40}(?:does not|doesn't) exist|\btag\b[^\n]{0,40}(?:does not|doesn't) exist[^\n]{0,30}\b(?:registry|repository|hub|ghcr)\b|not_found: artifact \S{1,200} not found"
)
_OTHER_ARCHITECTURE = text(
    r"no match for platform in manifest|no image found in (?:manifest list|image index) for architecture"
)
_NODE_DISK_FULL = text(
    r"low on resource: ephemeral-storage|freediskspacefailed|failed to garbage collect required amount of images|disk-?pressure\W{1,4}true|node\.kubernetes\.io/disk-pressure|kubelethasdiskpressure"
)
_ANOTHER_GPU_NOW = text(
    r"\bre-?boot\w*[^\n]{0,60}\b(?:renderd|card)\d+\b[^\n]{0,40}\b(?:other|another|different|wrong) (?:gpu|card)|\b(?:renderd|card)\d+\b[^\n]{0,60}\b(?:other|another|different|wrong) (?:gpu|card)\b[^\n]{0,60}\bre-?boot"
)
_APT_DISK_FULL = text(r"you don't have enough free space in /\S")
_IN_USE = r"address already in use|eaddrinuse|addrinuse|port is already allocated|(?:errno|os error|winerror) (?:98|10048)\b|errno 48\b[^\n]{0,60}\b(?:bind|address)|(?<![a-z])ports?\b[^\n]{0,30}(?:already )?(?:in use|taken|occupied)|only one usage of each socket|:\d{2,5}\b[^\n]{0,20}already allocated|already (?:listens?|listening|bound) (?:on|to) (?:port|\S{0,40}:\d)|didn't have free ports for the requested"
_LOGIN_HELPED = all_of(
    text(r"denied|unauthori[sz]ed|forbidden|\b40[13]\b|\bpull"),
    remedy(r"\b(?:docker|podman|nerdctl|buildah|skopeo|oras|crane) login\b|image ?pull ?secret"),
)
_CONTEXT_HELPED = all_of(
    any_of(_NO_GPU_THERE, text(r"/dev/kfd")), remedy(r"docker context use default")
)
_WITHOUT_SNAP_HELPED = all_of(
    any_of(_NO_GPU_THERE, text(r"no such file")),
    remedy(r"\bsnap remove docker|\bremov\w*[^\n]{0,20}\bsnap\b|\bsnap\b[^\n]{0,30}\bremoved"),
)
_WITHOUT_SANDBOX_HELPED = all_of(
    _NO_GPU_THERE, remedy(rf"{SANDBOX}|runtime_?class|--runtime[= ](?:runc|crun)\b")
)
_PORT_HELPED = all_of(
    text(r"\b(?:exits?|exited|starts?|started|bind|listen\w*|ports?)\b"),
    remedy(r"\b(?:stopp|kill)\w*[^\n]{0,40}\bport\b|\b(?:another|different|other|free) port\b"),
)
_PORT_UNBOUND = text(
    r"cannot find empty port in range|couldn't bind http server socket|ports are not available: exposing port"
)
# A snap sees neither hidden directories of a home nor most others.
_NOT_SEEN_BY_SNAP = all_of(
    text(r"\bsnap\b"),
    text(r"unable to prepare context|docker(?: build|file|-compose)?\b"),
    text(
        r"(?:path|file|directory|dockerfile)\b[^\n]{0,80}\b(?:not found|does not exist)|no such file"
    ),
    absent(text(r"microk8s|\blxd\b|multipass")),
)
_REGISTRY = r"(?:docker ?hub|\bregistry|\bghcr\b|\bquay\b|\bgcr\b|\becr\b|\bharbor\b)"
_TAG_ABSENT = text(
    rf"{_REGISTRY}[^\n]{{0,60}}\b404\b|\b404\b[^\n]{{0,80}}{_REGISTRY}|\b(?:image|tags?)\b[^\n]{{0,80}}\b(?:does not exist|doesn't exist|do not exist|(?:was|were) never (?:published|pushed))\b[^\n]{{0,40}}{_REGISTRY}"
)
# What docker help says of --gpus is NVIDIA's alone.
_GPUS_OF_ANOTHER = text(
    r"--gpus\b[^\n]{0,60}(?:\bfail\w*|\bdo(?:es)?(?: not|n't) work|\bno effect|\bignored|\bnot (?:work|supported))[^\n]{0,40}\b(?:amd|radeon|intel)\b|\b(?:amd|radeon)\b[^\n]{0,60}--gpus\b[^\n]{0,40}(?:\bfail\w*|\bno effect|\bignored|(?:not|n't) (?:work|supported))"
)
# Nobody should repeat it, and it tells what refused.
_WITHOUT_APPARMOR = unquoted(
    any_of(
        text(
            r"apparmor=unconfined\W{1,4}(?:it )?(?:works|helps|ok\b|fixes|starts|runs|yes)|^(?![^\n]{0,300}seccomp=)[^\n]{0,200}\b(?:works|starts|runs) [^\n]{0,30}apparmor=unconfined"
        ),
        all_of(remedy(r"apparmor=unconfined"), absent(remedy(r"seccomp=unconfined"))),
    )
)


def _fixed_number(seen: Evidence) -> Quotes | None:
    """Return what says that a program takes one render node by number, and that another one is there."""
    numbers = {
        match[1]
        for body in (seen.log, seen.told)
        for match, _ in body.matches(r"\brenderd(\d{1,6})\b")
    }
    if len(numbers) < 2:
        return None
    return (
        seen.find(
            r"\b(?:takes|wants|expects|looks for|tries|opens|uses) \S{0,10}/?renderd\d+|hard-?coded[^\n]{0,40}renderd\d+|renderd\d+ (?:became|is now|was renamed|moved|changed)\b|(?:became|is now|moved to|changed to) \S{0,10}renderd\d+|renderd\d+[^\n]{0,40}hard-?coded"
        )
        or None
    )


def _port_in_use(seen: Evidence) -> Quotes | None:
    """Return the lines that tell of a port in use; a program that goes on to the next one has none to mend."""
    lines = [
        line
        for body in (seen.log, seen.told)
        for _, line in body.matches(_IN_USE)
        if not re.search(r"\btrying\b", line.lower)
    ]
    return tuple(dict.fromkeys(lines))[:3] or None


RULES = (
    Rule(
        kind="docker-desktop-context",
        symptom="kfd absent",
        unless=any_of(text(WSL), _SNAP),
        needs=any_of(_CONTEXT_HELPED, text(HYPERVISED), told(r"lsmod|docker_context"), text(r"sudo docker"), fact(lambda seen: seen.engine and seen.engine.desktop)),
        signs=(
            Sign(5, "with the context of this host's engine it works", _CONTEXT_HELPED),
            Sign(5, "the engine is one that runs in a virtual machine", text(HYPERVISED)),
            Sign(2, "the GPU is not seen there", _NO_GPU_THERE),
            Sign(3, "with sudo another engine answers, and works", anywhere(r"sudo (?:docker )?(?:works|uses|docker)|docker_context|docker context")),
            Sign(6, "the host has amdgpu loaded, and the engine's side has not", all_of(told(r"lsmod\W{1,4}+(?!none|empty)(?:(?!\bno[tn]?\b|\bnothing\b)[^\n]){0,60}?(?:amdgpu|loaded)|host[\w.]*: [^\n]{0,40}amdgpu[^\n]{0,20}loaded"), text(r"not loaded|no such file|not found|not initialized"))),
            Sign(-4, "a process was killed, which is no matter of a GPU", text(rf"{ENDED_137}|{OOM_KILLED}")),
            Sign(7, "the engine is Docker Desktop", fact(lambda seen: seen.engine and seen.engine.desktop)),
        ),
    ),
    Rule(
        kind="snap-docker",
        symptom="kfd absent",
        needs=any_of(_SNAP, _NOT_SEEN_BY_SNAP, _WITHOUT_SNAP_HELPED),
        signs=(
            Sign(4, "a path is not found, and a snap is spoken of, which sees few directories", all_of(_NOT_SEEN_BY_SNAP, absent(_SNAP))),
            Sign(6, "with an engine that is no snap it works", _WITHOUT_SNAP_HELPED),
            Sign(7, "the engine is a snap package, which has its own /dev and /tmp", _SNAP),
            Sign(1, "a path that exists is not found", text(r"no such file|not found|libdxcore|unauthorized")),
        ),
    ),
    Rule(
        kind="wsl-dxg",
        symptom="kfd absent",
        needs=any_of(_WSL, fact(lambda seen: seen.host and seen.host.wsl)),
        signs=(
            Sign(5, "this is Windows or WSL, where GPUs are reached through /dev/dxg", _WSL),
            Sign(2, "no GPU is found", _NO_GPU_THERE),
            Sign(7, "this host is WSL", fact(lambda seen: seen.host and seen.host.wsl)),
            Sign(-5, "the engine is a snap package", _SNAP),
        ),
    ),
    Rule(
        kind="sandbox-runtime",
        needs=any_of(_WITHOUT_SANDBOX_HELPED, text(rf"{SANDBOX}|gofer"), fact(lambda seen: seen.engine and (seen.engine.default_runtime or "").startswith(("runsc", "kata", "sysbox")))),
        signs=(
            Sign(6, "the container runs in a sandbox that has no KFD of this host", text(SANDBOX)),
            Sign(5, "without the sandbox it works", _WITHOUT_SANDBOX_HELPED),
            Sign(-5, "what is refused is a device that the sandbox itself wants of the host", text(rf"/dev/(?:vhost-\w+|kvm|net/tun)\b[^\n]{{0,60}}(?:{NOT_PERMITTED}|{DENIED})")),
            Sign(1, "no GPU is found", _NO_GPU_THERE),
            Sign(7, "the engine's default runtime is a sandbox", fact(lambda seen: seen.engine and (seen.engine.default_runtime or "").startswith(("runsc", "kata", "sysbox")))),
        ),
    ),
    Rule(
        kind="wrong-gpus-flag",
        needs=any_of(_CDI_NAME_AS_PATH, _ASKED_FOR_NVIDIA, text(r"could not select device driver|no runtime for|runtimeclass|cdi|nvidia-container|unknown or invalid runtime name|unknown runtime specified|unknown flag: --gpus|--gpus"), flag(r"^--gpus|--runtime=nvidia")),
        signs=(
            Sign(7, "the engine has no device driver by that name: AMD GPUs are passed as nodes or by CDI", text(r"could not select device driver")),
            Sign(7, "the engine knows no such CDI device", text(r"amd cdi spec not found|unresolvable cdi devices?|cdi device injection failed|failed to inject (?:cdi )?devices|unknown cdi|cdi[^\n]{0,40}(?:not found|not enabled|unresolvable|disabled)|failed to discover gpu vendor from cdi")),
            Sign(7, "the engine takes the name of a CDI device for a path: it has no CDI", _CDI_NAME_AS_PATH),
            Sign(5, "GPUs of NVIDIA are asked for, and this one is AMD's", _ASKED_FOR_NVIDIA),
            Sign(5, "NVIDIA's runtime is asked for", text(r"nvidia-container-(?:cli|runtime)[^\n]{0,100}(?:error|fail|not found)|unknown (?:or invalid )?runtime (?:name|specified)[^\n]{0,20}(?:nvidia|amd)|unknown flag: --gpus|no runtime for \W{1,2}(?:nvidia|amd)\W{1,2} ?is configured|runtimeclass \W{1,2}(?:nvidia|amd)\W{1,2} ?not found")),
            Sign(5, "--gpus is said to fail with a GPU of another vendor than NVIDIA", _GPUS_OF_ANOTHER),
            Sign(-5, "the container runs in a sandbox, which NVIDIA's hook cannot enter either", text(SANDBOX)),
            Sign(-3, "it was reached, and driver and libraries are of two versions", text(DRIVER_OF_ANOTHER_VERSION)),
            Sign(4, "no GPU is seen with it", all_of(flag(r"^--gpus|--runtime=nvidia"), absent(flag(r"--device")), text(NO_GPU))),
            Sign(3, "--gpus is given, and no AMD node", all_of(flag(r"^--gpus|--runtime=nvidia"), absent(flag(r"--device")))),
        ),
    ),
    Rule(
        kind="apparmor-denied",
        needs=any_of(_WITHOUT_APPARMOR, text(r"apparmor|\b(?:docker|containers|crio|cri-containerd\.apparmor\.d)-default\b")),
        signs=(
            Sign(7, "AppArmor refused", text(r"apparmor\W{1,3}denied|apparmor[^\n]{0,120}(?:could not be loaded|denied|unable to|not permitted)|apparmor_parser[^\n]{0,120}(?:denied|unable|error)|profile=\W?docker-default[^\n]{0,120}denied|^denied\s+\S*-default\s+\w+\b|apparmor failed to apply")),
            Sign(7, "the engine's profile is said to refuse it", text(r"\b(?:docker|containers|crio|cri-containerd\.apparmor\.d)-default\b[^\n]{0,80}\b(?:den(?:y|ies)|refuses?|blocks?|forbids?)\b")),
            Sign(4, "a mount is refused with EACCES, which no want of a capability gives", MOUNT_REFUSED),
            Sign(7, "a profile of AppArmor is asked for that this host has not loaded", _PROFILE_NOT_LOADED),
            Sign(6, "AppArmor keeps user namespaces from whoever is not root", _NAMESPACES_CONFINED),
            Sign(5, "without AppArmor's profile it works", _WITHOUT_APPARMOR),
            Sign(1, "the engine itself is confined", text(r"confined|lxc|nesting")),
        ),
    ),
    Rule(
        kind="render-node-renumbered",
        symptom="node absent",
        needs=any_of(text(rf"/dev/dri/(?:renderd|card)\d+[^\n]{{0,80}}(?:no such file|not found|does not exist|doesn't exist|is not a (?:character )?device)|no such file or directory\W{{1,4}}/dev/dri/(?:renderd|card)\d|{NO_NODE_BEFORE}/dev/dri/(?:renderd|card)\d"), _fixed_number, _ANOTHER_GPU_NOW),
        signs=(
            Sign(6, "the engine does not find this render node: numbers change from boot to boot", text(rf"{NO_NODE}[^\n]{{0,160}}/dev/dri/(?:renderd|card)\d+[^\n]{{0,80}}(?:no such file|not found|does not exist|doesn't exist|is not a (?:character )?device)|{NO_NODE_BEFORE}/dev/dri/(?:renderd|card)\d")),
            Sign(4, "a render node by a fixed number is missing", text(r"/dev/dri/(?:renderd|card)\d+[^\n]{0,80}(?:no such file|not found|does not exist)|no such file or directory\W{1,4}/dev/dri/(?:renderd|card)\d")),
            Sign(5, "the same number is another GPU since the last boot", _ANOTHER_GPU_NOW),
            Sign(4, "a program takes a fixed number, and only another one is there", _fixed_number),
            Sign(2, "another render node is there", told(r"renderd\d+")),
        ),
    ),
    Rule(
        kind="image-manifest-unknown",
        needs=any_of(text(r"manifest|not found"), _NO_SUCH_REFERENCE, _OTHER_ARCHITECTURE, _TAG_ABSENT),
        signs=(
            Sign(7, "the registry has no such tag or digest", text(r"manifest unknown|manifest for [^\n]{1,200} not found|manifest_unknown|manifest [^\n]{0,100}not found|failed to resolve reference [^\n]{1,200}: not found|name unknown|no matching manifest")),
            Sign(7, "the registry answers that there is no such reference", _NO_SUCH_REFERENCE),
            Sign(6, "the registry is said not to have it", _TAG_ABSENT),
            Sign(7, "the image is not there for this processor", _OTHER_ARCHITECTURE),
            Sign(-5, "the tag is there, and names another image than before", text(TAG_MOVED)),
        ),
    ),
    Rule(
        kind="image-pull-auth",
        needs=any_of(_LOGIN_HELPED, text(r"image ?pull ?secret|429|unauthorized|denied|authentication|credentials|forbidden|toomanyrequests|pull rate limit")),
        signs=(
            Sign(7, "the registry wants a login", text(r"unauthorized: |unauthorized[^\n]{0,60}authentication|authentication required|pull access denied|requested access to the resource is denied|no basic auth credentials|insufficient_scope|failed to authorize|error getting credentials|denied: denied|imagepullbackoff[^\n]{0,120}(?:unauthorized|denied|forbidden)|403 forbidden[^\n]{0,60}(?:registry|/v2/)|/v2/[^\n]{0,120}(?:401|403|: denied|: unauthorized)|(?:oauth|anonymous) token: unexpected status[^\n]{0,300}\b40[13]\b")),
            Sign(5, "a login mended it", _LOGIN_HELPED),
            Sign(4, "the secret with the login is not there", text(r"failedtoretrieveimagepullsecret|unable to retrieve some image pull secrets")),
            Sign(6, "the registry has had too many requests", text(r"toomanyrequests|pull rate limit|(?:/v2/|manifest|blob|oauth token|registry)[^\n]{0,300}\b429 too many requests")),
        ),
    ),
    Rule(
        kind="image-disk-full",
        symptom="no space",
        needs=any_of(text(r"no space left on device|\benospc\b|disk quota exceeded"), _NODE_DISK_FULL, _APT_DISK_FULL),
        signs=(
            Sign(3, "a disk is full", any_of(text(r"no space left on device|\benospc\b|disk quota exceeded"), _APT_DISK_FULL)),
            Sign(6, "the node's disk for images and containers is full", _NODE_DISK_FULL),
            Sign(-4, "it is the kernel's room for keys, and no disk", text(r"session keyring|attr/keycreate")),
            Sign(-3, "a file system in memory is named", text(r"\btmpfs\b")),
            Sign(4, "it is the engine's, while an image is unpacked", text(r"failed to register layer|applylayer|error pulling image|failed to (?:extract|copy|pull|unpack)|/var/lib/(?:docker|containerd|containers)|overlay2?|writing blob|storing (?:blob|layer)|\blayer\b[^\n]{0,120}no space|write /opt/rocm|docker build|buildkit|no space left[^\n]{0,80}(?:docker|containerd|snapshot)|tmp/getimageblob|/build-temp|mksquashfs|while (?:making|performing|building)[^\n]{0,20} (?:image|build)|^step \d+/\d+ ?:|unpack(?:ing)? (?:entry|to regular file)")),
            Sign(-6, "it is shared memory", text(r"posix_fallocate|/dev/shm|shared memory|nccl|\bshm\b")),
            Sign(-3, "it is a cache", text(r"(?:\.cache|\.triton|/tmp/|tmpfs|huggingface|miopen)[^\n]{0,120}no space|no space[^\n]{0,120}(?:\.cache|\.triton|tmpfs|huggingface|miopen/)")),
        ),
    ),
    Rule(
        kind="port-taken",
        needs=any_of(_port_in_use, _PORT_UNBOUND, _PORT_HELPED),
        signs=(
            Sign(7, "another process has the port", _port_in_use),
            Sign(5, "another port, or another program's end, mended it", _PORT_HELPED),
            Sign(5, "a port cannot be bound", all_of(_PORT_UNBOUND, absent(_port_in_use))),
        ),
    ),
)  # fmt: skip
