"""Run a created container: detached, in another's place, or in the foreground."""

from collections.abc import Callable

from rocmrun.core.last_words import pointers, read_only_mount
from rocmrun.core.plan import Plan
from rocmrun.core.text import human_size, printable
from rocmrun.usecases.containers import CreatedContainer
from rocmrun.usecases.foreground import Foreground
from rocmrun.usecases.readiness import check_up, when_healthy
from rocmrun.usecases.replace import Handover
from rocmrun.usecases.run import Run
from rocmrun.usecases.run_report import now

KILLED = 137
# A mount that is read-only says the same; what the plan knows of it is told in its place.
_OWN_TREE = "readonly-rootfs"


def start_detached(run: Run, container: CreatedContainer, handover: Handover) -> None:
    """Start *container*, in the place of the one that it replaces where there is one.

    Raises:
        WorkloadNotUp: it replaces another and did not come up.
    """
    handover.stop_old()
    run.engine.start(container.container_id)
    if run.replaced is not None:
        check_up(
            run.engine,
            container.container_id,
            health=run.plan.health is not None,
            settle_seconds=run.request.settle_seconds,
        )
    handover.commit(container.container_id)


def leave_detached(run: Run) -> int:
    """Say that the workload runs on, and return 0; its name is the result."""
    name = run.final_name
    run.voice.say(
        f"started {name}; follow it with rocmrun logs -f {name}, end it with rocmrun stop {name}"
    )
    run.record = run.record.ended(ended_at=now())
    run.voice.result(name)
    return 0


def run_foreground(run: Run, container: CreatedContainer, release: Callable[[], None]) -> int:
    """Relay streams and signals until *container* ends and return its exit code; call *release* once it runs."""
    plan, notify = run.plan, run.request.notify
    attachment = run.engine.attach(container.container_id, stdin=plan.interactive, tty=plan.tty)
    run.voice.detail(f"starting {container.name}")
    notify(f"STATUS=starting {container.name}")

    def on_started() -> None:
        release()
        if plan.health is None:
            notify(f"READY=1\nSTATUS={container.name} runs")
            return
        notify(f"STATUS={container.name} runs, and is not healthy yet")
        when_healthy(
            run.engine,
            container.container_id,
            lambda: notify(f"READY=1\nSTATUS={container.name} is healthy"),
        )

    foreground = Foreground(
        engine=run.engine,
        container_id=container.container_id,
        attachment=attachment,
        stdin=plan.interactive,
        tty=plan.tty,
        say=run.voice.say,
        on_started=on_started,
    )
    code = foreground.run(plan.stop_timeout_seconds)
    notify(f"STOPPING=1\nSTATUS={container.name} ended with {code}")
    run.record = run.record.ended(ended_at=now(), exit_code=code)
    if code != 0 and not (foreground.killed or foreground.asked_to_end):
        _tell_why(run, container, code, foreground.last_output)
    return code


def _tell_why(run: Run, container: CreatedContainer, code: int, last_output: bytes) -> None:
    """Say after the workload's own words what its end points to, where that is all but certain."""
    # Only failures pay for the rules.
    from rocmrun.usecases.doctor import cause_lines, causes_in  # noqa: PLC0415

    text = [last_output.decode(errors="replace")]
    for pointer in pointers(text[0], run.plan):
        run.voice.hint(printable(pointer))
    if container.record["HostConfig"].get("ReadonlyRootfs"):
        # What the engine knows settles what a text leaves open.
        text.append("ReadonlyRootfs: true")
    if code == KILLED:
        noticed = run.engine.state(container.container_id).oom_killed
        run.voice.warn(_killed(run.plan, noticed=noticed))
        text.append("OOMKilled: true" if noticed else f"exit code {code}")
    found = causes_in("\n".join(text))
    if found and found[0].kind.slug == _OWN_TREE and read_only_mount(text[0], run.plan):
        return
    if found and found[0].confidence == "high":
        for line in cause_lines(found[0]):
            run.voice.hint(line)


def _killed(plan: Plan, *, noticed: bool) -> str:
    """Say why a workload was killed; not every engine notices that the kernel did it (20.10 on cgroup v1)."""
    if noticed:
        return "the kernel killed the workload: it reached the container's memory limit"
    limit = f" ({human_size(plan.memory_bytes)})" if plan.memory_bytes else ""
    return (
        f"the workload was killed; if nobody did it, it reached the container's memory limit{limit}"
    )
