"""Evidence decides: the same text with other facts has another cause."""

from rocmrun.core.diagnosis.finding import Finding
from tests.unit.core.diagnosis.catalogue import found_in, names

DENIED = "Unable to open /dev/kfd read-write: Permission denied"
NODE = "crw-rw---- 1 root 992 235, 0 /dev/kfd"


def first(text: str) -> Finding:
    return found_in(text)[0]


def test_the_errno_decides_before_any_word() -> None:
    """One sentence, four errnos, four causes."""
    causes = {
        errno: first(
            f"rocminfo: cannot open /dev/kfd: {errno}\nflags: ['--device=/dev/kfd']"
        ).kind.slug
        for errno in ("EACCES", "EPERM", "EINVAL", "ENOMEM")
    }

    assert causes == {
        "EACCES": "render-gid-mismatch",
        "EPERM": "cgroup-device-denied",
        "EINVAL": "kfd-open-einval",
        "ENOMEM": "kfd-open-enomem",
    }


def test_a_group_that_is_held_speaks_against_a_missing_one() -> None:
    """The number of the node among the process's groups: it is not the group."""
    lacking = first(f"{DENIED}\n{NODE}\ngroups: 1000 44")
    holding = found_in(f"{DENIED}\n{NODE}\ngroups: 1000 992")

    assert (lacking.kind.slug, lacking.confidence) == ("render-gid-mismatch", "high")
    assert all(f.confidence != "high" for f in holding)


def test_a_mode_that_no_group_can_use_is_the_hosts() -> None:
    """0600 needs a udev rule, 0660 a group."""
    assert first(f"{DENIED}\ncrw------- 1 root root 235, 0 /dev/kfd").kind.slug == "host-udev-perms"


def test_mapped_ids_make_it_a_matter_of_the_engine() -> None:
    """With the same denial, a user namespace rules a plain missing group out."""
    found = first(f"{DENIED}\nuid_map: 0 100000 65536\n{NODE}\ngroups: 0")

    assert found.kind.slug == "rootless-groups"


def test_what_cannot_be_told_is_said() -> None:
    """A bare denial may have several causes: none is sure, and what decides is named."""
    found = found_in(DENIED)

    assert all(f.confidence != "high" for f in found)
    assert "/proc/PID/status" in found[0].undecided


def test_rivals_with_the_same_strength_are_not_sure() -> None:
    """Both a filter and a limit stop threads."""
    found = found_in("RuntimeError: can't start new thread")

    assert {"seccomp-clone3", "pids-limit"} == set(names(found))
    assert {f.confidence for f in found} == {"low"} or all(f.undecided for f in found)


def test_several_causes_come_in_the_order_of_mending() -> None:
    """The host's driver before the image's targets, these before the cache."""
    found = found_in(
        "OSError: [Errno 30] Read-only file system: '/home/app/.triton/cache'\n"
        "torch.AcceleratorError: HIP error: no kernel image is available for execution on the device\n"
        "modprobe: ERROR: could not insert 'amdgpu': Key was rejected by service\n"
    )

    assert names(found)[:3] == ["driver-not-loaded", "arch-not-in-image", "readonly-cache"]


def test_noise_is_dropped_beside_a_cause_and_named_alone() -> None:
    """amdgpu.ids stands in every log."""
    noise = "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory"

    assert names(found_in(noise)) == ["libdrm-ids-warning"]
    assert names(found_in(f"{noise}\nHIP error: invalid device function")) == ["arch-not-in-image"]


def test_look_alikes_are_ruled_out_by_evidence() -> None:
    """A finding says which of its look-alikes the evidence speaks against."""
    found = first(f"{DENIED}\nuid_map: 0 100000 65536\n{NODE}\ngroups: 0")

    standing = {other.kind: other.standing for other in found.look_alikes}
    assert standing["render-gid-mismatch"] == "ruled out"


def test_what_helped_somebody_is_no_setting_of_the_failure() -> None:
    """A workaround that names the override does not make the override the cause."""
    found = first("HIP error: invalid device function\nworkaround: HSA_OVERRIDE_GFX_VERSION=11.0.0")

    assert found.kind.slug == "arch-not-in-image"


def test_reading_a_healthy_node_with_cat_is_no_fault() -> None:
    """A read of /dev/kfd answers EINVAL on every machine."""
    assert names(found_in("cat: /dev/kfd: Invalid argument")) == []


def test_facts_may_come_as_one_json_object() -> None:
    """A line that is an object, and no wrapper of a log, is facts."""
    facts = '{"nodes": {"/dev/kfd": "root:992 0660"}, "groups": ["1000", "44"]}'
    found = first(f"{DENIED}\n{facts}")

    assert (found.kind.slug, found.confidence) == ("render-gid-mismatch", "high")
