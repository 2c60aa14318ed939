"""What facts about nodes and engines say by themselves."""

import pytest

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import DeviceNode, Gpu


@pytest.mark.parametrize(
    ("mode", "owner", "group", "others"),
    [
        (0o666, True, True, True),
        (0o660, True, True, False),
        (0o600, True, False, False),
        (0o640, True, False, False),
        (0o604, True, False, False),
        (0o006, False, False, True),
    ],
)
def test_open_read_write_needs_both_bits(
    mode: int, *, owner: bool, group: bool, others: bool
) -> None:
    """KFD and render nodes are opened O_RDWR: one bit of two opens nothing."""
    node = DeviceNode(path="/dev/kfd", host_path="/dev/kfd", mode=mode, uid=0, gid=44)

    assert (node.owner_writable, node.group_writable, node.world_writable) == (owner, group, others)


def test_a_label_names_what_is_known() -> None:
    """For messages about one GPU."""
    known = Gpu(index=3, node=4, gfx="gfx942", pci_address="0000:05:00.0", partition=2)

    assert known.label == "GPU 3 (gfx942, 0000:05:00.0 partition 2)"
    assert Gpu(index=0, node=1).label == "GPU 0 (gfx unknown, no PCI address)"


@pytest.mark.parametrize(
    ("options", "rootless", "userns", "seccomp"),
    [
        ((), False, False, None),
        (("name=seccomp,profile=builtin", "name=cgroupns"), False, False, "builtin"),
        (("name=rootless", "name=seccomp,profile=/etc/s.json"), True, False, "/etc/s.json"),
        (("name=userns", "name=seccomp"), False, True, "default"),
    ],
)
def test_an_engines_security_options_are_read(
    options: tuple[str, ...], *, rootless: bool, userns: bool, seccomp: str | None
) -> None:
    """As /info lists them."""
    engine = EngineFacts(
        kind="docker", version="28", api_version="1.48", address="x", security_options=options
    )

    assert (engine.rootless, engine.userns_remap) == (rootless, userns)
    assert engine.seccomp_profile == seccomp
