"""Run time: memory of the GPU, hangs, hardware errors, slowness, and what only looks like a failure."""

from rocmrun.core.diagnosis.amounts import request_fits
from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Look, Rule, Sign
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
    variable,
)
from rocmrun.core.diagnosis.words import ENDED_137, NO_GPU, OOM_KILLED

_HARDWARE = text(
    r"uncorrectable|ecc_?not_?correctable|reason ?: ?ecc\b|\bras\b(?!: correctable)[^\n]{0,60}(?:error|fatal|poison|ue\b|count|bad page|threshold)|(?<![0-9a-f])ecc(?![0-9a-f])[^\n]{0,30}(?:error|uncorrectable|double)|double[- ]bit|cper_severity|\bcper\b|aca entry|aca bank|\[hardware error\](?!: (?:tsc |processor |cpu \d+: machine check|machine check events))|poison (?:is )?(?:consumed|consumption|detected|creation)|erre\w*event_\w+|athub_interrupt|(?<!no )bad[-_ ]pages?\b(?!\W{1,3}(?:0\b|none|no\b))|mca_\w+|gpu_health\W{1,3}0"
)
# A bus or a memory mended it by itself; firmware tells that of other devices too.
_CORRECTED = all_of(
    text(r"severity: corrected|corrected by h/w"),
    absent(text(r"uncorrect|\bfatal\b|severity: (?!corrected)|poison|athub")),
)
_FIRST = r"(?:first|1st) (?:run|iteration|convolution|step|image|inference|epoch|decode|request|batch|forward|call|init\w{0,12})"
_RESET = text(
    r"gpu reset|ring [\w.]{1,40} timeout|fence wait (?:loop )?time ?(?:d )?out|qcm fence|unrecoverable state|unsuccessful queues? preemption|gpu hang|hw exception|mode[12] reset|device lost|hiperrorlaunchtimeout|evict[^\n]{0,30}queue[^\n]{0,20}fail|queue preemption|(?:hws|mes|cp) (?:hang|failed|hung)|failed to (?:reset|wait)|mes(?: ?\(\d\))? failed to (?:response|respond)|mes ring buffer is full|failed to evict queue|asic reset failed|failed to initialize parser -125|ring [\w.]{1,20} test failed|launch timed out and was terminated|soft reset|wedged|vram is lost"
    r"|(?:error)?device_?lost|error_device_lost|the context is lost|guilty of a (?:hard|soft) recovery|not done with your previous command|waiting for fences timed out"
)
# By the allocators of HIP, of frameworks, of servers and of the driver.
_GPU_MEMORY_FULL = text(
    r"(?:hip|cuda|rocm)\b[^\n]{0,40}\Wout of memory|unable to allocate[^\n]{0,40}(?:rocm|vram|buffer)|(?<!java\.lang\.)(?<!ray\.exceptions\.)outofmemoryerror|hiperroroutofmemory|hiperrormemoryallocation|below (?:the )?required gpu memory|less than desired gpu memory|not enough (?:free )?(?:gpu |device )?(?:video )?(?:memory|vram)(?! to write)|no available memory for the cache blocks|insufficient (?:free )?(?:gpu memory|vram)|failed to allocate[^\n]{0,80}(?:rocm|vram|device|buffer|hip|gpu|kv)|tried to allocate [\d.]+ [mgk]i?b|cudamalloc failed|rocm_?malloc|hipmalloc[^\n]{0,40}(?:fail|out)|out of device memory|resource_?exhausted(?!: process)(?![^\n]{0,300}(?:device:cpu|allocator cpu))|(?:gpu|vram|device)[^\n]{0,40}out of memory"
    r"|allocator \(gpu_\d+_bfc\) ran out of memory|error_?out_?of_?device_?memory|device memory allocation of size|larger than the available kv cache memory|number of tokens that can be stored in kv cache|not enough memory\b[^\n]{0,40}--mem-fraction-static|\b(?:prefill|decode) out of memory|not enough memory to handle \d+ (?:prefill )?tokens"
    r"|available free mem : \d{1,3} mb|not enough memory for command submission|memory not available to allocate buffer|params backend buffer failed|\[ttm\] (?:buffer eviction failed|failed to find memory space)|failed to pin framebuffer with error -12|blas_status_alloc_failed|failed to (?:cuda|hip) calloc|out of gpu (?:and shared host )?memory|not enough (?:space for (?:the )?)?kv[- ]?cache"
)
# The scheduler has none to give: others hold them, or no plugin offers any.
_NONE_TO_GIVE = text(
    r"insufficient (?:amd|nvidia|gpu)\.\w{1,10}/\w{0,10}gpu|number of devices unavailable for (?:amd|nvidia)\.com/gpu"
)
_ON_CPU = text(
    r"(?:running|runs?|inference|falling|falls|fell|(?:will|does|must|may) fall|fallback|defaulting|using|switch\w*)[^\n]{0,30}(?:on|to|back to|back on) (?:the )?cpu\b|cpu fallback|offloaded 0/|library=cpu|compute\W{1,4}cpu|using cpu\b|100% cpu|cpu_avx|device(?:_type|_name)?\W{1,4}cpu\b|no compatible gpus|gpu usage[^\n]{0,10}\b0 ?%"
    r"|no usable gpu found|gpu-layers option will be ignored|(?:rocm|cuda|migraphx)executionprovider' is not in available provider|fp16 is not supported on cpu|device set to use cpu|device_type of 'cuda', but cuda is not available|no accelerator is found|gpu available: (?:false|no)\b|\bonly (?:uses |on |runs on )?(?:the )?cpu\b|(?:layers|tensors|model)[^\n]{0,20}\b(?:are|is|stays?|all) on (?:the )?cpu\b|layers on (?:the )?cpu\b|gpu is (?:not|never) used|total vram\W{1,4}0 b\b|changed from gpu to cpu"
)


def _noise(kind: str) -> Look:
    def look(seen: Evidence) -> Quotes | None:
        return seen.noise.get(kind)

    return look


# Whose process it is that holds the GPU's memory: one that should have ended.
_LEFT_OVER = all_of(
    text(r"vram|gpu memory|memory (?:of|on) (?:the )?(?:gpu|device)|free memory on device"),
    anywhere(
        r"\b(?:zombie|orphan(?:ed)?|stale|left-?over) (?:\w+ )?(?:process|server|worker|engine)|\b(?:process|server|worker|engine)s?\b[^\n]{0,40}\b(?:still (?:running|alive|there)|never (?:exits?|ends?)|left behind|keeps? running)\b"
    ),
)

RULES = (
    Rule(
        kind="oom-vram",
        symptom="memory",
        needs=any_of(_GPU_MEMORY_FULL, text(r"out ?of ?memory|below required gpu memory|free gpu memory|gpu memory|vram|failed to allocate|memory allocation|hsa_status_error_out_of_resources|available memory|unable to allocate")),
        unless=variable("TMPDIR", r"/dev/shm"),
        signs=(
            Sign(6, "memory of the GPU is used up", _GPU_MEMORY_FULL),
            Sign(2, "the card's memory is shown as full", text(r"\bvram\W{0,3}%?\W{0,3}(?:9[5-9]|100)\b|memory of the card is full")),
            Sign(1, "another process or a carve-out holds it", text(r"\bpid\b\W{0,3}\d+\W[^\n]{0,60}\b(?:uses|holds|has|owns)\b|\b(?:used|held|occupied) by[^\n]{0,60}\bpid\b|process \d+ has|carve|bios_vram|\bpinned\b|\bgtt\b")),
            Sign(-3, "a process of an earlier run holds it still", _LEFT_OVER),
            Sign(-6, "more is free than what was asked for", request_fits),
            Sign(-6, "the kernel killed a process at a limit of main memory", text(rf"{OOM_KILLED}|memory cgroup|killed process|{ENDED_137}")),
        ),
    ),
    Rule(
        kind="gpu-busy",
        symptom="memory",
        needs=any_of(_NONE_TO_GIVE, _LEFT_OVER, text(r"busy|in use|already (?:used|held|in use|acquired)|gpu-busy|exclusive|occupied|no free gpu|no idle gpu|\b(?:another|other) (?:container|process|job|user|workload)")),
        signs=(
            Sign(5, "the cluster has no free GPU for it", _NONE_TO_GIVE),
            Sign(6, "another run or process holds the GPU", text(r"gpu[^\n]{0,60}(?:is |are )?(?:busy(?!\W{0,4}\d)|in use by|held by|already (?:in use|used|acquired))|device or resource busy[^\n]{0,40}(?:kfd|dri|gpu)|/dev/(?:kfd|dri\S*)[^\n]{0,40}(?:device or resource busy|ebusy)|hiperrordevicealready\w+|hiperrorcontextalreadyinuse|all cuda-capable devices are busy|devices? (?:is|are) busy or unavailable|error\[gpu-busy\]|compute mode[^\n]{0,30}exclusive|no free gpus?\b|no idle gpu|(?:amdsmi|rsmi)_status_busy|gpus? (?:may be|is|are) occupied by")),
            Sign(5, "a process of an earlier run holds it still", _LEFT_OVER),
            Sign(5, "somebody tells that another has it", text(r"\b(?:another|other) (?:container|process|job|user|workload)s? (?:already )?(?:uses?|holds?|occup\w+|has|have) (?:the |all )?gpus?\b")),
            Sign(-3, "its memory is what is lacking", text(r"out of memory")),
            Sign(-5, "it is a port", text(r"address already in use|port is already")),
        ),
        settles=absent(_NONE_TO_GIVE),
        undecided="whether others hold the GPUs or no device plugin offers them: `kubectl describe node`, under Allocatable and Allocated",
    ),
    Rule(
        kind="ras-ecc",
        symptom="hardware",
        needs=_HARDWARE,
        unless=_CORRECTED,
        signs=(
            Sign(7, "the GPU reported a hardware error", _HARDWARE),
            Sign(1, "it hung or was reset", _RESET),
            Sign(-2, "a driver of that release raised false events", anywhere(r"false|roll ?back|regress")),
        ),
    ),
    Rule(
        kind="gpu-hang-reset",
        symptom="hardware",
        needs=_RESET,
        signs=(
            Sign(5, "the driver found the GPU hung, or reset it", _RESET),
            Sign(1, "a kernel faulted before", text(r"memory access fault|page fault|protection fault|vm_l2|\[gfxhub\]")),
            Sign(-3, "the GPU reported a hardware error", _HARDWARE),
            Sign(-1, "an override claims another GPU", variable("HSA_OVERRIDE_GFX_VERSION.*")),
        ),
        settles=text(r"ring [\w.]{1,40} timeout[^\n]{0,80}(?:signaled|emitted)|overheat|thermal|power supply|psu|undervolt|riser"),
        undecided="why it hung: the same job on another GPU, and `sudo dmesg | grep -iE 'amdgpu|ring|reset'` from before the reset",
    ),
    Rule(
        kind="miopen-first-run-slow",
        symptom="slow",
        needs=any_of(remedy(r"miopen_find_mode"), text(r"second|minute|slow|\bnew (?:input )?(?:shape|resolution)|finish build|miopen|find_mode|first (?:run|iteration|convolution|step|decode)|warm ?-?up|\d{2,}(?:\.\d+)? ?s\b|took|tuning|autotun")),
        signs=(
            Sign(4, "the first or every run takes minutes", text(rf"(?<!weights )(?<!loading )(?<!shards )(?<!download )(?:executed|finished|done|completed|took|takes?|in)\b[^\n]{{0,30}}\b(?:\d{{3,}}(?:\.\d+)? ?(?:s\b|sec)|\d+ ?min)|{_FIRST}\b[\s\S]{{0,80}}?(?:slow|min|\d{{2,}}(?:\.\d+)? ?s\b|long|hour)|(?:slow|minutes|long|hours)[^\n]{{0,60}}(?:{_FIRST}|first time)|\bfirst time\b[^\n]{{0,80}}\btakes?\b[^\n]{{0,20}}\btime\b")),
            Sign(3, "MIOpen searches or compiles kernels", text(r"miopen(?!\(hip\): (?:info2?|command|trace)\b)[^\n]{0,120}(?:find|search|compil|tun|perf db|find-db|missing|cache)|miopen_find_(?:mode|enforce)|find_mode|exhaustive|missing system database|miopenfindconvolution|naive_conv|hipconvolution")),
            Sign(4, "a compiler of kernels tells that it takes long", text(r"very slow compile|finish build \[\w+\], cost \d{2,}|torch\.compile takes \d{3,}")),
            Sign(4, "each new shape, or each start, is slow", text(r"\bnew (?:input |tensor |image )?(?:shape|resolution|size|length)s?\b[^\n]{0,40}(?:\b\d{2,} ?s\b|\bmin|slow|long)|\bminutes? (?:at|on|for) (?:each|every) (?:start|launch|run)\b|(?:each|every) (?:start|launch)\b[^\n]{0,40}\bminutes?\b")),
            Sign(3, "another way of MIOpen's to search changes it", remedy(r"miopen_find_mode")),
            Sign(2, "later runs are fast", anywhere(r"second (?:run|iteration)[^\n]{0,40}(?:fast|\d)|(?:after|before|later)[^\n]{0,40}\b\d{1,2} ?s\b")),
            Sign(-5, "an error is there", text(r"(?<!no )(?<!without )(?<!0 )\berror\b(?!\W{1,3}(?:0|nil|none|null|false)\b)|exception|traceback|permission denied")),
            Sign(-4, "the CPU computes", text(rf"{NO_GPU}|\bon (?:the )?cpu\b|\bcpu[_ ]?limits?\b")),
        ),
        settles=text(r"first (?:run|iteration|convolution|step|image)|miopen"),
        undecided="whether kernels are compiled anew each time: time a second iteration, and look whether the cache directory grows",
    ),
    Rule(
        kind="cpu-fallback",
        symptom="no gpu",
        needs=_ON_CPU,
        signs=(
            Sign(4, "the work runs on the CPU without a word of error", _ON_CPU),
            Sign(1, "a GPU is said to be there", told(r"^gpus?\b|devices")),
            Sign(-4, "a node cannot be opened", opened("EACCES|EPERM|ENOENT|EINVAL|ENOMEM")),
            Sign(-2, "groups were given", flag(r"--group-add")),
            Sign(-4, "torch is no ROCm build", text(r"\+cpu\b|\+cu\d{2,3}\b")),
        ),
        settles=text(r"offloaded 0/|library=cpu|0 ?%"),
        undecided="why no GPU is used: `rocmrun probe PROFILE` proves whether they work in this container",
    ),
    Rule(
        kind="amdsmi-empty",
        symptom="smi",
        needs=text(r"amd-?_?smi|unable to detect any gpu devices|unspecifiedplatform"),
        signs=(
            Sign(5, "amd-smi or its library finds no GPU", text(r"amd-?_?smi[^\n]{0,160}(?:no (?:gpu|device|processor|socket|amd)|empty|\b0 (?:gpu|device|processor)|returned? \[\]|\[\]|not_found|init(?:ialize)?[^\n]{0,20}(?:fail|error)|driver not|not loaded|no such|fail|error|exception|invalid|not initialized|unable)|(?:no|unable|fail|could not|cannot)[^\n]{0,80}amd-?_?smi|amdsmi(?:library)?exception|amdsmi_status_\w*(?:fail|err|no_|not_|init|drv)|len\(\W?amdsmi_get_processor_handles\W*\)\W{1,6}0")),
            Sign(5, "its command line finds no GPU", text(r"unable to detect any gpu devices")),
            Sign(3, "vLLM asks it which platform this is, and knows none", text(r"unspecifiedplatform")),
            Sign(-6, "it finds the GPU, which is busy", text(r"amdsmi_status_busy")),
            Sign(5, "a server that asks it knows no platform", all_of(text(r"failed to infer device type|unspecifiedplatform"), text(r"amd-?_?smi"))),
            Sign(2, "HIP finds it", text(r"rocminfo[^\n]{0,40}(?:works|lists|fine|shows|gfx)|is_available\W{0,6}true|device_count\W{1,6}[1-9]|hip[^\n]{0,30}(?:works|fine|sees)|torch[^\n]{0,30}works")),
            Sign(-3, "partitions are shown in part", text(r"\b[cdtq]px\b")),
            Sign(-4, "a node cannot be opened", opened("EACCES|EPERM|ENOENT|EINVAL|ENOMEM", r"/dev/kfd")),
            Sign(-3, "this is WSL, where it is expected", anywhere(r"\bwsl|/dev/dxg")),
            Sign(-4, "the driver is built into the kernel, or not loaded", text(r"built[- ]?in|initstate|rock module is not loaded")),
        ),
    ),
    Rule(
        kind="libdrm-ids-warning",
        symptom="noise",
        needs=_noise("libdrm-ids-warning"),
        signs=(Sign(3, "a table of product names is missing: GPUs work without it", _noise("libdrm-ids-warning")),),
    ),
    Rule(
        kind="numa-balancing",
        symptom="noise",
        needs=any_of(_noise("numa-balancing"), told(r"numa_balancing\W{1,4}1\b|numa (?:auto )?balancing\W{1,3}on\b"), fact(lambda seen: seen.host and seen.host.numa_balancing and seen.host.gpus)),
        signs=(
            Sign(3, "RCCL warns of variance: a setting of the host, and no failure", any_of(_noise("numa-balancing"), fact(lambda seen: seen.host and seen.host.numa_balancing))),
            Sign(1, "the setting is on", told(r"numa_balancing")),
        ),
    ),
)  # fmt: skip
