"""Several processes or GPUs together: shared memory, network, handles between processes, transfers between GPUs."""

from rocmrun.core.diagnosis.amounts import shared_memory_large
from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import (
    absent,
    all_of,
    any_of,
    anywhere,
    flag,
    remedy,
    text,
    unquoted,
    variable,
)
from rocmrun.core.diagnosis.words import NO_SPACE

_SHARED_MEMORY_FULL = text(
    rf"posix_fallocate[^\n]{{0,80}}{NO_SPACE}|(?:/dev/shm|shared[- ]memory|shm\w*|nccl-\w+)[^\n]{{0,120}}{NO_SPACE}|{NO_SPACE}[^\n]{{0,120}}(?:/dev/shm|shared memory|\bshm\b|nccl)|error while creating shared memory segment|insufficient\s+shared\s+memory|out\s+of\s+shared\s+memory|exhaust\w{{0,4}}[^\n]{{0,20}}shared memory|shared memory[^\n]{{0,20}}exhaust|increase[^\n]{{0,30}}shared memory|torch_shm_manager|could not allocate [^\n]{{0,40}}shared memory|unable to (?:allocate|mmap|write|resize)[^\n]{{0,40}}(?:shared memory|/dev/shm|torch_)|failed to resize[^\n]{{0,30}}shm"
    # A semaphore is a file there too; MPI's and UCX's segments, and what a server for models shares with its stubs.
    rf"|{NO_SPACE}[^\n]{{0,30}}/(?:psm_|torch_|nccl-|sem\.)\w|(?:shared_memory\.py|posixshmem)[\s\S]{{0,200}}?{NO_SPACE}|semlock\([\s\S]{{0,80}}?{NO_SPACE}|not enough space for [^\n]{{0,120}}\(the shared-memory|not enough memory to write total of[^\n]{{0,80}}/dev/shm|shared memory (?:key|pool|region)[^\n]{{0,160}}--shm-size"
)
_NO_WORKERS_HELPED = all_of(
    text(r"/dev/shm|\bshm\b"),
    text(r"num_workers?\W{1,4}0\b[^\n]{0,20}works|works[^\n]{0,20}num_workers?\W{1,4}0\b"),
)
# A program measured it and goes on.
_FOUND_SMALL = text(r"/dev/shm has only \d+ bytes")
# A row of df.
_NEARLY_FULL = text(
    r"\b(?:8[5-9]|9\d|100)% +/dev/shm$|/dev/shm\W[^\n]{0,40}\b(?:9\d|100) ?%|/dev/shm\W[^\n]{0,20}\b(\d+[mg])\W{1,4}\1 used"
)
_LARGER_HELPED = all_of(
    text(rf"{NO_SPACE}|ncclsystemerror|unhandled system error|dataloader|\bbus error"),
    remedy(r"shm[-_ ]?size|--ipc[= ]host"),
)
# System V's segments have a limit of their own; the size of /dev/shm says nothing about them.
_SYSTEM_V = all_of(text(r"\bshmget\b"), absent(text(r"posix_fallocate|/dev/shm|\bshm_open\b")))
_BUS = text(r"bus\s+error|\bsigbus\b|signal 7\b|exit code 135|exitcode\W{1,4}-7\b")
_BAD_HANDLE = r"(?:invalid (?:argument|value|device pointer|resource handle))"
# RCCL, UCX and PyTorch name their own function, and not the call of HIP.
_NO_HANDLE = rf"p2p\.cc:\d+[^\n]{{0,40}}(?:cuda|hip) failure[^\n]{{0,10}}{_BAD_HANDLE}|failed to (?:create ipc for|attach ipc mem)|(?:_share_cuda_|_new_shared_cuda|rebuild_cuda_tensor)\b[\s\S]{{0,200}}?{_BAD_HANDLE}|{_BAD_HANDLE}[\s\S]{{0,200}}?\b(?:_share_cuda_|_new_shared_cuda|rebuild_cuda_tensor)\b"
_IPC = text(
    r"hipipc(?:get|open)mem(?:ory)?handle|cudaipc(?:get|open)memhandle|ipc memory creation|memory for ipc|hsa_amd_ipc|ipc_mode_legacy|ipc[_ ]?(?:mem)?[_ ]?handle"
    rf"|{_NO_HANDLE}"
)
_SAID_NOT_SHARED = (
    r"(?:fail\w*|cannot|could not|unable)\b[^\n]{0,40}(?:\bp2p/ipc\b|\b(?:cuda|hip|gpu) ipc\b)"
)
_NO_SUCH_PEER = text(r"pidfd_open\b[^\n]{0,40}no such process")
_SHARED_IDS_HELPED = all_of(
    text(
        r"ipc(?:get|open)|\b(?:cuda|hip|rocm|gpu)[ _]ipc|gpu (?:buffers?|memory)|\b(?:open|share|exchange)\w* [^\n]{0,20}\bhandles?\b"
    ),
    remedy(r"--pid[= ](?:host|container)|\bhost_?pid\b|shareprocessnamespace|\bpid\W{1,3}host\b"),
)
# Processes of several containers, whose ids name nothing to each other.
_APART = text(
    r"(?:two|several|different|separate|both|other|another) (?:\w+ )?containers|inter-?container|cross[- ]container|between (?:the )?containers|^containers?: (?:two|[2-9])\b|\bsidecar"
)
_GPUS_SHARE = text(
    r"\bipc\b|\bp2p\b|peer[- ]to[- ]peer|ipc(?:get|open)mem|nvlink|xgmi|gpu (?:buffers?|memory)"
)
_OTHER_IDS = all_of(
    _APART,
    _GPUS_SHARE,
    any_of(text(r"\bpids?\b"), unquoted(remedy(r"--pid[= ]|\bhost_?pid\b|\bpid\W{1,3}host\b"))),
    text(r"fail|cannot|can't|could not|unable|error|invalid"),
)
_IOMMU_HELPED = all_of(
    remedy(r"\biommu\b|amd_iommu|intel_iommu|\bvt-d\b"),
    text(
        r"(?:two|\d|multiple|several|all) ?x? gpus\b|\brccl\b|\bnccl\b|all_?reduce|collective|tensor[- ]parallel"
    ),
)
_LOCK_REMOVED = remedy(r"\brm\b[^\n]{0,20}/dev/shm/(?:rocm_?smi|amd_?smi|\*)")
_HANG = any_of(
    text(
        r"(?<!instablity or )(?<!instability or )\bhangs?\b(?! ?[=:] ?0|_)|\bhung\b|no further output|\bstuck\b|freezes?|frozen|deadlock|watchdog|timed out|(?<![_'])time ?out(?!s?\w*\W{0,3}\d)|takes the host down|never returns|blocks forever|no progress"
    ),
    anywhere(r"(?<!instablity or )(?<!instability or )\bhang(?!_| ?[=:] ?0)"),
)
_PEER = any_of(
    anywhere(r"\bp2p\b|peer[- ]to[- ]peer|iommu|peer access|direct pcie"),
    text(r"all_?reduce|rccl|nccl|# using devices"),
)
_NO_INTERFACE = text(
    r"no (?:usable )?(?:socket|network|ip) interfaces?(?: found| were found)?|no interface (?:found|named)|address family not supported|network is unreachable|unable to find (?:a )?(?:usable )?(?:network )?(?:interface|address for)|no such device[^\n]{0,30}(?:eth|ifname)|bootstrap[^\n]{0,60}(?:no socket|fail|no interface)|cannot assign requested address|\beaddrnotavail\b|ifname[^\n]{0,60}(?:not found|no|invalid)"
)
_NO_NAME = text(
    r"unable to resolve hostname|(?:hostname|gethostbyname|getaddrinfo(?![^\n]{0,10}thread))[^\n]{0,80}(?:not known|fail|unknown|resolve)|name or service not known|temporary failure in name resolution|could not resolve (?:host|address)|failed to resolve local"
)
_COLLECTIVE = r"nccl|rccl|gloo|processgroup|torchrun|rendezvous|tcpstore|c10d|connectfullmesh|\bmpi|include/socket\.h"
_WITHOUT_NETWORK = any_of(flag(r"^--net(?:work)?=none"), text(r"\bnetwork[\w.]*\W{1,4}none\b"))
# A host whose own name is a loopback address tells others to meet it there.
_MET_AT_LOOPBACK = all_of(
    text(r"gloo|nccl|rccl|tcpstore|c10d"),
    text(r"connect\w*\b[^\n]{0,30}\b127\.0\.[01]\.1\b[^\n]{0,30}(?:refused|timed? ?out)"),
)
_INTERFACE_HELPED = all_of(text(_COLLECTIVE), remedy(r"(?:gloo|nccl|tp)_socket_ifname"))
_NO_ADDRESS = text(
    r"failed to get the ip address, using 0\.0\.0\.0|failed to look up the ip address for the hostname"
)

RULES = (
    Rule(
        kind="shm-too-small",
        symptom="no space",
        needs=any_of(_SHARED_MEMORY_FULL, _FOUND_SMALL, _NO_WORKERS_HELPED, _BUS, _LARGER_HELPED, _NEARLY_FULL, text(r"/dev/shm[^\n]{0,60}(?:64|full|100%)")),
        signs=(
            Sign(7, "shared memory is full", _SHARED_MEMORY_FULL),
            Sign(4, "a program finds it too small for its own use", _FOUND_SMALL),
            Sign(5, "a larger /dev/shm mended it", _LARGER_HELPED),
            Sign(5, "no space is left, and /dev/shm is full", all_of(text(NO_SPACE), text(r"/dev/shm\W[^\n]{0,40}(?:\bfull\b|100 ?%)"))),
            Sign(4, "a process touched shared memory that is not there: SIGBUS", _BUS),
            Sign(4, "without workers, which share memory, it works", _NO_WORKERS_HELPED),
            Sign(3, "a DataLoader's worker, or a collective, was at it", all_of(_BUS, text(r"dataloader|worker|nccl|rccl|multiprocess|shared memory|shm"))),
            Sign(-10, "shared memory is large, and no write to it was refused", all_of(shared_memory_large, absent(_FOUND_SMALL), absent(text(rf"posix_fallocate|{NO_SPACE}")))),
            Sign(-10, "it is System V's shared memory, which is not in /dev/shm", _SYSTEM_V),
            Sign(4, "shared memory is nearly full", all_of(_NEARLY_FULL, absent(_SHARED_MEMORY_FULL))),
            Sign(1, "/dev/shm has the engine's default of 64 MiB", text(r"\bshm\w*\W[^\n]{0,30}64|64 ?mi?b|64m\b|/dev/shm volume")),
        ),
    ),
    Rule(
        kind="network-none",
        symptom="network",
        needs=any_of(_NO_INTERFACE, _NO_NAME, _NO_ADDRESS, _MET_AT_LOOPBACK, all_of(_WITHOUT_NETWORK, text(_COLLECTIVE))),
        signs=(
            Sign(6, "no network interface can be used", _NO_INTERFACE),
            Sign(4, "the host's own name cannot be resolved", _NO_NAME),
            Sign(4, "the host's own address cannot be found", _NO_ADDRESS),
            Sign(2, "it is a collective or its rendezvous", text(_COLLECTIVE)),
            Sign(2, "others are to be met at an address of the host's own", _MET_AT_LOOPBACK),
            Sign(2, "another interface, by its name, helped", _INTERFACE_HELPED),
            Sign(4, "it has no network, and is to meet others", all_of(_WITHOUT_NETWORK, text(_COLLECTIVE))),
            Sign(-4, "a variable names the interfaces that may be used, or leaves some out", variable(r"(?:NCCL|GLOO)_SOCKET_IFNAME", r"^(?!lo$)\S")),
            Sign(1, "the container has no network", _WITHOUT_NETWORK),
            Sign(-5, "a download is what fails", text(r"huggingface|pypi\.org|https?://")),
        ),
    ),
    Rule(
        kind="rccl-p2p-ipc",
        needs=any_of(_IPC, text(_SAID_NOT_SHARED)),
        signs=(
            Sign(4, "sharing GPU memory with another process is said to fail", text(_SAID_NOT_SHARED)),
            Sign(6, "a handle of GPU memory for another process cannot be made or opened", text(r"hipipc(?:get|open)mem(?:ory)?handle[^\n]{0,80}(?:fail|invalid|error|-> ?[1-9])|(?:fail|invalid)[^\n]{0,60}(?:hip|cuda)ipc(?:get|open)mem\w*|failed to create memory for ipc|ipc memory creation failed|cudaipc\w+[^\n]{0,60}(?:fail|invalid|error)|hsa_amd_ipc\w+[^\n]{0,60}(?:fail|error)")),
            Sign(6, "a library cannot share GPU memory with another process", text(_NO_HANDLE)),
            Sign(2, "the old way of sharing is asked for", any_of(variable("HSA_ENABLE_IPC_MODE_LEGACY"), anywhere(r"ipc_mode_legacy"))),
            Sign(1, "the driver is the kernel's own", text(r"in-tree|mainline|no amdgpu-dkms")),
            Sign(-4, "memory is what it lacks", text(r"out of memory|not enough free|no free memory|vram")),
            Sign(-4, "two containers are at it", text(r"two containers|several containers|inter-?container|between containers|containers?: [2-9]\b|other container|cross[- ]container|sidecar|separate per container|pid[_ ]?ns|hipipcopeneventhandle|/dev/shm/hip_")),
        ),
        settles=any_of(variable("HSA_ENABLE_IPC_MODE_LEGACY"), anywhere(r"ipc_mode_legacy")),
        undecided="which of four causes: another job that uses peer access, HSA_ENABLE_IPC_MODE_LEGACY against the driver, iommu=pt, or the job itself: try one process, then NCCL_P2P_DISABLE=1",
    ),
    Rule(
        kind="pid-namespace",
        needs=any_of(text(r"hiperrorinvalidcontext|hiperrorinvaliddevicepointer|hipipcopeneventhandle|/dev/shm/hip_\d|ipc[^\n]{0,60}pid|pid (?:namespace|1)|(?:cuda|hip|rocm)_ipc[^\n]{0,60}invalid device context"), _NO_SUCH_PEER, _SHARED_IDS_HELPED, _OTHER_IDS, anywhere(r"pid_host|ipc_host|pid_ns")),
        signs=(
            Sign(3, "a handle of another process names nothing here", text(r"hiperrorinvalidcontext|hiperrorinvaliddevicepointer|invalid device context|hipipcopen(?:event|mem)handle")),
            Sign(3, "shared memory is shared, process ids are not", any_of(flag(r"--ipc=(?:host|container)"), anywhere(r"ipc[_=: ]{1,2}host|hostipc|shareable|pid_ns|separate pid|pid namespaces?|all (?:are )?pid 1|both workloads are pid 1|^pid\w*: [^\n]{0,20}\b(?:isolated|separate|private|own)\b"))),
            Sign(6, "with process ids in common it works", _SHARED_IDS_HELPED),
            Sign(5, "containers share GPU memory, and process ids are spoken of", all_of(_OTHER_IDS, absent(_SHARED_IDS_HELPED))),
            Sign(4, "the other process has another number here, or none", _NO_SUCH_PEER),
            Sign(2, "names of event objects collide", text(r"/dev/shm/hip_\d")),
            Sign(1, "several containers work together", text(r"containers?\b[^\n]{0,60}(?:another|two|both|sidecar|lmcache|exports?)|sidecar|two containers|cross[- ]container")),
        ),
    ),
    Rule(
        kind="stale-shm-lock",
        needs=any_of(text(r"rocm_smi|rsmi|pthread_mutex|/dev/shm/"), _LOCK_REMOVED),
        signs=(
            Sign(7, "SMI waits for a lock in shared memory that nobody holds any more", text(r"pthread_mutex_(?:timed)?lock[^\n]{0,80}(?:110|time|fail)|rocm_smi[^\n]{0,80}(?:mutex|lock)[^\n]{0,60}(?:110|timed? ?out|fail|stale|held)|rsmi[^\n]{0,60}mutex|/dev/shm\W{1,4}rocm_smi")),
            Sign(5, "removing SMI's files in shared memory helped", _LOCK_REMOVED),
            Sign(1, "it waits", _HANG),
        ),
    ),
    Rule(
        kind="iommu-p2p",
        needs=any_of(all_of(_PEER, any_of(_HANG, text(r"iommu"))), _IOMMU_HELPED),
        signs=(
            Sign(3, "several GPUs hang once they reach each other's memory", all_of(_HANG, _PEER)),
            Sign(3, "iommu=pt is missing", any_of(text(r"missing \W{0,3}iommu=pt|iommu=pt[^\n]{0,40}(?:missing|not set|absent)|iommu[^\n]{0,30}(?:not pass|translated|enabled)"), all_of(text(r"boot_image=|root=/dev|cmdline"), absent(text(r"boot_image=[^\n]{0,300}iommu=pt|cmdline: [^\n]{0,300}iommu=pt"))))),
            Sign(4, "another setting of the IOMMU mended several GPUs", _IOMMU_HELPED),
            Sign(2, "with it, or without peer access, it works", anywhere(r"^fix\w*: [^\n]{0,80}(?:iommu=pt|p2p)|nccl_p2p_disable=1[^\n]{0,40}works|iommu=pt[^\n]{0,40}works|fix_cmdline")),
            Sign(1, "the transfers go from GPU to GPU over PCI Express", anywhere(r"direct pcie|pcie p2p|p2p/direct")),
            Sign(-4, "a handle cannot be made", _IPC),
            Sign(-5, "the GPU was reset", text(r"gpu reset|ring \S{1,20} timeout|uncorrectable")),
            Sign(-3, "there is no network", text(r"no socket interface|address family|connection refused")),
        ),
        settles=all_of(_HANG, any_of(text(r"missing \W{0,3}iommu=pt"), anywhere(r"fix_cmdline|iommu=pt[^\n]{0,40}works"))),
        undecided="whether peer access hangs it: NCCL_P2P_DISABLE=1 once; and `cat /proc/cmdline`",
    ),
)  # fmt: skip
