"""System calls, capabilities and limits."""

from rocmrun.core.diagnosis.finding import Rule, Sign
from rocmrun.core.diagnosis.looks import all_of, any_of, anywhere, remedy, text, told, unquoted
from rocmrun.core.diagnosis.words import AGAIN, DENIED, ENDED_137, EVERY_RIGHT_WORKS, NOT_PERMITTED

_OLD_ENGINE = text(
    r"docker(?: engine|_?version)?\W{1,12}(?:version )?(?:1\d\.|20\.10\.[0-9]\b|< ?20\.10\.10)|docker < ?20|libseccomp|old (?:engine|docker|libseccomp)|seccomp list|buildah|podman [123]\."
)
_NEW_GLIBC = text(
    r"glibc (?:is |was )?(?:updated|upgraded|newer)|(?:newer|updated) glibc|glibc\W{0,12}(?:>= ?)?2\.(?:3[4-9]|[4-9]\d)|bookworm|trixie|ubuntu(?:[: ]| image )(?:2[2-9]|21\.10)|jammy|noble|fedora(?:[: ])?(?:3[5-9]|4\d)|debian(?:[: ])?1[2-9]|el9|alma\w*(?:[: ])?9"
)
_NEW_ON_OLD = all_of(text(NOT_PERMITTED), _OLD_ENGINE, _NEW_GLIBC)
_NO_THREAD = text(
    rf"\bthreads?\b[^\n]{{0,60}}{NOT_PERMITTED}|can'?t start new thread|failed to create (?:a )?(?:new )?thread|thread constructor failed|cannot create (?:worker |a )?(?:\w+ )?thread|pthread_create|std::system_error|unable to create (?:new |native )?thread|could not create thread"
    r"|failed to create new os thread|fatal error: newosproc|can'?t spawn worker thread|failed to spawn thread|threadpoolbuilderror|error creating thread|thread failed to start|resources for omp thread|threads? (?:cannot|could not) be (?:created|started)|can'?t initialize background jobs"
)
_NO_THREAD_EPERM = text(
    rf"(?:pthread_create|thread|clone|background jobs)[^\n]{{0,80}}{NOT_PERMITTED}|std::system_error'?\n[^\n]{{0,12}}{NOT_PERMITTED}|omp: system error #1\b|\(1 vs\. 0\)[^\n]{{0,60}}thread"
)
# Python names the call two lines below or above its error.
_NO_PROCESS_EAGAIN = text(
    rf"(?:fork|clone|thread|process|spawn)[^\n]{{0,100}}{AGAIN}|{AGAIN}[^\n]{{0,60}}(?:fork|thread|process)|(?:fork_?exec|os\.fork|popen)[\s\S]{{0,200}}?{AGAIN}|{AGAIN}[\s\S]{{0,200}}?(?:fork_?exec|os\.fork)\b"
    r"|cannot fork|\bfork: retry\b|omp: system error #11\b|\(11 vs\. 0\)[^\n]{0,60}thread"
)
_LIMIT_OF_PROCESSES = r"\blimit\b[^\n]{0,30}\b(?:sub-?)?(?:process(?:es)?|threads|pids)\b|\b(?:sub-?)?(?:process(?:es)?|threads|pids)\b[^\n]{0,30}\blimit\b"
_MORE_PROCESSES_HELPED = remedy(r"pids[-_]?limit|podpidslimit|tasksmax|ulimits?\W{1,4}nproc")
# apt's hooks are started through popen(), and curl is older than the filter: neither prints the error.
_OF_AN_OLD_FILTER = text(r"problem executing scripts apt::update::post-invoke")
_NUMA_CALL = text(
    r"\b(?:mbind|set_mempolicy|get_mempolicy|move_pages|migrate_pages|numa_\w+|hwloc_set_\w*membind\w*)\b[^\n]{0,60}(?:not permitted|\beperm\b|failed)|(?:can't|cannot|could not|unable to|failed to) (?:bind|set a policy for|move|migrate) (?:the )?memory\b|(?:setting membind|\bnumactl\b)[^\n]{0,60}"
    rf"{NOT_PERMITTED}"
)

_NO_CHILD = text(rf"\bmake(?:\[\d+\])?: [\w/.-]{{1,60}}: {NOT_PERMITTED}")
# Programs that look into others while these run.
_ATTACHES = r"(?:py-spy|rbspy|phpspy|austin|pyrasite|memray attach|rocgdb|gdb|lldb|gcore|jstack|jmap|eu-stack|pstack|dlv|delve)"
# What these print without their name, and what a library says that would read another's memory itself.
_CANNOT_TRACE = text(
    rf"\battach failed\b[^\n]{{0,40}}{NOT_PERMITTED}|proc_attach[^\n]{{0,40}}{NOT_PERMITTED}|disabling address space randomization[^\n]{{0,20}}{NOT_PERMITTED}|could not (?:attach to pid|launch process: fork/exec)[^\n]{{0,200}}(?:{NOT_PERMITTED}|ptrace)|does not work under ptrace|make sure you started your container with the sys_ptrace|process launch failed: 'a' packet returned an error: 8|\b(?:cannot|could not|can't|unable to) attach to (?:the |a )?(?:running )?process\b|failed to suspend process[\s\S]{{0,40}}{NOT_PERMITTED}|restrictive\s+ptrace\s+settings|\bcma support\b[\s\S]{{0,80}}?\bnot\s+available"
)
# Set so, and not what a library asks for ("set ulimit -l to unlimited").
_NO_LIMIT = r"(?:ulimit[_ -]*l\b|memlock|max locked memory)(?![^\n]{0,16}\b(?:to|should|must)\b)[^\n]{0,30}(?:unlimited|infinity|-1\b)"
_MORE_LOCKED_HELPED = all_of(
    remedy(r"memlock|locked[- ]memory|ulimit[_ -]*l\b"),
    text(r"rdma|\bib\b|infiniband|verbs|nccl|rccl|\bucx\b|\bmpi\b|regist"),
)
_CPUS_LIMITED = (
    r"cpuset\W|cpu[_ ]?limits?|cpu\.max|cpu_?quota|--cpus|nano_?cpus|cfs_quota|limits\W{1,4}cpus?\b"
)
_NO_COUNTERS = text(
    rf"perf_event_open[^\n]{{0,100}}(?:{NOT_PERMITTED}|denied|fail|eacces|\benosys\b)|could not be locked for profiling|paranoid(?: level| setting)?(?: is| has a value of)?\W{{1,4}}[2-9]|(?:insufficient|no|lacks?|without) (?:permissions?|rights?|access)[^\n]{{0,40}}\b(?:hardware|performance) counters|counters?[^\n]{{0,40}}(?:unavailable|not permitted|permission|denied)|access to performance monitoring"
    r"|no permission to enable [\w:-]+ event|may not have permission to collect|err_nvgpuctrperm|permission to access nvidia gpu performance counters|cupti_error_insufficient_privileges|permission level does not permit operation|perf events unavailable|no access to perf events|failed to initialize pmu\W{1,4}permission|cap_perfmon is required"
)
_KILLED_AT_LIMIT = (
    r"oomkilled\W{1,5}true|reason\W{1,4}oomkilled|\boomkilled\b(?!\W{1,5}(?:false|no\b))|memory cgroup out of memory|oom-kill:constraint_memcg|constraint_memcg|killed process \d+[^\n]{0,80}(?:memcg|cgroup)|memory\.events[^\n]{0,40}oom_kill [1-9]|container[^\n]{0,40}exceeded memory limit"
    r"|\boom[_-]kill event|killed by the cgroup out-of-memory|\boom killed\b|init was oom-killed|\bcontainer oom [0-9a-f]{6,}|^oom_kill:? [1-9]"
)
_KILLED_FOR_MEMORY = (
    r"out of memory: killed process|oom-killer|oom_reaper|killed process \d+"
    r"|system oom encountered|killed by the oom killer|failed with result 'oom-kill'|killed \S+ due to memory pressure|killed due to the node running low on memory|\btask \d+: out of memory"
)
_SIGNAL_9 = (
    r"exit(?:ed|s)?(?: with)?(?: \(?(?:status|code)\)?)?\W{0,4}137\b|exit code\W{1,3}-9\b|return[_ ]?code ?= ?-9\b|\bsigkill\b|died with signal 9|\bsignal:? \(?9\b|signal: killed|code 137|exitcode\W{1,4}-9|^killed$|code=killed, status=9"
    r"|^\S{0,40}: line \d+: +\d+ killed\b|killed signal terminated program|unable to execute command: killed|internal compiler error: killed|failed core proc\(s\): [^\n]{0,60}': -9\b"
    r"|resourceexhausted: process [^\n]{0,400}cannot allocate memory"
)
# Whether the engine recorded a kill for want of memory.
_NOT_FOR_MEMORY = text(r"oomkilled\W{1,5}(?:false|no\b)")

# The runtime cannot make the filter at all, so that nothing is refused by it.
_FILTER_NOT_MADE = text(
    r"adding seccomp (?:filter )?rule|error (?:creating|loading) seccomp filter"
)

RULES = (
    Rule(
        kind="seccomp-clone3",
        symptom="threads",
        needs=any_of(text(r"clone3"), _NO_THREAD, _NO_CHILD, all_of(_OF_AN_OLD_FILTER, any_of(_OLD_ENGINE, _NEW_GLIBC)), _NEW_ON_OLD),
        unless=_FILTER_NOT_MADE,
        signs=(
            Sign(6, "clone3 is refused with EPERM, and glibc does not fall back then", text(rf"clone3\b[^\n]{{0,500}}{NOT_PERMITTED}|clone3[^\n]{{0,60}}(?:blocked|denied|seccomp|lacked|missing)")),
            Sign(3, "no thread can be started", _NO_THREAD),
            Sign(3, "EPERM: a filter, and no limit", _NO_THREAD_EPERM),
            Sign(4, "EPERM for every program that is to be started", _NO_CHILD),
            Sign(3, "the package manager of a new image cannot start its hooks", _OF_AN_OLD_FILTER),
            Sign(2, "the engine is older than clone3 in its filter", _OLD_ENGINE),
            Sign(1, "something is not permitted there, whatever it is", _NEW_ON_OLD),
            Sign(2, "the image has glibc 2.34 or newer, which calls clone3", _NEW_GLIBC),
            Sign(1, "limits are far away, or a container without a filter works", unquoted(anywhere(r"threads_max|threads_used|pids_max: (?:max|unlimited)|privileged\W{1,3}works|works[^\n]{0,20}privileged|seccomp=unconfined"))),
            Sign(-5, "EAGAIN: a limit, and no filter", text(AGAIN)),
            Sign(-4, "a limit of processes is set", text(r"pids[._-]?(?:max|limit)\W{1,4}\d|pids\.events|--pids-limit")),
        ),
        settles=any_of(text(r"clone3"), _OLD_ENGINE, _NEW_GLIBC, _NO_THREAD_EPERM),
        undecided="whether a filter (EPERM) or a limit (EAGAIN) refuses: `cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.events`, and the engine's version",
    ),
    Rule(
        kind="pids-limit",
        symptom="threads",
        needs=any_of(_NO_THREAD, _NO_PROCESS_EAGAIN, all_of(_MORE_PROCESSES_HELPED, text(_LIMIT_OF_PROCESSES)), text(r"pids[._-]?(?:max|limit|events)|cgroup: fork rejected")),
        signs=(
            Sign(5, "EAGAIN for a new thread or process: a limit is reached", any_of(_NO_PROCESS_EAGAIN, text(r"blockingioerror[^\n]{0,40}11"))),
            Sign(3, "lifting the limit of processes helped", _MORE_PROCESSES_HELPED),
            Sign(2, "a limit of processes is spoken of", text(_LIMIT_OF_PROCESSES)),
            Sign(1, "the program itself speaks of a limit", text(r"process/resource limits|out of system resources|max user processes|process count limits")),
            Sign(7, "the kernel counts refused forks of the container", text(r"cgroup: fork rejected by pids controller|pids\.events[^\n]{0,20}max [1-9]")),
            Sign(3, "no thread can be started", _NO_THREAD),
            Sign(1, "RLIMIT_NPROC is not what limits", text(r"rlimit_nproc\W{1,3}(?:-1|unlimited)|rlimit_nproc -1")),
            Sign(3, "a limit of processes is set", text(r"pids[._-]?(?:max|limit)\W{1,4}\d|--pids-limit|podpidslimit|tasksmax")),
            Sign(-4, "EPERM: a filter, and no limit", _NO_THREAD_EPERM),
        ),
        settles=any_of(text(r"pids[._ -]|fork rejected|tasksmax|podpidslimit"), _MORE_PROCESSES_HELPED),
        undecided="the limit itself: `cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.events` inside",
    ),
    Rule(
        kind="memlock",
        needs=any_of(text(r"ibv_\w+|mlock|memlock|locked[- ]memory|rdma|hostregister|verbs|infiniband|ucx[^\n]{0,40}(?:register|registration)|ulimit[_ ]-?l\b|couldn'?t (?:register|allocate) mr\b|\brlimit type 8\b|register memory"), _MORE_LOCKED_HELPED),
        signs=(
            Sign(5, "memory cannot be registered or locked", text(r"(?:ibv_(?:reg_mr\w*|create_\w+|reg_dmabuf_mr)|mlock(?:all)?|hostregister|reg_?mr|uct_\w+|memory registration|register[^\n]{0,20}memory)[^\n]{0,120}(?:cannot allocate memory|\benomem\b|errno 12\b|not enough|insufficient)|cannot lock memory|failed to (?:lock|mlock|pin)|unable to lock [^\n]{0,20}memory|couldn'?t (?:register|allocate) mr\b|trying to\s+allocate some locked memory|severely limit memory registrations")),
            Sign(5, "more locked memory helped a transfer", _MORE_LOCKED_HELPED),
            Sign(6, "the engine may not raise the limit as far as it is asked to", text(rf"\brlimit type 8\b[^\n]{{0,40}}{NOT_PERMITTED}|setrlimit \W?rlimit_memlock[^\n]{{0,40}}{NOT_PERMITTED}")),
            Sign(3, "memory cannot be registered", text(r"ibv_reg_mr\w*[^\n]{0,40}fail")),
            Sign(-8, "the limit of locked memory is lifted", text(_NO_LIMIT)),
            Sign(3, "the limit of locked memory is named", anywhere(r"rlimit_memlock|memlock|ulimit[_ -]*l\b|max locked memory|locked[- ]memory limit")),
            Sign(2, "the limit is small", told(r"(?:ulimit|memlock|locked)[\w .-]*: [^\n]{0,10}\b(?:64|8192|65536|8388608|67108864|8 ?m|64 ?k)")),
        ),
    ),
    Rule(
        kind="cpu-quota-throttling",
        needs=text(rf"throttl|{_CPUS_LIMITED}|n_threads|nproc|num_thread|suggested max number of worker"),
        signs=(
            Sign(6, "the processes of the container are held up by its share of CPUs", text(r"nr_throttled\W{1,3}[1-9]|(?<!gpu )(?<!thermal )\bthrottled\b(?![^\n]{0,30}(?:gpu|thermal|power))|throttled_(?:usec|time)\W{1,3}[1-9]|cpu[^\n]{0,30}throttl\w+[^\n]{0,30}(?:[1-9]|high|heavy)")),
            Sign(3, "more threads run than it has CPUs", text(r"threads?\b[^\n]{0,60}\b(?:equal to|as many as|every|all)\b[^\n]{0,40}\bcores|n_threads\W{1,4}\d+|num_thread\w*\W{1,4}\d|omp_num_threads|threads? (?:than|>) |cpu_count|\b(?:cores|cpus|processors) of the host\b|\bhost'?s? (?:cores|cpus|core count|cpu count)")),
            Sign(4, "a DataLoader has more workers than it has CPUs", text(r"suggested max number of worker in current system is \d")),
            Sign(2, "CPUs are limited", text(_CPUS_LIMITED)),
            Sign(3, "somebody tells of throttling, or of threads for every core of the host", all_of(text(rf"{_CPUS_LIMITED}|\bcgroup"), text(r"(?<!gpu )(?<!thermal )\bthrottl(?:es|ing)\b(?![^\n]{0,30}(?:gpu|thermal|power))|\b(?:threads?|thread pools?)\b[^\n]{0,40}\bfrom the host\b|\ball (?:available |host )?cores\b"))),
            Sign(2, "with one thread of a library it was tried again", all_of(text(r"\b(?:omp|mkl|openblas|numexpr)_num_threads\W{1,2}1\b"), text(r"\bpods?\b|k8s|kubernetes|container|docker"))),
            Sign(2, "more CPUs are counted than it may use", all_of(text(_CPUS_LIMITED), text(r"\bnproc\W{1,4}\d{2,}|get_num_threads\W{1,6}\d{2,}"))),
            Sign(-3, "the GPU itself is throttled", text(r"thermal throttl|gpu[^\n]{0,30}throttl|power cap")),
        ),
    ),
    Rule(
        kind="cap-sys-ptrace",
        needs=any_of(text(rf"process_vm_(?:readv|writev)|read -1, expected|pidfd_getfd|ptrace|\bkcmp\b|\bcma\b|cross[- ]memory|single[- ]copy|yama|{_ATTACHES}"), _CANNOT_TRACE, remedy(r"sys_ptrace")),
        signs=(
            Sign(6, "reading another process's memory is refused", text(rf"(?:process_vm_(?:readv|writev)|pidfd_getfd|ptrace|\bkcmp|\bcma\w*|cross[- ]memory)[^\n]{{0,160}}(?:{NOT_PERMITTED}|fail|denied|not (?:available|supported)|requires?\b[^\n]{{0,20}}(?:ptrace|capabilit|privilege))|read -1, expected \d+, errno = 1\b|write -1, expected \d+, errno = 1\b|could not attach to (?:the )?process|ptrace_scope")),
            Sign(6, "one process may not trace another", _CANNOT_TRACE),
            Sign(5, "a debugger or a sampler, which reads another process, is refused", text(rf"\b(?:{_ATTACHES})\b[^\n]{{0,120}}(?:{NOT_PERMITTED}|{DENIED})|\b(?:{_ATTACHES})\b[^\n]{{0,120}}\n[^\n]{{0,20}}(?:{NOT_PERMITTED}|{DENIED})")),
            Sign(5, "something is refused, and SYS_PTRACE was what it lacked", all_of(text(rf"{NOT_PERMITTED}|{DENIED}|\b{_ATTACHES}\b"), remedy(r"sys_ptrace"))),
            Sign(1, "the capability is not there", text(r"sys_ptrace|ptrace_scope\W{1,3}[1-3]|user namespaces")),
        ),
    ),
    Rule(
        kind="cap-perfmon",
        needs=any_of(text(r"perf_event|perfmon|locked for profiling|rocprof|(?:hardware|performance) counters|perf_paranoid|paranoid"), _NO_COUNTERS),
        signs=(
            Sign(6, "performance counters are refused", _NO_COUNTERS),
            Sign(5, "the right to open them helped a profiler", all_of(text(r"\bcounters?\b|\bperf\b|rocprof|profil"), remedy(r"perfmon|perf_event_paranoid"))),
            Sign(5, "with every right performance counters can be opened", all_of(text(r"perf_event_open|perfmon"), unquoted(anywhere(EVERY_RIGHT_WORKS)))),
            Sign(1, "the capability is named", text(r"cap_perfmon|perfmon")),
        ),
    ),
    Rule(
        kind="oom-cgroup-137",
        symptom="memory",
        needs=text(rf"{ENDED_137}|\boom\b|memory cgroup|{_KILLED_AT_LIMIT}|{_KILLED_FOR_MEMORY}|{_SIGNAL_9}"),
        signs=(
            Sign(6, "the kernel killed it at the container's limit of memory", text(_KILLED_AT_LIMIT)),
            Sign(5, "it was killed with signal 9", text(_SIGNAL_9)),
            Sign(5, "a process was killed for want of memory", text(_KILLED_FOR_MEMORY)),
            Sign(-3, "the engine recorded no kill for want of memory", _NOT_FOR_MEMORY),
            Sign(-3, "it was stopped on purpose", text(r"docker (?:stop|kill)|received sigterm|grace period|liveness probe|startup probe|stop-sigterm' timed out|forcefully exiting via sigkill")),
            Sign(-2, "shared memory is full", text(r"bus error|insufficient shared memory")),
        ),
        settles=text(r"oomkilled\b(?!\W{1,5}(?:false|no\b))|memory cgroup|memcg|oom_kill|oom-killed|out of memory: killed|exceeded memory limit|\boom[ -]kill|running low on memory"),
        undecided="who sent signal 9: `docker inspect -f '{{.State.OOMKilled}}' NAME`, and `sudo dmesg | grep -i oom`",
    ),
    Rule(
        kind="seccomp-mbind",
        needs=any_of(_NUMA_CALL, text(r"seccomp[^\n]{0,60}(?:mbind|mempolicy|numa)"), all_of(text(r"hsa api call failure"), anywhere(r"seccomp"))),
        signs=(
            Sign(5, "the engine's filter refuses system calls for NUMA placement; programs go on without", _NUMA_CALL),
            Sign(4, "the engine's filter is said to keep them for a capability", text(r"seccomp\b[^\n]{0,80}\b(?:mbind|[sg]et_mempolicy|move_pages)\b[^\n]{0,120}\b(?:cap_sys_nice|blocked|denied|refused|gated?|eperm)|\b(?:mbind|[sg]et_mempolicy)\b[^\n]{0,120}\bcap_sys_nice\b")),
            Sign(1, "the filter is the engine's own", text(r"runtimedefault|docker default|seccomp\W")),
            Sign(4, "an old ROCm fails under the filter", all_of(text(r"hsa api call failure"), anywhere(r"seccomp"), text(r"rocm:? (?:1|2)\.\d|rocm [12]\."))),
        ),
    ),
)  # fmt: skip
