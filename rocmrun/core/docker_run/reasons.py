"""Why an option of a published line is left out on the baseline, and what to write where the job does need it."""

import re

from rocmrun.core.docker_run.options import SAME, RunOption
from rocmrun.core.docker_run.shell_words import plain

_CAPABILITIES = {
    "SYS_PTRACE": 'for debuggers alone; for them: [debug] privileges = ["cap:SYS_PTRACE"], which --debug turns on',
    "SYS_ADMIN": "profilers and perf copy it; with root it is the host. No kernel of ROCm needs it",
    "IPC_LOCK": 'the GPU driver pins memory itself; RDMA needs the limit alone: grant = "ulimit:memlock=-1"',
    "SYS_NICE": 'unlocks mbind; the narrow form is [[privileges]] grant = "seccomp:+mempolicy" with a reason',
}
_SECURITY = {
    "seccomp": 'only programs that place memory need more than the engine\'s own profile: [[privileges]] grant = "seccomp:+mempolicy"',
    "apparmor": "no reason is published for it; the engine's own profile stays",
    "label": 'SELinux hosts have a narrower way: setsebool container_use_devices 1, and selinux = "shared" under [[mounts]]',
    "systempaths": "shows the kernel's settings; nothing of ROCm reads them",
}
_ULIMITS = {
    "memlock": 'pinned GPU memory does not count against it; RDMA needs it: [[privileges]] grant = "ulimit:memlock=-1"',
    "nofile": "the baseline has 65536",
    "core": "the baseline has 0: core dumps hold secrets",
}
# A path of [[devices]]; what matches first counts.
_DEVICES = (
    (r"/dev/dri/card\d+/?", "card nodes are for displays; compute opens the render node"),
    (r"/dev/infiniband.*", "RDMA between hosts alone; the shipped profile rdma-train has it, one host needs none"),
    (r"/dev/(mem|kmem|port)", "the host's memory; never, and ROCm does not use it"),
    (r"/dev/dxg", "WSL has no KFD, which this needs"),
    (r"/dev/renderD\d+", "no host has that node; render nodes are below /dev/dri"),
    (r".*", "if the job opens it: [[devices]] path and reason"),
)  # fmt: skip
_OPTIONS = {
    "group-add": "names are looked up in the image, where they can be other groups; the numbers of the groups that own the nodes on this host are passed",
    "device": "GPUs are selected: [gpus] select, or --gpu; any other node under [[devices]], with a reason",
    "gpus": "GPUs are selected: [gpus] select, or --gpu",
    "cap-add": 'under [[privileges]], with a reason: grant = "cap:NAME"',
    "security-opt": "under [[privileges]], with a reason: docs/grants.md",
    "ulimit": 'under [[privileges]], with a reason: grant = "ulimit:NAME=N"',
    "user": "in the profile: [container] user",
    "workdir": "in the profile: [container] workdir",
    "privileged": "never: it is root on the host; every single thing that it is used for has a key of its own",
    "ipc": "the host's shared memory is everybody's; the container has its own, of shm_size",
    "pid": "shows and reaches every process of the host; only tracers match host processes",
    "uts": "the container has its own name",
    "userns": "the engine's own setting stays",
    "cgroupns": "private, always",
    "runtime": "devices are passed by rocmrun, not by a vendor's runtime",
    "device-cgroup-rule": "covers devices that come later; the nodes of the selected GPUs are passed",
    "restart": "a container that the engine starts at boot runs unproved: let a systemd unit run rocmrun (rocmrun profiles unit); or restart = \"on-failure:3\"",
    "env-file": "write its variables under [container.env], and the names of secrets under env_from",
    "memory-swap": "memory is limited, and swap is not added to it",
    "memory-reservation": "the memory limit stands alone",
    "volumes-from": "write the mounts under [[mounts]]",
    "publish-all": "name each port under ports, with an address",
    "add-host": "there is no key for it",
    "dns": "the engine's own resolver stays",
    "hostname": "the container has a name of its own",
    "sysctl": 'if the job needs it: [[privileges]] grant = "sysctl:KEY=VALUE" with a reason',
    "health-cmd": "there is a key for it: health, under [container]",
    "secret": "there is a table for it: [[secrets]]",
}  # fmt: skip
# What the baseline has anyway, or what is said at the launch rather than in a profile.
NOTHING_LOST = frozenset({
    "attach", "cap-drop", "cidfile", "detach", "detach-keys", "help", "init", "interactive", "name", "pull",
    "quiet", "read-only", "replace", "rm", "sig-proxy", "tty", "log-driver", "log-opt", "label", "expose",
    "disable-content-trust",
})  # fmt: skip


def why_no_option(name: str) -> str | None:
    """Return why an option of `docker run` is none here; None for what is no option of docker's that would be missed."""
    plain_name = name.lstrip("-")
    return _OPTIONS.get(SAME.get(plain_name, plain_name))


def reason_for(option: RunOption) -> str:
    """Return why *option* is left out."""
    value = plain(option.value)
    if option.name == "cap-add":
        name = value.upper().removeprefix("CAP_")
        return _CAPABILITIES.get(
            name, f'if the job needs it: [[privileges]] grant = "cap:{name}" with a reason'
        )
    if option.name == "security-opt":
        return _SECURITY.get(re.split("[=:]", value)[0], "the baseline's own stays")
    if option.name == "ulimit":
        name = value.partition("=")[0]
        return _ULIMITS.get(
            name, f'if the job needs it: [[privileges]] grant = "ulimit:{value}" with a reason'
        )
    if option.name == "device":
        return next(
            why for pattern, why in _DEVICES if re.fullmatch(pattern, value.partition(":")[0])
        )
    return _OPTIONS.get(option.name, "there is no key for it")
