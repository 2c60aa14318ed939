"""What an engine says of itself: refused where the plan would not be true, named where a person may accept it."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.engine_check import check_engine
from rocmrun.core.plan import Plan
from rocmrun.errors import EngineUnsuitable
from tests.builders import ENGINE, SECCOMP, host, plan, privileges

CPU = {"gpus": {"select": ["none"]}, "accelerator": "cpu", "cache": {"mode": "tmpfs"}}
NO_BINDS = {**CPU, "mounts": [{"type": "volume", "source": "data", "target": "/data"}]}


def refusal(job: Plan, **facts: Any) -> str:
    """Return why an engine with these facts is refused, with the hint."""
    with pytest.raises(EngineUnsuitable) as caught:
        check_engine(replace(ENGINE, **facts), host(), job)
    assert caught.value.hint
    return f"{caught.value.message} ({caught.value.hint})"


def notes(job: Plan, **facts: Any) -> tuple[str, ...]:
    return check_engine(replace(ENGINE, **facts), host(), job)


def test_the_usual_engine_is_not_spoken_of() -> None:
    assert notes(plan()) == ()


def test_docker_desktop_is_refused_whatever_the_plan_passes() -> None:
    assert "virtual machine" in refusal(plan(NO_BINDS), operating_system="Docker Desktop 4.40")


@pytest.mark.parametrize("root", ["/var/snap/docker/common/var-lib-docker", "/snap/docker"])
def test_a_snap_is_refused(root: str) -> None:
    assert "snap remove docker" in refusal(plan(NO_BINDS), root_directory=root)


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.5:2375", "ssh://me@gpu-1", "https://docker.example.com", "tcp://[fe80::1]:2375"]
)  # fmt: skip
def test_an_engine_on_another_machine_is_refused_where_this_host_matters(address: str) -> None:
    """Its kernel may well have the same name: machines of a fleet do."""
    assert f"the engine at {address} is on another machine" in refusal(plan(), address=address)
    assert notes(plan(NO_BINDS), address=address) == ()


@pytest.mark.parametrize(
    "address",
    ["unix:///run/user/1000/docker.sock", "tcp://127.0.0.1:2375", "tcp://localhost", "tcp://[::1]:1",
     "ssh://me@localhost:22/x", "/var/run/docker.sock"],
)  # fmt: skip
def test_an_address_of_this_machine_is_accepted(address: str) -> None:
    assert notes(plan(), address=address) == ()


def test_another_kernel_is_refused_where_devices_or_binds_are_passed() -> None:
    bind = {**CPU, "mounts": [{"source": "/srv", "target": "/srv"}]}

    for job in (plan(), plan(bind)):
        assert "the engine runs on kernel 5.15.0, this host on" in refusal(job, kernel="5.15.0")
    assert notes(plan(NO_BINDS), kernel="5.15.0") == ()


def test_the_kernel_is_not_compared_with_one_that_was_read_elsewhere() -> None:
    """Saved facts and --host-root describe another machine on purpose."""
    engine = replace(ENGINE, kernel="5.15.0")

    assert check_engine(engine, host(root="/tmp/host"), plan()) == ()
    assert check_engine(engine, host(kernel=None), plan()) == ()


def test_an_engine_that_names_no_kernel_is_named() -> None:
    assert notes(plan(NO_BINDS), kernel=None) == ()
    (note,) = notes(plan(), kernel=None)
    assert "does not say on which kernel" in note


@pytest.mark.parametrize("runtime", ["runsc", "kata", "sysbox-runc", "nvidia"])
def test_another_default_runtime_is_refused(runtime: str) -> None:
    assert f"default runtime is {runtime}" in refusal(plan(NO_BINDS), default_runtime=runtime)


@pytest.mark.parametrize("runtime", [None, "runc", "crun", "io.containerd.runc.v2"])
def test_runc_and_crun_are_accepted(runtime: str | None) -> None:
    assert notes(plan(), default_runtime=runtime) == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "has no seccomp"),
        (("name=apparmor",), "has no seccomp"),
        (("name=seccomp,profile=unconfined",), "unconfined seccomp profile"),
    ],
)
def test_no_seccomp_is_refused(options: tuple[str, ...], said: str) -> None:
    assert said in refusal(plan(), security_options=options)


def test_no_seccomp_is_accepted_where_it_is_written_down() -> None:
    assert notes(plan(privileges("seccomp:unconfined")), security_options=()) == ()


def test_a_profile_by_value_needs_an_engine_that_can_apply_one() -> None:
    job = plan(privileges("seccomp:/etc/s.json"), seccomp_files={"/etc/s.json": SECCOMP})

    assert "has no seccomp" in refusal(job, security_options=())
    assert notes(job, security_options=("name=seccomp,profile=unconfined",)) == ()
    assert notes(job, security_options=("name=seccomp,profile=/etc/site.json",)) == ()


@pytest.mark.parametrize("profile", ["default", "builtin"])
def test_the_engines_own_profile_needs_no_word(profile: str) -> None:
    assert notes(plan(), security_options=(f"name=seccomp,profile={profile}",)) == ()


def test_a_profile_of_the_site_is_named() -> None:
    (note,) = notes(plan(), security_options=("name=seccomp,profile=/etc/docker/site.json",))

    assert "/etc/docker/site.json" in note


def test_rootless_and_mapped_engines_are_named() -> None:
    seccomp = "name=seccomp,profile=default"
    job = plan(NO_BINDS)

    (rootless,) = notes(job, security_options=(seccomp, "name=rootless"))
    (mapped,) = notes(job, security_options=(seccomp, "name=userns"))

    assert "device cgroups do not apply" in rootless
    assert "userns-remap" in mapped


def test_an_lsm_of_the_host_that_the_engine_does_not_use_is_named() -> None:
    selinux, apparmor = host(selinux="enforcing"), host(apparmor=True)
    with_both = replace(ENGINE, security_options=(*ENGINE.security_options, "name=apparmor", "name=selinux"))  # fmt: skip

    assert "does not use SELinux" in check_engine(ENGINE, selinux, plan())[0]
    assert "does not use AppArmor" in check_engine(ENGINE, apparmor, plan())[0]
    assert check_engine(with_both, selinux, plan()) == ()
    assert check_engine(with_both, apparmor, plan()) == ()
    assert check_engine(ENGINE, host(selinux="permissive", apparmor=False), plan()) == ()
    assert check_engine(ENGINE, selinux, plan(privileges("label:disable"))) == ()
    assert check_engine(ENGINE, apparmor, plan(privileges("apparmor:unconfined"))) == ()


@pytest.mark.parametrize(
    ("runtime", "why"),
    [
        ("runsc", "gVisor"),
        ("kata-qemu", "virtual machine"),
        ("sysbox-runc", "maps every id"),
        ("amd", "AMD_VISIBLE_DEVICES"),
        ("nvidia", "NVIDIA_VISIBLE_DEVICES"),
        ("youki", "not known"),
    ],
)
def test_why_a_runtime_cannot_do_the_job_is_said(runtime: str, why: str) -> None:
    assert why in refusal(plan(), default_runtime=runtime)


def test_mirrors_are_named_where_something_may_be_pulled() -> None:
    mirrors = ("https://mirror.example.com/",)
    local = plan().with_changes(image=replace(plan().image, source="local"))

    (note,) = notes(plan(), mirrors=mirrors)
    assert "through https://mirror.example.com/" in note
    assert notes(local, mirrors=mirrors) == ()


def test_a_podman_that_keeps_no_limits_is_refused() -> None:
    """Rootless on cgroup v1; on v2 it keeps them, and a rootful one does on both."""
    rootless = {"security_options": ("name=seccomp,profile=default", "name=rootless")}

    said = refusal(plan(), kind="podman", cgroup_version=1, **rootless)

    assert "keeps no limit of memory, processes or open files" in said
    assert "/run/podman/podman.sock" in said
    assert len(notes(plan(), kind="podman", cgroup_version=2, **rootless)) == 1
    assert notes(plan(), kind="podman", cgroup_version=1) == ()
