"""The host: kernel driver, compute driver, PCI Express, and the pairing of driver and user space."""

from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    KFD,
    absent,
    all_of,
    any_of,
    anywhere,
    fact,
    flag,
    log,
    opened,
    remedy,
    text,
    told,
)
from rocmrun.core.diagnosis.versions import driver_before_rocm, host_before_image
from rocmrun.core.diagnosis.words import (
    CRASH,
    DRIVER_OF_ANOTHER_VERSION,
    HYPERVISED,
    NO_GPU,
    NO_NODE,
    NO_NODE_BEFORE,
    PASSED_IS_MISSING,
    WSL,
)

_NOT_LOADED = text(
    r"rock module is not loaded|amdgpu not found in modules|driver not initialized|amdgpu (?:kernel )?(?:module|driver)[^\n]{0,20} (?:is )?not (?:loaded|found|installed|running)|module amdgpu not found|no amdgpu (?:module|driver)"
    r"|\bamdgpu (?:is |was )?(?:not|no longer) (?:being )?loaded|status_driver_not_loaded|amdgpu driver unavailable|lsmod[^\n]{0,30}amdgpu[^\n]{0,20}\b(?:nothing|no output|empty)\b"
    r"|^(?:host_)?lsmod\w*: \W?(?:none|empty|nothing)\b|^\w*amdgpu(?:_loaded|_module)?: (?:false|no\b|absent|missing|not loaded|none)"
    r"|(?:\blsmod\b[^\n]{0,20}|^modules?: [^\n]{0,60})\bno amdgpu\b|\bno \W?kernel driver in use"
    r"|\bamdgpu(?:-dkms)?(?: (?:kernel|dkms|driver|module)){0,3} (?:fails? to load|(?:does not|doesn't|did not|didn't|will not|won't) load|(?:cannot|could not) be loaded|(?:is|was) (?:missing|not built))"
)
_NODE_MISSING = text(
    rf"{NO_NODE}[^\n]{{0,160}}/dev/kfd[^\n]{{0,80}}(?:no such file|not found|no such device|does not exist)|/dev/kfd[^\n]{{0,40}}is not a (?:character )?device|mount source /dev/kfd doesn't exist|missing source path \W?/dev/kfd|failed to start device \W?kfd\W{{1,4}}the required device path|{NO_NODE_BEFORE}/dev/kfd|^\W{{0,9}}device /dev/kfd does not exist"
)
_NOT_HERE = any_of(_NOT_LOADED, _NODE_MISSING, opened("ENOENT|ENODEV|ENXIO", KFD))
_INSERT_FAILED = text(
    r"key was rejected by service|required key not available|could not insert (?:module )?'?amdgpu|error processing package amdgpu-dkms|amdgpu: (?:unknown symbol|disagrees about version)|lockdown[^\n]{0,60}(?:unsigned|module)|modprobe: (?:fatal|error)[^\n]{0,80}amdgpu|\bsecure boot\b[^\n]{0,40}\b(?:prevent|block|reject|refus|stop)\w*\b[^\n]{0,60}\bamdgpu|\b(?:rocm|rock|amdgpu)-dkms\b[^\n]{0,30}\b(?:was |were |got |is )?(?:removed|uninstalled|not installed)|\bamdgpu\b[^\n]{0,12}\bdkms\b[^\n]{0,20}\bfailed\b|dkms[^\n]{0,80}(?:bad (?:exit|return) status|build (?:failed|error)|autoinstall failed)|error![^\n]{0,60}(?:amdgpu|dkms|bad return status)|module amdgpu[^\n]{0,40}(?:fail|reject)"
)
_HEADERS_MISSING = all_of(
    text(r"kernel headers for [^\n]{0,60}cannot be found|linux-headers-\S+ is not supported"),
    text(r"amdgpu|/dev/kfd"),
)
# Nothing failed: somebody asked the kernel to leave the GPU alone.
_KEPT_AWAY = text(
    r"vgacon disables amdgpu|amdgpu kernel modesetting disabled|\bnomodeset\b|blacklist[\w.=, ]{0,40}\bamdgpu|\bamdgpu\b[^\n]{0,30}\bblacklist"
)
# Ollama says so on every host without an AMD GPU as well.
_NOT_DETECTED = all_of(
    text(r"amdgpu driver not detected"), absent(text(r"nvidia|library=cuda|geforce"))
)
# What mended it, beside a GPU that was not there.
_LOADING_HELPED = all_of(
    any_of(text(rf"{NO_GPU}|\bno /dev/kfd\b"), opened("ENOENT|ENODEV|ENXIO", KFD)),
    remedy(
        r"\bmodprobe amdgpu\b|\bmok\b|secure ?boot|\binstall\w*[^\n]{0,30}\bamdgpu-dkms\b|\breinstall\w*[^\n]{0,30}\bamdgpu(?:-dkms)?\b"
    ),
)
_ATOMICS_HELPED = all_of(text(r"\bgpus?\b|rocminfo|\bcards?\b"), remedy(r"\batomics\b"))
_MODULE_GONE = told(
    r"^(?:host_)?(?:lsmod|modules?|dkms\w*|driver|kernel_driver|amdgpu|secure_boot|host)\b[^\n]{0,80}(?:\bno\b|\bnot\b|none|removed|missing|absent|empty|nothing|fail|uninstall|\benabled)"
)
_MODULE_THERE = told(
    r"^(?:host_)?(?:lsmod|modules?|driver_loaded)\W{1,4}+(?!none|empty)(?:(?!\bno[tn]?\b|\bnothing\b)[^\n]){0,60}?(?:amdgpu|\bloaded)(?![^\n]{0,30}(?:not|no ))"
)
_BUILT_IN = anywhere(
    r"built[- ]?in(?:to)?\b|(?:baked|compiled|linked) (?:statically |directly )?in(?:to)? (?:the |my )?(?:linux )?kernel|amdgpu (?:is |was )?(?:compiled|linked) in\b(?! \w+ mode)|config_drm_amdgpu=y|not (?:as )?a module"
)
_CALLED_OLD = text(
    r"driver[^\n]{0,40}(?:is )?(?:too old|older than|outdated)|incompatible kernel and userspace, [^\n]{1,80} disabled|hiperrorinsufficientdriver|^driver version is insufficient for runtime|(?:requires?|needs?|wants?) (?:an? |the )?(?:newer|newest|latest|more recent|at least)[^\n]{0,40}(?:amdgpu|kernel driver)"
)
# XLA's words for the same call.
_NO_MEMORY_INFO = text(
    r"failed to (?:query|get) (?:the )?(?:device|gpu) memory info\b[^\n]{0,40}\bhip\w*"
)
# What runs on the card itself, and comes with the driver or beside it.
_FIRMWARE_FAILED = text(
    r"(?:amdgpu|\bpsp(?:_\w+)?\b)[^\n]{0,80}(?:firmware (?:load(?:ing)? )?failed|unknown firmware|failed to (?:load|request|get)[^\n]{0,60}(?:firmware|ucode))|firmware load for amdgpu/[^\n]{0,60}failed"
)
# Old tools tell a GPU that KFD does not take in no other way.
_UNSUPPORTED_GPU = all_of(
    text(r"returned 4104|out_of_resources"),
    text(
        r"unsupported (?:hardware|gpu|card|device)|(?:hardware|gpu|card) (?:is )?(?:not supported|unsupported)"
    ),
)
_KERNEL_OF_ONES_OWN = text(
    r"\b(?:my|our|own|custom|self-?built)\b[^\n]{0,20}\bkernel (?:build|config)|\bkernel (?:build|config\w{0,12})\b[^\n]{0,20}\b(?:my|own|custom)\b|(?:compil|configur)\w{1,4} (?:my|our|a custom) kernel|menuconfig|genkernel"
)
_SAID_ABSENT = text(
    r"\bkfd\b\W[^\n]{0,30}\b(?:in|below|under) \W?/dev\b[^\n]{0,40}(?:does not exist|doesn't exist|not there|missing)|\bno \W?kfd\W? (?:in|below|under) \W?/dev\b|\bhost\b(?:(?!\bcontainer|\bpod\b|\binside)[^\n]){0,80}\bno /dev/kfd\b|\bno /dev/kfd\b[^\n]{0,20}\bon (?:the |this |my )?host|/dev/kfd\b[^\n]{0,20}\b(?:missing|absent|not there|does not exist)[^\n]{0,10}\bon (?:the |this |my )?host|^(?:on_)?host\w{0,9}[._](?:dev_)?kfd: (?:no\b|absent|missing|none)"
)

_TAKEN_BY_VFIO = all_of(
    text(
        r"kernel driver in use: vfio|\bvfio[\w-]*\b[^\n]{0,30}\b(?:has|is|are|was|were|took)\b[^\n]{0,30}(?:loaded|bound|gpu|in use)"
    ),
    text(
        r"no longer (?:can )?(?:see|find|have)[^\n]{0,20}/dev/dri|/dev/(?:dri|kfd)[^\n]{0,40}(?:no such file|missing|gone|empty)"
    ),
)
_OLD_FOR_ROCM = all_of(
    driver_before_rocm, text(rf"{NO_GPU}|{CRASH}|hip error|hiperror\w+|hsa_status_error\w*")
)


def _not_in_the_list(seen: Evidence) -> Quotes | None:
    """Return the command that asked lsmod for AMD's modules, where what it listed has no amdgpu."""
    asked = seen.log.find(r"\blsmod\b[^\n]*\bgrep\b[^\n]*(?<![\w])amd")
    modules = {match[1] for match, _ in seen.log.matches(r"^([a-z0-9_]+) +\d+ +\d+\b")}
    return asked if asked and modules and "amdgpu" not in modules else None


def _unbound(seen: Evidence) -> bool | None:
    host = seen.host
    return (
        None
        if host is None
        else bool(host.pci_gpus) and host.kfd is None and not host.driver_version
    )


def _no_compute(seen: Evidence) -> bool | None:
    host = seen.host
    return (
        None
        if host is None
        else host.kfd is None and bool(host.render_nodes) and bool(host.driver_version)
    )


RULES = (
    Rule(
        kind="driver-not-loaded",
        symptom="kfd absent",
        needs=any_of(_NOT_HERE, _INSERT_FAILED, _HEADERS_MISSING, _KEPT_AWAY, _LOADING_HELPED, _NOT_DETECTED, _not_in_the_list, fact(_unbound), _TAKEN_BY_VFIO),
        unless=any_of(_BUILT_IN, text(WSL)),
        signs=(
            Sign(6, "the kernel refused to load amdgpu", _INSERT_FAILED),
            Sign(5, "a tool says that amdgpu is not loaded", any_of(_NOT_LOADED, _NOT_DETECTED)),
            Sign(5, "DKMS has no headers to build amdgpu with", all_of(_HEADERS_MISSING, absent(_INSERT_FAILED))),
            Sign(5, "the GPU came back with amdgpu", _LOADING_HELPED),
            Sign(5, "the list of modules has no amdgpu", _not_in_the_list),
            Sign(4, "the kernel was told to leave the GPU alone", _KEPT_AWAY),
            Sign(6, "vfio-pci has the GPU, so amdgpu has not, and the nodes are gone", _TAKEN_BY_VFIO),
            Sign(2, "/dev/kfd does not exist", any_of(_NODE_MISSING, opened("ENOENT", KFD))),
            Sign(4, "the host has no amdgpu module", _MODULE_GONE),
            Sign(7, "an AMD GPU is on the PCI bus, and amdgpu is not loaded", fact(_unbound)),
            Sign(-6, "the host has amdgpu loaded", _MODULE_THERE),
            Sign(-6, "the engine runs in a virtual machine", text(HYPERVISED)),
            Sign(-3, "rocminfo says that the module is loaded", text(r"rock module (?:version \S+ )?is loaded")),
        ),
        undecided="whether the module is absent, failed to build or was refused: `dkms status; sudo dmesg | grep -i amdgpu`",
    ),
    Rule(
        kind="kfd-missing-on-host",
        symptom="kfd absent",
        needs=any_of(_NODE_MISSING, _SAID_ABSENT, text(PASSED_IS_MISSING), fact(lambda seen: seen.host and seen.host.kfd is None and not seen.host.wsl)),
        signs=(
            Sign(5, "somebody looked into /dev, and it has no kfd", _SAID_ABSENT),
            Sign(4, "it was passed, and the engine's side is said to lack it", all_of(flag(r"--device=/dev/kfd"), text(PASSED_IS_MISSING))),
            Sign(5, "the engine does not find /dev/kfd on its side", _NODE_MISSING),
            Sign(4, "this host has no /dev/kfd", fact(lambda seen: seen.host and seen.host.kfd is None)),
            Sign(1, "the host is said to lack it", told(r"/dev/kfd[^\n]{0,40}(?:no|absent|missing)|no kfd")),
            Sign(-2, "the engine runs in a virtual machine", text(HYPERVISED)),
            Sign(-3, "root's engine finds it", anywhere(r"\bsudo (?:docker|podman)\b[^\n]{0,30}\bworks|works[^\n]{0,20}\bwith sudo (?:docker|podman)\b")),
            Sign(-3, "this is Windows or WSL", text(WSL)),
        ),
        settles=told(r"/dev/kfd[^\n]{0,40}(?:no\b|absent|missing)|\bno kfd|no (?:amd )?gpu|lspci"),
        undecided="whether the driver is not loaded, the kernel has no KFD, or the engine runs elsewhere: `ls -l /dev/kfd; lsmod | grep amdgpu; docker info | grep -i kernel`",
    ),
    Rule(
        kind="kfd-not-in-kernel",
        symptom="kfd absent",
        needs=any_of(_NOT_HERE, anywhere(r"hsa_amd"), fact(_no_compute)),
        signs=(
            Sign(7, "the kernel was built without KFD", text(r"config_hsa_amd\W{0,4}(?:is not set|=n|missing|absent|not|disabled)|(?:without|no|lacks|missing) config_hsa_amd|hsa_amd is not set")),
            Sign(5, "the kernel's option for compute helped", remedy(r"config_hsa_amd\b")),
            Sign(4, "amdgpu drives the GPU", text(r"kernel driver in use: amdgpu|amdgpu[^\n]{0,30}(?:bound|in use)")),
            Sign(5, "the kernel was built by who runs it, and amdgpu's compute part is an option of its own", all_of(_KERNEL_OF_ONES_OWN, absent(_NOT_LOADED))),
            Sign(2, "DRM nodes are there", log(r"/dev/dri/(?:card|renderd)\d+$|\brenderd\d+\b")),
            Sign(7, "amdgpu is loaded with render nodes, and there is no /dev/kfd", fact(_no_compute)),
        ),
    ),
    Rule(
        kind="driver-builtin-false-alarm",
        symptom="kfd absent",
        needs=_NOT_LOADED,
        signs=(
            Sign(1, "a tool says that amdgpu is not loaded", _NOT_LOADED),
            Sign(6, "the driver is built into the kernel", _BUILT_IN),
            Sign(2, "it looks for a file that only modules have", text(r"initstate")),
            Sign(5, "the GPU works nevertheless", text(r"is_available\(\)\W{0,6}true|name:\s+gfx[0-9a-f]+|gpu (?:works|fine)|hip[^\n]{0,20}works|topology[^\n]{0,40}(?:gpu|nodes)[^\n]{0,20}(?:present|there|listed|[1-9])")),
            Sign(-5, "the kernel refused to load amdgpu", _INSERT_FAILED),
            Sign(-4, "/dev/kfd does not exist", any_of(_NODE_MISSING, opened("ENOENT", KFD))),
        ),
    ),
    Rule(
        kind="gpu-not-supported-by-kfd",
        symptom="kfd open",
        needs=any_of(text(r"not supported in kfd|supported_devices|kgd2kfd_probe failed|kfd[^\n]{0,60}(?:not supported|unsupported)"), _UNSUPPORTED_GPU),
        signs=(
            Sign(7, "KFD says that it does not know this GPU", text(r"not supported in kfd|missing in supported_devices|kgd2kfd_probe failed|kfd[^\n]{0,60}(?:not supported|unsupported)")),
            Sign(5, "HSA finds no resources, and the GPU is said not to be supported", _UNSUPPORTED_GPU),
            Sign(1, "opening /dev/kfd answers ENOMEM", opened("ENOMEM", KFD)),
        ),
    ),
    Rule(
        kind="kfd-open-enomem",
        symptom="kfd open",
        needs=opened("ENOMEM", KFD),
        unless=text(r"not supported in kfd|supported_devices|kgd2kfd_probe failed"),
        signs=(Sign(5, "opening /dev/kfd answers ENOMEM: the driver has no GPU for compute", opened("ENOMEM", KFD)),),
        undecided="why the driver has none: `sudo dmesg | grep -i kfd`",
    ),
    Rule(
        kind="kfd-open-einval",
        symptom="kfd open",
        needs=opened("EINVAL", KFD),
        signs=(
            Sign(5, "opening /dev/kfd read-write answers EINVAL: the kernel refuses a compute process", opened("EINVAL", KFD)),
            Sign(2, "the GPU was in a virtual machine, was reset or plugged in again, or another driver is there", text(r"vfio|passthrough|passed (?:through )?to a vm|\bsmu\b|gpu reset|re-?plug|egpu|thunderbolt|amdxdna|\bnpu\b|evict|suspend|resume|hot-?plug")),
        ),
        settles=text(r"vfio|passthrough|passed (?:through )?to a vm|gpu reset|re-?plug|egpu|thunderbolt|amdxdna|\bnpu\b|\bsmu\b|suspend|hot-?plug"),
        undecided="why the kernel refuses; open it on the host and read `sudo dmesg | grep -iE 'kfd|amdgpu'`",
    ),
    Rule(
        kind="pcie-atomics",
        needs=any_of(text(r"atomic"), _ATOMICS_HELPED),
        signs=(
            Sign(5, "a slot with PCI Express atomics mended it", _ATOMICS_HELPED),
            Sign(7, "KFD skipped the GPU: its slot has no PCI Express atomics", text(r"rejects atomics|pcie? atomics? (?:ops? )?(?:are |is )?(?:not supported|unsupported|rejected|missing|disabled)|no pcie atomics|atomics?[^\n]{0,30}(?:not supported|unsupported)|skipped device 1002:[0-9a-f]{4}[^\n]{0,40}atomic")),
            Sign(4, "the bus does not route them to the GPU", text(r"atomicopsctl:\s{0,4}reqen-|atomic op\w*[^\n]{0,80}\b(?:does|do|is|are) not (?:route|reach|available|enabled)")),
        ),
    ),
    Rule(
        kind="toolkit-install-check",
        needs=text(r"container-toolkit|amd-ctk|amd-container"),
        signs=(
            Sign(3, "AMD's container toolkit is being installed", text(r"(?:container-toolkit|amd-ctk|amd-container)[^\n]{0,120}(?:install|scriptlet|preinst|postinst|unpack|%pre|setup|dpkg|rpm)|(?:install|scriptlet|preinst|postinst|%pre|dpkg|rpm|apt|dnf)[^\n]{0,120}(?:container-toolkit|amd-ctk)")),
            Sign(4, "its script does not find the driver", text(r"driver[^\n]{0,60}(?:not (?:installed|found|loaded|detected)|missing|required)|amdgpu[^\n]{0,40}(?:not|missing|required)|please install[^\n]{0,40}driver")),
            Sign(2, "it runs where no module list is seen", text(r"rpm-ostree|image build|dockerfile|docker build|buildkit|chroot|sandbox|mkosi|packer|kickstart")),
        ),
    ),
    Rule(
        kind="driver-too-old",
        symptom="pairing",
        needs=any_of(_OLD_FOR_ROCM, _CALLED_OLD, _NO_MEMORY_INFO, text(r"mem_?get_?info|getting available memory|memory_avail|driver[^\n]{0,40}(?:too old|older|outdated|incompatible)|mismatch[^\n]{0,40}driver")),
        signs=(
            Sign(4, "the GPU is found, and the query for free memory is refused", text(r"(?:mem_?get_?info|getting available memory)[^\n]{0,60}(?:invalid|error|fail)|(?:invalid|error|fail)[^\n]{0,60}mem_?get_?info|cudart\(\)\.cudamemgetinfo")),
            Sign(4, "the GPU is found, and the query for its memory is refused", _NO_MEMORY_INFO),
            Sign(1, "HIP answers with an invalid argument", text(r"hip error: invalid argument|hip_?error_?invalidvalue|invalid argument \(?cudamemgetinfo")),
            Sign(5, "AMD's driver table does not pair this driver with this ROCm, and a GPU fails", _OLD_FOR_ROCM),
            Sign(3, "the host has an older ROCm than the image", host_before_image),
            Sign(3, "the driver does not know the newer memory query", text(r"memory_avail query failed")),
            Sign(3, "the driver is named as old", told(r"driver[\w.]*: [^\n]{0,30}(?:old|5\.[0-9]\b|5\.1[0-9])|(?:in-tree|host)[^\n]{0,30}old|too old")),
            Sign(6, "a tool calls the driver too old", _CALLED_OLD),
        ),
        settles=any_of(_OLD_FOR_ROCM, _CALLED_OLD, text(r"memory_avail query failed|too old|older than|outdated|requires? (?:a )?newer")),
        undecided="whether the driver is too old for this ROCm: compare `cat /sys/module/amdgpu/version` (or `uname -r`) with `rocmrun matrix`",
    ),
    Rule(
        kind="driver-userspace-mismatch",
        symptom="pairing",
        needs=any_of(_FIRMWARE_FAILED, text(rf"{DRIVER_OF_ANOTHER_VERSION}|out_of_resources|returned 4104|\bregress|ioctl[^\n]{0,40}version|kfd[^\n]{0,40}(?:interface|abi) version|thunk|amd gpu driver\W?s version|hsakmt_status_driver_mismatch")),
        unless=any_of(opened("EACCES|EPERM|ENOMEM|EINVAL|ENOENT"), text(r"sudo[^\n]{0,40}rocminfo"), anywhere(r"works_with_sudo|as_root")),
        signs=(
            Sign(4, "HSA finds no resources although /dev/kfd opens", text(r"out_of_resources|returned 4104")),
            Sign(3, "another pair of driver and firmware works", any_of(anywhere(r"^(?:good|bad|last_good|regression|works_with|downgrade|rollback)\b[^\n]{0,120}(?:amdgpu|driver|firmware|kernel|\d\.\d+)"), all_of(text(r"\bregress"), text(r"driver|firmware|\bkernel\b|amdgpu|thunk|out_of_resources|returned 4104")), text(r"after (?:the )?(?:kernel|driver|firmware) (?:update|upgrade)"))),
            Sign(4, "the driver cannot bring up the card with the firmware that it finds", _FIRMWARE_FAILED),
            Sign(1, "SMI shows the device", text(r"(?:rocm|amd)-smi[^\n]{0,60}(?:shows|lists|works|device)")),
            Sign(7, "the module in the kernel and the libraries are of two versions", text(DRIVER_OF_ANOTHER_VERSION)),
            Sign(6, "user space and kernel speak other versions of the interface", text(r"ioctl[^\n]{0,40}version[^\n]{0,40}(?:mismatch|unsupported|fail)|kfd[^\n]{0,40}(?:interface|abi) version[^\n]{0,40}(?:mismatch|unsupported|old)|amd gpu driver\W?s version [\d.]{1,12} not supported|hsakmt_status_driver_mismatch")),
        ),
        undecided="which of driver and firmware it is: try the driver that AMD lists for this ROCm (`rocmrun matrix`)",
    ),
)  # fmt: skip
