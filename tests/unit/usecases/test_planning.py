"""Planning shows everything, starts nothing, and reads no more than it must."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.command_line import Options
from rocmrun.core.host_json import host_to_json
from rocmrun.core.path_facts import VolumeFacts
from rocmrun.core.run import PullEvent
from rocmrun.errors import (
    EngineUnreachable,
    EngineUnsuitable,
    InputError,
    PlanRefused,
    ProfileInvalid,
)
from rocmrun.usecases.planning import plan_profile
from rocmrun.usecases.prepare import Prepared, prepare
from tests.builders import ENGINE, IMAGE, IMAGE_ID, granted, host, node
from tests.fakes import FakeEngine
from tests.hosts import MI210_X8
from tests.unit.usecases.stage import CPU_JOB, GPU_JOB, PULLED, REF, Stage, an_engine


def no_pull() -> Any:
    def refuse(_event: PullEvent) -> None:
        pytest.fail("a plan pulls nothing")

    return refuse


def planned(stage: Stage, engine: FakeEngine | None = None, **changes: Any) -> Prepared:
    """Plan as `rocmrun plan` does."""
    return prepare(stage.ask(**changes), engine, fetch=False, on_pull=no_pull)


def noted(found: Prepared) -> list[str]:
    """Return the notes that do not depend on the limits of whoever runs the tests."""
    return [note for note in found.plan.notes if not note.startswith("nofile is ")]


def test_a_plan_needs_no_engine_no_image_and_no_lock(stage: Stage) -> None:
    stage.lock()

    found = planned(stage)

    assert (found.engine, found.image, found.pin, found.lock_path) == (None, None, None, None)
    assert (found.plan.image.ref, found.plan.image.digest) == (REF, None)
    assert noted(found) == []


def test_a_plan_makes_nothing_and_pulls_nothing(stage: Stage) -> None:
    engine = FakeEngine(images={}, registry={PULLED: IMAGE, REF: IMAGE})

    assert planned(stage, engine).plan.image.image_id is None
    stage.lock()
    assert planned(stage, engine).plan.image.image_id is None

    assert engine.calls == ["facts", "facts"]
    assert not (stage.path / "cache").exists()


def test_a_plan_knows_what_the_image_bakes(stage: Stage) -> None:
    image = replace(IMAGE, env=(("HIP_VISIBLE_DEVICES", "3"),))
    engine = FakeEngine(images={PULLED: image})

    found = planned(stage, engine)

    assert dict(found.plan.env)["HIP_VISIBLE_DEVICES"] == "-1"
    assert found.plan.image.image_id == IMAGE_ID


def test_an_unsuitable_engine_is_a_note_of_a_plan_and_stops_a_launch(stage: Stage) -> None:
    engine = an_engine(facts=replace(ENGINE, default_runtime="kata"))

    (note,) = noted(planned(stage, engine))

    assert note.startswith("launch will refuse this engine: the engine's default runtime is kata")
    with pytest.raises(EngineUnsuitable):
        prepare(stage.ask(), engine, fetch=True, on_pull=no_pull)


def test_this_engine_says_nothing_of_a_host_that_was_saved_elsewhere(stage: Stage) -> None:
    """Another kernel is what one expects there."""
    stage.profile(GPU_JOB)
    saved = host(kernel="5.15.0")

    assert noted(planned(stage, an_engine(), host=saved)) == []


def test_options_of_the_command_line_are_in_the_plan_with_who_asked(stage: Stage) -> None:
    options = Options(
        env=("A=1", "HF_TOKEN"), volumes=("profiles:/profiles:ro", "./profiles:/p"),
        ports=("127.0.0.1:80:80",), network="bridge", shm_size="3g", memory="4g", entrypoint="bash",
        command=("-c", "true"),
    )  # fmt: skip

    plan = planned(stage, options=options).plan

    assert (plan.entrypoint, plan.command) == (("bash",), ("-c", "true"))
    assert dict(plan.env)["A"] == "1"
    asked = {grant.what: grant.asked_by.partition(":")[0] for grant in plan.grants}
    wanted = ("env-from:HF_TOKEN", "network:bridge", "port:127.0.0.1:80:80/tcp",
              "mount:/profiles:ro", "mount:/p:rw", f"shm:{3 << 30}")  # fmt: skip
    assert {asked[what] for what in wanted} == {"command line"}
    kinds = {mount.target: (mount.kind, mount.source) for mount in plan.mounts}
    assert kinds["/profiles"] == ("volume", "profiles")
    assert kinds["/p"] == ("bind", str(stage.path / "profiles"))


def test_a_profile_may_forbid_options_and_not_the_command(stage: Stage) -> None:
    stage.profile(CPU_JOB + "[policy]\noverrides = false\n")

    assert planned(stage, options=Options(command=("true",))).plan.command == ("true",)
    with pytest.raises(PlanRefused, match="may not be changed from the command line"):
        planned(stage, options=Options(env=("A=1",)))


def test_a_profile_without_an_image_is_a_parent(stage: Stage) -> None:
    stage.profile('accelerator = "cpu"\n')

    with pytest.raises(ProfileInvalid, match="names no image"):
        planned(stage)


def test_globs_of_devices_are_read_from_the_host(stage: Stage) -> None:
    stage.profile(
        GPU_JOB
        + '[[devices]]\npath = "/dev/dri/renderD12*"\nreason = "all of them"\n'
        + '[[privileges]]\ngrant = "device:/dev/kfd:rwm"\nreason = "x"\n'
        + '[debug]\nprivileges = ["device:/dev/dri/renderD129:rwm"]\n'
    )
    stage.host(*MI210_X8[:2])

    quiet = granted(planned(stage).plan)
    debug = granted(planned(stage, debug=True).plan)

    assert {"device:/dev/kfd:rwm", "device:/dev/dri/renderD129:rw"} <= set(quiet)
    assert "device:/dev/dri/renderD129:rwm" in debug


def test_a_seccomp_file_is_taken_by_value_and_compact(stage: Stage) -> None:
    grant = '[[privileges]]\ngrant = "seccomp:s.json"\nreason = "x"\n'
    stage.profile(CPU_JOB + grant)
    file = stage.path / "profiles/s.json"

    file.write_text('{\n  "syscalls": [],\n  "defaultAction": "SCMP_ACT_ERRNO"\n}\n')
    assert planned(stage).plan.seccomp == '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}'
    file.write_text("{")
    with pytest.raises(ProfileInvalid, match="is not JSON"):
        planned(stage)
    file.write_text("{}")
    with pytest.raises(ProfileInvalid, match=r"s\.json is no seccomp profile"):
        planned(stage)
    file.unlink()
    with pytest.raises(ProfileInvalid, match=r"s\.json does not exist"):
        planned(stage)


def test_a_seccomp_file_of_debug_is_needed_with_debug_alone(stage: Stage) -> None:
    stage.profile(CPU_JOB + '[debug]\nprivileges = ["seccomp:none.json"]\n')

    assert planned(stage).plan.seccomp is None
    with pytest.raises(ProfileInvalid, match="does not exist"):
        planned(stage, debug=True)


@pytest.mark.parametrize(
    ("user", "passwd", "expected"),
    [
        ("jovyan", b"jovyan:x:1000:100::/:/bin/sh\n", "1000:100"),
        ("4711:5", b"", "4711:5"),
    ],
)
def test_the_user_of_the_image_is_numbers_or_looked_up(
    stage: Stage, user: str, passwd: bytes, expected: str
) -> None:
    stage.profile(CPU_JOB + '[container]\nuser = "image"\n')
    engine = FakeEngine(images={PULLED: replace(IMAGE, user=user), IMAGE_ID: IMAGE},
                        files={"/etc/passwd": passwd})  # fmt: skip

    assert planned(stage, engine).plan.user == expected
    assert ("create look" in engine.calls) == (user == "jovyan")
    assert engine.kept == []


def test_the_user_of_an_image_that_runs_as_root_is_refused(stage: Stage) -> None:
    stage.profile(CPU_JOB + '[container]\nuser = "image"\n')

    with pytest.raises(PlanRefused, match="the image's USER is root"):
        planned(stage, an_engine())


def test_mount_sources_are_looked_at(stage: Stage) -> None:
    mount = '[container]\ngroups = ["path:/models"]\n[[mounts]]\nsource = "../models"\ntarget = "/models"\n'  # fmt: skip
    stage.profile(CPU_JOB + mount)
    (stage.path / "models").mkdir()

    plan = planned(stage).plan

    assert f"group:{(stage.path / 'models').stat().st_gid}" in granted(plan)


def test_a_saved_host_is_planned_for_without_looking_at_this_one(
    stage: Stage, tmp_path: Path
) -> None:
    stage.profile(GPU_JOB)
    file = tmp_path / "host.json"
    file.write_text(json.dumps(host_to_json(host(2, kfd=node("/dev/kfd", gid=7)))))

    found = plan_profile(stage.ask, offline=True, host_file=file)

    assert found.plan.render_minors == (128, 129)
    assert "group:7" in granted(found.plan)


def test_a_saved_host_that_is_not_there_says_how_to_make_one(stage: Stage) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        plan_profile(stage.ask, offline=True, host_file=stage.path / "none.json")

    assert "rocmrun host --json" in (caught.value.hint or "")


def test_a_plan_asks_the_engine_unless_it_is_made_offline(stage: Stage) -> None:
    engine = an_engine()

    found = plan_profile(stage.ask, offline=False, host_file=None, connect=stage.connect(engine))

    assert found.engine == ENGINE
    assert found.image == IMAGE
    offline = plan_profile(stage.ask, offline=True, host_file=None, connect=stage.connect(engine))
    assert (offline.engine, stage.connected) == (None, 1)


def test_a_plan_without_an_engine_says_that_it_can_be_made_offline(stage: Stage) -> None:
    def connect() -> FakeEngine:
        msg = "no container engine answers"
        raise EngineUnreachable(msg, hint="start it")

    with pytest.raises(EngineUnreachable) as caught:
        plan_profile(stage.ask, offline=False, host_file=None, connect=connect)

    assert caught.value.hint == "start it; or plan without one: --offline"


def test_a_volume_that_is_a_directory_of_the_host_is_judged_like_it(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/")
    options = {"type": "none", "o": "bind", "device": f"{tmp_path}/link"}
    engine = an_engine(volumes=[VolumeFacts(name="v", driver="local", options=options)])
    stage.lock()

    with pytest.raises(PlanRefused) as caught:
        planned(stage, engine, options=Options(volumes=("v:/m",)))

    assert "is the whole host" in caught.value.details[0]
    planned(stage, engine, options=Options(volumes=("new:/m",)))


def test_a_plan_without_an_engine_says_that_volumes_were_not_looked_at(stage: Stage) -> None:
    stage.lock()
    with_volume = Options(volumes=("v:/m",))

    assert "volumes were not looked at" in noted(planned(stage, options=with_volume))[0]
    assert not any(
        "looked at" in n for n in noted(planned(stage, an_engine(), options=with_volume))
    )
