"""What AMD's usual `docker run` line has, and why a plan leaves it out.

The line is the one of the rocm/pytorch page: --cap-add=SYS_PTRACE --security-opt seccomp=unconfined
--device=/dev/kfd --device=/dev/dri --group-add video --ipc=host --shm-size 8G, as root, on the
default bridge.
"""

from rocmrun.core.plan import LeftOut, Plan


def left_out(plan: Plan) -> tuple[LeftOut, ...]:
    """Return the rights of the usual recipe that *plan* does not have, each with the reason."""
    rocm = plan.probe.accelerator == "rocm"
    candidates = (
        (plan.uid != 0, "user root", "no ROCm library needs it; files and device nodes are opened by uid and group"),
        (rocm and bool(plan.gpus), "device /dev/dri (the whole directory)",
         "compute opens only the render nodes of the selected GPUs; the directory holds card nodes and other GPUs too"),
        (rocm and bool(plan.gpus), "group video (by name)",
         "a name is looked up in the image, where it may be missing or another number; the owners of the nodes are passed as numbers"),
        (plan.ipc != "host", "ipc host", "a sized /dev/shm serves RCCL and data loaders in one container"),
        (plan.seccomp != "unconfined", "seccomp unconfined",
         "measured unneeded for HIP and RCCL on MI355X (ROCm/jax#878); NUMA placement alone wants seccomp:+mempolicy"),
        ("SYS_PTRACE" not in plan.cap_add, "capability SYS_PTRACE", "only debuggers and attaching profilers use it"),
        (True, "the 14 default capabilities", "nothing in a GPU job needs one; a non-root user could not use them"),
        (plan.no_new_privileges, "gaining rights through setuid programs", "no-new-privileges is set"),
        (plan.read_only_root, "a writable root file system", "caches, /tmp and /dev/shm are writable; the image stays what was locked"),
        (plan.network == "none", "the default bridge network", "the profile says network none; [container] network = \"bridge\" asks for one"),
    )  # fmt: skip
    return tuple(
        LeftOut(what=what, reason=reason) for applies, what, reason in candidates if applies
    )
