"""System calls in groups that a job either uses or does not, and the floor that every container starts on. Values only.

Names and cuts are those of systemd.exec(5), SystemCallFilter=, where it has one that fits; a group leaves a filter
whole or stays whole, so that an error path which uses its second call is not cut off from its first. Severity runs from
0 to 10 and only ranks: of groups that can stand in for each other the milder one is kept.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGroup:
    """Calls that go or stay together.

    Attributes:
        name: "@aio"; as systemd calls it where the group is systemd's.
        severity: 0 to 10.
        exposes: What of the kernel they open.
        wanted_by: What is known to use them around ROCm; "" where nothing is.
        source: Where the group is from.
        quiet: Whether jobs are known to lose something without it and to say nothing.
        architectures: Architectures beside the native one that go with it, in libseccomp's words.
    """

    name: str
    severity: float
    calls: frozenset[str]
    exposes: str
    wanted_by: str = ""
    source: str = ""
    quiet: bool = False
    architectures: frozenset[str] = frozenset()


def _calls(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What a program started by a C library, and the init process around it, cannot do without. It is in no group.
FLOOR = _calls("""
    access arch_prctl brk clock_getres clock_gettime clock_nanosleep clone clone3 close dup dup2 dup3 execve exit
    exit_group faccessat faccessat2 fcntl fork fstat fstatfs futex getcwd getdents getdents64 getegid geteuid getgid
    getpid getppid getrandom gettid getuid ioctl kill lseek lstat madvise mmap mprotect mremap munmap nanosleep
    newfstatat open openat pipe pipe2 poll ppoll prctl pread64 prlimit64 read readlink readlinkat readv
    restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sched_getaffinity
    sched_yield set_robust_list set_tid_address setpgid sigaltstack stat statfs statx tgkill tkill uname vfork wait4
    waitid write writev
""")  # fmt: skip
# Without no-new-privileges runc loads the filter before it changes user and drops capabilities, and its threads run
# under it until execve; with it the filter comes last (opencontainers/runc#789, #1569, #2097; measured: 31 calls
# against 14 on Docker 20.10).
RUNTIME_FLOOR = FLOOR | _calls("""
    capget capset chdir close_range epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 fchdir fchown getgroups
    openat2 setgid setgroups setuid umask unlinkat
""")  # fmt: skip


def floor(*, no_new_privileges: bool) -> frozenset[str]:
    """Return the calls that no filter loses, for a container with or without no-new-privileges."""
    return FLOOR if no_new_privileges else RUNTIME_FLOOR


def group_of(name: str) -> CallGroup:
    """Return the group of that name.

    Raises:
        KeyError: there is none.
    """
    return _BY_NAME[name]


_MAN = "man 2"


def _group(
    name: str,
    severity: float,
    calls: str,
    exposes: str,
    source: str,
    wanted_by: str = "",
    *,
    quiet: bool = False,
    architectures: str = "",
) -> CallGroup:
    return CallGroup(
        name=name, severity=severity, calls=_calls(calls), exposes=exposes,
        wanted_by=wanted_by, source=source, quiet=quiet, architectures=_calls(architectures),
    )  # fmt: skip


GROUPS: tuple[CallGroup, ...] = (
    _group("@landlock", 0.3, "landlock_add_rule landlock_create_ruleset landlock_restrict_self",
           "a program's own rules for files, which only take away", "man 7 landlock"),
    _group("@event-fds", 0.5, "eventfd eventfd2 signalfd signalfd4", "events and signals as descriptors",
           f"{_MAN} eventfd, signalfd; part of systemd's @io-event and @signal"),
    _group("@timer", 0.6, """alarm getitimer setitimer timer_create timer_delete timer_getoverrun timer_gettime
           timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64
           timerfd_settime timerfd_settime64 times""", "timers, each of which the kernel keeps",
           "systemd.exec(5) @timer"),
    _group("@inotify", 0.8, "inotify_add_watch inotify_init inotify_init1 inotify_rm_watch",
           "watches on files, which the kernel keeps", "man 7 inotify; part of systemd's @file-system"),
    _group("@memlock", 0.8, "mlock mlock2 mlockall munlock munlockall",
           "memory that cannot be swapped, up to the limit", "systemd.exec(5) @memlock", "RDMA registration"),
    _group("@mempolicy", 1.0, """get_mempolicy mbind migrate_pages move_pages set_mempolicy
           set_mempolicy_home_node""", "on which node memory lies", "man 7 numa; part of systemd's @resources",
           "NUMA placement: libhsakmt, numactl, vLLM and SGLang", quiet=True),
    _group("@priorities", 1.0, "ioprio_set nice setpriority", "its own priority for processor and disk",
           f"{_MAN} setpriority, ioprio_set; part of systemd's @resources"),
    _group("@scheduling", 1.0, "sched_setaffinity sched_setattr sched_setparam sched_setscheduler",
           "on which processors its threads run, and in which class",
           "man 7 sched; part of systemd's @resources", "RCCL and libhsa bind threads"),
    _group("@pkey", 1.0, "pkey_alloc pkey_free pkey_mprotect", "protection keys of memory",
           "systemd.exec(5) @pkey"),
    _group("@posix-mq", 1.2, """mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend
           mq_timedsend_time64 mq_unlink""", "message queues, a file system of the kernel",
           "man 7 mq_overview; part of systemd's @ipc"),
    _group("@memfd-secret", 1.5, "memfd_secret", "memory that the kernel itself does not map",
           f"{_MAN} memfd_secret"),
    _group("@xattr", 1.5, """fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr
           listxattrat llistxattr lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat""",
           "extended attributes: code of every file system that is mounted",
           "man 7 xattr; part of systemd's @file-system"),
    _group("@mknod", 2.0, "mknod mknodat", "fifos and sockets as files; device nodes with MKNOD",
           f"{_MAN} mknod; part of systemd's @file-system"),
    _group("@obsolete", 2.0, """_sysctl afs_syscall bdflush create_module epoll_ctl_old epoll_wait_old ftime
           get_kernel_syms getpmsg lookup_dcookie nfsservctl putpmsg query_module remap_file_pages security sysfs
           tuxcall uselib ustat vserver""", "old code that hardly anything reaches any more",
           "systemd.exec(5) @obsolete, and man 2 of calls that are deprecated since"),
    _group("@personality", 2.0, "personality", "execution domains; what a filter leaves of them",
           f"{_MAN} personality", "gdb turns address randomisation off with it"),
    _group("@sysv-ipc", 2.0, """ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat
           shmctl shmdt shmget""", "System V shared memory, semaphores and queues",
           "man 7 sysvipc; part of systemd's @ipc"),
    _group("@chown", 2.2, "chown chown32 fchown fchown32 fchownat lchown lchown32", "who owns files",
           "systemd.exec(5) @chown", "installers, tar"),
    _group("@aio", 2.5, """io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup
           io_submit""", "asynchronous reads and writes of files", "systemd.exec(5) @aio, without io_uring"),
    _group("@pidfd", 2.5, "pidfd_getfd pidfd_open pidfd_send_signal process_mrelease",
           "other processes of the container by descriptor", f"{_MAN} pidfd_open, pidfd_getfd",
           "rocSHMEM and torch share memory by descriptor"),
    _group("@setuid", 2.5, """setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setregid
           setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setuid setuid32""",
           "changing user and group", "systemd.exec(5) @setuid", "sudo, programs that drop root"),
    _group("@splice", 2.5, "splice tee vmsplice", "pages moved between pipes and files without a copy",
           f"{_MAN} splice, tee, vmsplice"),
    _group("@fanotify", 3.0, "fanotify_init fanotify_mark", "watching whole file systems", "man 7 fanotify"),
    _group("@clock", 3.0, """adjtimex clock_adjtime clock_adjtime64 clock_settime clock_settime64 settimeofday
           stime""", "reading how the clock is steered; setting it with SYS_TIME", "systemd.exec(5) @clock"),
    _group("@file-handles", 3.0, "name_to_handle_at open_by_handle_at",
           "files by handle, past directories that are closed", f"{_MAN} open_by_handle_at"),
    _group("@cpu-emulation", 3.0, "modify_ldt subpage_prot switch_endian vm86 vm86old",
           "segments and modes of the processor", "systemd.exec(5) @cpu-emulation"),
    _group("@keyring", 4.0, "add_key keyctl request_key", "the kernel's keys, which know no namespace of their own",
           "systemd.exec(5) @keyring; man 7 keyrings"),
    _group("@chroot", 4.0, "chroot pivot_root", "another root directory", f"{_MAN} chroot"),
    _group("@quota", 4.0, "quotactl quotactl_fd", "limits of file systems", f"{_MAN} quotactl"),
    _group("@network-io", 4.0, """accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom
           recvmmsg recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown socket socketcall
           socketpair""", "sockets of every family that the rest of the filter leaves",
           "systemd.exec(5) @network-io", "RCCL's bootstrap, Gloo, asyncio, multiprocessing; HIP IPC"),
    _group("@debug", 5.0, """kcmp process_madvise process_vm_readv process_vm_writev ptrace rtas
           s390_runtime_instr""", "memory and registers of other processes of the same user",
           "systemd.exec(5) @debug, with the calls of man 2 process_vm_readv",
           "OpenMPI's and UCX's copies between processes; debuggers", quiet=True),
    _group("@userfaultfd", 5.0, "userfaultfd", "page faults handled by the program", f"{_MAN} userfaultfd"),
    _group("@32-bit", 5.5, """_llseek _newselect clock_getres_time64 clock_gettime64 clock_nanosleep_time64
           fadvise64_64 fcntl64 fstat64 fstatat64 fstatfs64 ftruncate64 futex_time64 getegid32 geteuid32 getgid32
           getgroups32 getresgid32 getresuid32 getuid32 lstat64 mmap2 ppoll_time64 pselect6_time64
           rt_sigtimedwait_time64 sched_rr_get_interval_time64 sendfile64 sigprocmask sigreturn stat64 statfs64
           truncate64 ugetrlimit utimensat_time64 waitpid""",
           "the kernel's second set of calls, for 32-bit programs, whose arguments it converts",
           "man 2 syscall; names that libseccomp 2.5 resolves for x86 and not for x86_64",
           "32-bit programs", architectures="SCMP_ARCH_X86 SCMP_ARCH_X32 SCMP_ARCH_ARM"),
    _group("@io-uring", 6.0, "io_uring_enter io_uring_register io_uring_setup",
           "a queue of requests past the filter: what it asks for is filtered no more",
           "man 7 io_uring; out of moby's default since 2023-11"),
    _group("@kernel-events", 7.0, """bpf lsm_get_self_attr lsm_list_modules lsm_set_self_attr perf_event_open
           syslog""", "programs, counters and messages of the kernel", f"{_MAN} bpf, perf_event_open, syslog",
           "CPU counters of profilers"),
    _group("@mount", 7.0, """fsconfig fsmount fsopen fspick listmount mount mount_setattr move_mount open_tree
           open_tree_attr statmount umount umount2""", "mounts, with the code of every file system (CVE-2022-0185)",
           "systemd.exec(5) @mount; man 2 mount"),
    _group("@namespaces", 7.0, "setdomainname sethostname setns unshare", "namespaces of its own and of others",
           "man 7 namespaces"),
    _group("@administration", 8.0, """acct delete_module finit_module init_module ioperm iopl kexec_file_load
           kexec_load reboot swapoff swapon vhangup""", "the host: modules, ports, swap, restart",
           "systemd.exec(5) @module, @raw-io, @reboot, @swap"),
)  # fmt: skip

_BY_NAME = {group.name: group for group in GROUPS}
