"""What told reports have in common: a remedy that names the cause, a mode or a right that is spoken of, a fact under another key."""

import pytest

from rocmrun.core.diagnosis.reading import read_text
from tests.unit.core.diagnosis.catalogue import first, found_in, sure
from tests.unit.core.diagnosis.retold_reports import REPORTS


@pytest.mark.parametrize(
    ("source", "kind", "text"), REPORTS, ids=[source for source, _, _ in REPORTS]
)
def test_a_report_that_tells_has_its_kind_first(source: str, kind: str, text: str) -> None:
    """As its thread decided it."""
    assert (source, first(text)) == (source, kind)


@pytest.mark.parametrize("key", ["fix", "change", "suggested", "recommended", "mended", "expected"])
def test_a_remedy_or_a_wish_is_no_fact_about_the_failure(key: str) -> None:
    """Whatever somebody calls it."""
    seen = read_text(f"it fails\n{key}: HIP_VISIBLE_DEVICES=0")

    assert seen.remedies.find("hip_visible_devices")
    assert not seen.told.lines
    assert not seen.env


@pytest.mark.parametrize(
    ("line", "helped"),
    [
        ("Adding build-essential resolved this for me", True),
        ("it works when I pass --shm-size=8g", True),
        ("the workaround is another image", True),
        ("this was not fixed by another image", False),
        ("another image never helped", False),
        ("failed to resolve host", False),
        ("resolved 12 packages in 3 ms", False),
    ],
)
def test_a_sentence_that_says_what_helped_is_a_remedy_as_well(line: str, *, helped: bool) -> None:
    assert bool(read_text(f"it fails\n{line}").remedies.lines) is helped


@pytest.mark.parametrize(
    ("told", "devices"),
    [
        ('devices: ["/dev/dri:/dev/dri"]', ["--device=/dev/dri:/dev/dri"]),
        ("devices_before: /dev/kfd, /dev/dri", ["--device=/dev/kfd", "--device=/dev/dri"]),
        ("devices: /dev/dri without /dev/kfd", []),
        ("fix: /dev/kfd", []),
    ],
)
def test_devices_that_are_listed_were_passed(told: str, devices: list[str]) -> None:
    assert [name for name, _ in read_text(f"it fails\n{told}").flags] == devices


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("OpenCL finds nothing\ndevices: /dev/dri\nfix: pass /dev/kfd too", "kfd-not-mapped"),
        ("OpenCL finds nothing\ndevices: /dev/dri, /dev/kfd\nfix: pass /dev/kfd too", "nothing"),
        ("Failed to open /dev/dri/renderD129 as DRM device node.\nservice_user: media\nfix: usermod -aG render media", "render-gid-mismatch"),
        ("the service sees no sound card\nservice_user: media\nfix: usermod -aG audio media", "nothing"),
        ("/dev/kfd is not writable\nflags: [\"--group-add video\"]\ngroup_of_kfd: render", "render-gid-mismatch"),
        ("a group counts from the next login\nfix: newgrp docker", "stale-session-groups"),
        ("a group counts from the next login\nfix: another image", "nothing"),
        ("podman run: no GPU inside\nfix: crun in place of runc", "rootless-groups"),
        ("docker run: no output inside\nfix: crun in place of runc", "nothing"),
        ("after the update /dev/kfd is owned by root:root with mode 0600", "host-udev-perms"),
        ("$ lsmod | grep amd\nedac_mce_amd 45056 0\nkvm_amd 155648 0", "driver-not-loaded"),
        ("$ lsmod | grep amd\namdgpu 19718144 35\nkvm_amd 155648 0", "nothing"),
        ("Option --gpus has no effect with a Radeon", "wrong-gpus-flag"),
        ("Option --gpus has no effect with a GeForce", "nothing"),
        ("Docker Hub answers 404 for tag 6.4", "image-manifest-unknown"),
        ("the gallery answers 404 for image 6.4", "nothing"),
        ("Segmentation fault in a kernel\nworks: HSA_OVERRIDE_GFX_VERSION=10.3.0", "arch-not-in-image"),
        ("Segmentation fault in a kernel\nworks: PYTHONPATH=.", "nothing"),
    ],
)  # fmt: skip
def test_what_helped_and_what_is_listed_tell_which_node_or_driver_it_was(
    told: str, kind: str
) -> None:
    assert first(told) == kind


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("cc: it does not compile, a header is missing\nfix: apt install build-essential", "image-missing-headers"),
        ("the compiler needs long\nfix: apt install ccache", "nothing"),
        ("error while loading shared libraries: librocsolver.so.0", "missing-rocm-libs"),
        ("error while loading shared libraries: libpq.so.5", "nothing"),
        ("it uses `/` as home and cannot store its settings", "home-not-writable"),
        ("it uses `/srv` as home and cannot store its settings", "nothing"),
        ("numba: PermissionError in a shared directory\nenv: {\"NUMBA_CACHE_DIR\": \"/tmp/n\"}", "readonly-cache"),
        ("a library in dist-packages fails for whoever is non-root\nfix: group-writable", "jit-in-site-packages"),
        ("a library in dist-packages fails for whoever is on Windows\nfix: group-writable", "nothing"),
        ("permission denied below the mount\nvolume: -v /srv/a:/a, with :z it reads", "selinux-mount"),
        ("the default seccomp profile keeps set_mempolicy for CAP_SYS_NICE", "seccomp-mbind"),
        ("suid programs cannot be used in there", "no-new-privileges-setuid"),
        ("gloo: connect [127.0.1.1]:5555: Connection refused\nfix: GLOO_SOCKET_IFNAME=ens3", "network-none"),
        ("postgres: connect [127.0.1.1]:5432: Connection refused\nfix: systemctl start", "nothing"),
        ("two containers cannot share GPU memory by IPC\nsuggested: --pid=container:a", "pid-namespace"),
        ("two containers cannot share a volume\nsuggested: --pid=container:a", "nothing"),
        ("VRAM stays full: a server process is still running after the crash", "gpu-busy"),
        ("the disk stays full: a server process is still running after the crash", "nothing"),
        ("pushing another build to old version tags broke ours", "tag-moved"),
        ("ONNX will fall back to CPU", "cpu-fallback"),
    ],
)  # fmt: skip
def test_what_helped_and_what_is_named_tell_which_file_or_right_it_was(
    told: str, kind: str
) -> None:
    assert first(told) == kind


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        # A mount that is refused with EACCES is a profile's, and no matter of the owner of a file.
        ("bwrap: Failed to make / slave: Permission denied\nflags: [\"--cap-drop=ALL\"]", set()),
        ("cp: /data/x: Permission denied\ncontainer_user: root\nflags: [\"--cap-drop=ALL\"]", {"cap-drop-dac-override"}),
        # A module is no program.
        ("modprobe: ERROR: could not insert 'nvidia': Permission denied", set()),
        # Two devices: the code is there for one of them.
        ("HIP error: invalid device function\ngpu: gfx1032", {"arch-not-in-image"}),
        ("HIP error: invalid device function\ngpu: gfx1032\nfix: HIP_VISIBLE_DEVICES=1", set()),
        # A cache, or the whole root.
        ("create cache dir: Os { code: 30, message: \"Read-only file system\" }", {"readonly-cache"}),
        ("create cache dir: Os { code: 30, message: \"Read-only file system\" }\nreadOnlyRootFilesystem: true", set()),
        ("hipGetDeviceCount: 1\nenv: {\"HIP_VISIBLE_DEVICES\": \"\"}\nexpected: hipErrorNoDevice", set()),
    ],
)  # fmt: skip
def test_what_could_be_another_cause_is_not_sure(told: str, kinds: set[str]) -> None:
    assert sure(told) == kinds


@pytest.mark.parametrize(
    ("override", "gpu", "named"),
    [("9.0.0", "gfx1151", True), ("10.3.0", "gfx1032", False), ("11.0.0", "gfx90a", True)],
)
def test_an_override_of_another_family_is_named(override: str, gpu: str, *, named: bool) -> None:
    """The first number of it against the GPU's."""
    found = found_in(
        f'it falls back to the CPU\nenv: {{"HSA_OVERRIDE_GFX_VERSION": "{override}"}}\ngpu: {gpu}'
    )
    meanings = {reason.meaning for each in found for reason in each.reasons}

    assert ("no GPU that is told is of the family that it claims" in meanings) is named
    assert not named or found[0].kind.slug == "hsa-override-wrong"
