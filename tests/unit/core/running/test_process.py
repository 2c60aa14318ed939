"""A process in /proc: time, GPU nodes, and what fdinfo tells of them."""

from rocmrun.core.running.process import (
    DrmClient,
    Process,
    distinct,
    is_gpu_node,
    parse_fdinfo,
    parse_stat,
)

STAT = "42 (python3 (x) y) S 1 42 42 0 -1 4194560 10 0 0 0 150 50 0 0 20 0 3 0 100 1 1"
# Keys as the kernel's amdgpu_fdinfo.c prints them.
FDINFO = """pos:\t0
flags:\t02100002
drm-driver:\tamdgpu
drm-pdev:\t0000:63:00.0
drm-client-id:\t17
drm-memory-vram:\t2048 KiB
drm-memory-gtt: \t16 KiB
drm-engine-gfx:\t500000000 ns
drm-engine-compute:\t1500000000 ns
drm-engine-capacity-dec:\t2
"""


def test_a_name_may_hold_anything() -> None:
    """Parentheses and blanks too; ticks become seconds."""
    assert parse_stat(STAT, 100) == ("python3 (x) y", 2.0, False)
    assert parse_stat(STAT.replace(") S ", ") R "), 100) == ("python3 (x) y", 2.0, True)


def test_a_process_that_has_ended_is_none() -> None:
    """A zombie uses nothing any more."""
    assert parse_stat(STAT.replace(") S ", ") Z "), 100) is None
    assert parse_stat("", 100) is None


def test_fdinfo_tells_engine_time_and_memory() -> None:
    """Of all engines together; another key with that beginning is no time."""
    assert parse_fdinfo(FDINFO) == DrmClient(
        device="0000:63:00.0", client="17", engine_seconds=2.0, vram_bytes=2 << 20
    )


def test_newer_kernels_have_another_key_for_memory() -> None:
    """drm-resident-vram, with or without a unit."""
    assert parse_fdinfo("drm-driver: amdgpu\ndrm-resident-vram: 4096\n") == DrmClient(
        device="", client="", vram_bytes=4096
    )
    assert parse_fdinfo("drm-driver: amdgpu\ndrm-resident-vram: x\n") == DrmClient(device="", client="")  # fmt: skip


def test_any_other_file_is_no_client() -> None:
    """/dev/kfd has the usual lines alone."""
    assert parse_fdinfo("pos:\t0\nflags:\t02\nmnt_id:\t9\n") is None


def test_a_duplicated_descriptor_counts_once() -> None:
    """As the kernel's page on these keys asks for."""
    one = DrmClient(device="0000:63:00.0", client="17", engine_seconds=1)
    assert distinct([one, one, DrmClient(device="0000:64:00.0", client="17")]) == (
        one,
        DrmClient(device="0000:64:00.0", client="17"),
    )


def test_the_nodes_of_a_process() -> None:
    """By number; where nobody may look there is none to tell."""
    nodes = frozenset({"/dev/kfd", "/dev/dri/renderD129"})
    process = Process(pid=1, name="x", cpu_seconds=0, nodes=nodes)
    hidden = Process(pid=1, name="x", cpu_seconds=0)

    assert (process.holds_kfd, process.minors) == (True, frozenset({129}))
    assert (hidden.holds_kfd, hidden.minors) == (False, frozenset())
    assert [is_gpu_node(path) for path in ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/card0", "/dev/null")] == [True, True, False, False]  # fmt: skip
