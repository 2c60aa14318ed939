"""What stands next to a kind and is not it: another uid, errno, amount, version or path in the same sentence."""

import pytest

from rocmrun.core.diagnosis.from_report import report_text
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from tests.unit.core.diagnosis.catalogue import found_in, names

DENIED = "Unable to open /dev/kfd read-write: Permission denied"


def sure(text: str) -> set[str]:
    """Return the kinds that are said with confidence."""
    return {found.kind.slug for found in found_in(text) if found.confidence == "high"}


def first(text: str) -> str:
    found = names(found_in(text))
    return found[0] if found else "nothing"


@pytest.mark.parametrize(
    ("owner", "groups", "kind"),
    [
        ("root:992 0660", "1000 44", "render-gid-mismatch"),
        ("root:root 0660", "1000 992", "host-udev-perms"),
        ("root:0 0660", "1000 992", "host-udev-perms"),
        ("root:992 0600", "1000 992", "host-udev-perms"),
        ("root:992 0640", "1000 992", "host-udev-perms"),
        ("65534:65534 0660", "1000 992", "rootless-groups"),
    ],
)
def test_the_owner_of_a_node_decides(owner: str, groups: str, kind: str) -> None:
    """A group that can be given, root's own, none at all, and one that is not mapped."""
    assert first(f'{DENIED}\nnodes: {{"/dev/kfd": "{owner}"}}\ngroups: {groups}') == kind


@pytest.mark.parametrize(
    ("asked", "free", "kinds"),
    [
        ("35.31 GiB", "13.47 GiB", {"oom-vram"}),
        ("3.31 GiB", "780.24 MiB", {"oom-vram"}),
        ("2.00 GiB", "2.10 GiB", {"oom-vram"}),
        ("2.00 MiB", "203.49 GiB", set()),
        ("512.00 KiB", "40.00 MiB", set()),
    ],
)
def test_a_request_far_below_what_is_free_is_no_full_memory(
    asked: str, free: str, kinds: set[str]
) -> None:
    """The amounts count, and not the words around them."""
    text = f"torch.OutOfMemoryError: HIP out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 287.98 GiB of which {free} is free."

    assert sure(text) == kinds


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        ("docker: 64 MiB by default", {"shm-too-small"}),
        ("shm_size: 64m", {"shm-too-small"}),
        ("shm: 64g", set()),
        ('flags: ["--shm-size=32g"]', set()),
    ],
)
def test_shared_memory_that_is_large_is_not_too_small(told: str, kinds: set[str]) -> None:
    """torch guesses at shared memory for every SIGBUS of a worker."""
    guess = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory."

    assert sure(f"{guess}\n{told}") == kinds


def test_a_refused_write_counts_although_shared_memory_is_large() -> None:
    """ENOSPC there is a fact; the size was told."""
    text = "posix_fallocate failed: No space left on device: /dev/shm/nccl-x\nshm: 64g"

    assert sure(text) == {"shm-too-small"}


@pytest.mark.parametrize(
    ("limit", "kinds"),
    [
        ("ulimit -l: 64", {"memlock"}),
        ("ulimit -l: unlimited", set()),
        ('flags: ["--ulimit memlock=-1"]', set()),
    ],
)
def test_a_limit_that_is_lifted_is_not_the_cause(limit: str, kinds: set[str]) -> None:
    """The same errno of the same call."""
    assert sure(f"ibv_reg_mr failed: Cannot allocate memory\n{limit}") == kinds


@pytest.mark.parametrize(
    ("errno", "kind"),
    [
        ("Operation not permitted", "cap-sys-ptrace"),
        ("Bad address", "nothing"),
        ("No such process", "nothing"),
    ],
)
def test_only_eperm_of_a_read_in_another_process_is_a_right(errno: str, kind: str) -> None:
    """EFAULT and ESRCH are faults of the program."""
    assert first(f"process_vm_readv(pid=7) returned -1: {errno}") == kind


@pytest.mark.parametrize(
    ("errno", "kind"),
    [
        ("Operation not permitted", "seccomp-clone3"),
        ("Resource temporarily unavailable", "pids-limit"),
    ],
)
def test_the_errno_of_a_thread_tells_a_filter_from_a_limit(errno: str, kind: str) -> None:
    """EPERM and EAGAIN, in the words of a program that is in no list."""
    assert first(f"munged: Error: Failed to create timer thread: {errno}") == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("OSError: [Errno 30] Read-only file system: '/home/app/.cache/huggingface'", "readonly-cache"),
        ("Cannot fix /data/.cache/x. Error: [Errno 30] Read-only file system: '/tmp_4711'", "readonly-rootfs"),
        ("InductorError: PermissionError: [Errno 13] Permission denied: '/home/app/.triton'", "readonly-cache"),
        ("InductorError: PermissionError: [Errno 13] Permission denied: 'rocm_agent_enumerator'", "path-eacces-nonroot"),
        ("PermissionError: [Errno 13] Permission denied: '/.triton'", "home-not-writable"),
        ("PermissionError: [Errno 13] Permission denied: '/home/worker'", "home-not-writable"),
        ("OSError: [Errno 30] Read-only file system: '/nonexistent'", "home-not-writable"),
        ("OSError: [Errno 30] Read-only file system: '/home/.cache'", "readonly-cache"),
        ("PermissionError: [Errno 13] Permission denied: '/var/lib/worker/.keras'", "readonly-cache"),
        ("PermissionError: [Errno 13] Permission denied: 'tiktoken_cache'", "readonly-cache"),
        ("mkdir: cannot create directory '/home/app/.cache/miopen': Permission denied", "readonly-cache"),
    ],
)  # fmt: skip
def test_the_path_that_was_refused_decides(line: str, kind: str) -> None:
    """What else stands on the line was not refused."""
    assert first(line) == kind


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        ("OOMKilled: true", {"oom-cgroup-137"}),
        ('State: {"ExitCode": 137, "OOMKilled": true}', {"oom-cgroup-137"}),
        ("OOMKilled: false", set()),
        ('State: {"ExitCode": 137, "OOMKilled": false}', set()),
    ],
)
def test_137_without_a_recorded_kill_is_not_sure(told: str, kinds: set[str]) -> None:
    """Signal 9 may come from whoever stops a container."""
    assert sure(f"the container exited with code 137\n{told}") == kinds


@pytest.mark.parametrize(
    "line",
    [
        'exec: "bash": executable file not found in $PATH',
        'exec: "ffprobe": executable file not found in $PATH',
        "ModuleNotFoundError: No module named 'python_multipart'",
        "/opt/python/bin/tool: not found",
        "python3: can't open file '/app/main.py': [Errno 2] No such file or directory",
    ],
)
def test_another_program_that_is_missing_is_no_missing_python(line: str) -> None:
    """Nor is a module, or a script."""
    assert "missing-python" not in names(found_in(line))


def torch_failed(reason: str, **evidence: str) -> str:
    """Return what the rules read of a probe whose import of torch failed."""
    check = ProbeCheck(group="build", name="torch", status="fail", reason=reason, evidence={"executable": "/usr/bin/python3", **evidence})  # fmt: skip
    return report_text(
        ProbeReport(status="fail", reason=f"build: torch: {reason}", checks=(check,))
    )


def test_a_python_without_torch_is_no_broken_torch() -> None:
    """And a torch that is another Python's is named as such."""
    none = found_in(torch_failed("/usr/bin/python3 (Python 3.11.2) has no torch", missing_module="torch"))  # fmt: skip
    other = found_in(
        torch_failed(
            "/usr/bin/python3 (Python 3.11.2) has no torch",
            missing_module="torch",
            torch_elsewhere="/opt/venv/lib/python3.12/site-packages/torch",
            python_elsewhere="/opt/venv/bin/python3.12",
        )
    )

    assert (names(none), names(other)) == (["missing-torch"], ["missing-torch"])
    assert "another Python of the image has one" not in [r.meaning for r in none[0].reasons]
    shown = [line.text for reason in other[0].reasons for line in reason.lines]
    assert "python_elsewhere: /opt/venv/bin/python3.12" in shown


@pytest.mark.parametrize(
    ("reason", "kinds"),
    [
        ("ImportError: libamdhip64.so.7: cannot open shared object file: No such file or directory", ["missing-rocm-libs"]),
        ("ModuleNotFoundError: No module named 'numpy'", []),
        ("ModuleNotFoundError: No module named 'torch._C'", []),
        ("what imports as torch is not PyTorch: _NamespacePath(['/srv/torch'])", []),
        ("this is a CPU build of torch (2.9.1+cpu), rocm was promised", ["python-torch-wheel-overwrote-rocm"]),
    ],
)  # fmt: skip
def test_a_torch_that_does_not_load_is_no_missing_one(reason: str, kinds: list[str]) -> None:
    """A library, a module or a build that is wrong is another cause, or none that is known."""
    assert names(found_in(torch_failed(reason)))[:1] == kinds


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("gfx1103 is not supported by flash_attn", "flash-attn-missing"),
        ("hipBLASLt on an unsupported architecture gfx1103", "arch-not-in-image"),
        ("ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now.", "nothing"),
    ],
)  # fmt: skip
def test_whose_list_lacks_a_target_decides(line: str, kind: str) -> None:
    """An operator's, a library's, and no target's at all."""
    assert first(line) == kind


def test_what_fails_without_the_override_too_is_not_the_override() -> None:
    """The same text, with what somebody tried beside it."""
    fault = "Memory access fault by GPU node-1 on address 0x7f00. Reason: Page not present\nHSA_OVERRIDE_GFX_VERSION=11.0.0\ngpu: gfx1030"

    assert sure(fault) == {"hsa-override-wrong"}
    assert sure(f"{fault}\ntried: without the override, the same fault") == set()


def test_a_filter_of_interfaces_is_not_a_missing_network() -> None:
    """With a variable that names or leaves out interfaces, it may leave the wrong ones."""
    said = "NCCL WARN Bootstrap : no socket interface found"

    assert sure(said) == {"network-none"}
    assert sure(f'{said}\nenv: {{"NCCL_SOCKET_IFNAME": "^lo,docker,veth"}}') == set()
