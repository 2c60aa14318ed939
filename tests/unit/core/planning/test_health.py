"""Health checks: what a profile asks for is run, and nothing else; the image's own only where it is asked for."""

from dataclasses import replace
from typing import Any

from rocmrun.core.create_request import create_request
from rocmrun.core.docker_run.line import docker_run_arguments
from rocmrun.core.inspection import weaker
from rocmrun.core.plan import Plan
from rocmrun.core.ungranted import ungranted
from tests.builders import IMAGE, plan
from tests.docker_records import recorded

CHECKED = replace(IMAGE, healthcheck=True)
SECOND = 10**9


def job(**health: Any) -> Plan:
    return plan({"container": {"health": health}}, image_facts=CHECKED)


def test_without_a_word_nothing_is_run() -> None:
    """Not even what the image brings: the plan says so."""
    made = plan(image_facts=CHECKED)

    assert create_request(made, role="workload")["Healthcheck"] == {"Test": ["NONE"]}
    assert "--no-healthcheck" in docker_run_arguments(made)
    assert any("HEALTHCHECK is not run" in note for note in made.notes)
    assert not any("HEALTHCHECK" in note for note in plan().notes)


def test_a_command_is_run_without_a_shell_and_is_in_the_plan() -> None:
    made = job(command=["curl", "-f", "http://a b"], interval=7, retries=2, start_period=60)

    assert create_request(made, role="workload")["Healthcheck"] == {
        "Test": ["CMD", "curl", "-f", "http://a b"],
        "Interval": 7 * SECOND,
        "Timeout": 5 * SECOND,
        "Retries": 2,
        "StartPeriod": 60 * SECOND,
    }
    (grant,) = [grant for grant in made.grants if grant.what == "healthcheck"]
    assert "curl -f 'http://a b' inside every 7 s" in grant.reason
    assert grant.asked_by == "profile job: container.health"


def test_the_images_own_is_run_where_it_is_asked_for() -> None:
    made = job(image=True)

    assert "Test" not in create_request(made, role="workload")["Healthcheck"]
    assert [grant.what for grant in made.grants].count("healthcheck") == 1
    none = plan({"container": {"health": {"image": True}}})
    assert any("the image has no HEALTHCHECK" in note for note in none.notes)


def test_the_probe_has_none() -> None:
    for made in (job(image=True), job(command=["true"])):
        assert create_request(made, role="probe")["Healthcheck"] == {"Test": ["NONE"]}


def test_a_plan_that_runs_one_covers_no_other_command() -> None:
    made = job(command=["true"])
    request = create_request(made, role="workload")

    assert ungranted(request, made) == ()
    request["Healthcheck"]["Test"] = ["CMD-SHELL", "true"]
    assert ungranted(request, made) == ("healthcheck:['CMD-SHELL', 'true']",)


def test_an_engine_that_records_another_is_refused() -> None:
    request = create_request(plan(), role="workload")
    record = recorded(request)
    assert weaker(request, record) == ()

    record["Config"]["Healthcheck"] = {"Test": ["CMD", "id"]}
    (found,) = weaker(request, record)
    assert found.field == "Config.Healthcheck.Test"
    # An engine that has nothing to run writes nothing down.
    record["Config"]["Healthcheck"] = None
    assert weaker(request, record) == ()


def test_the_images_own_is_recorded_with_our_numbers() -> None:
    request = create_request(job(image=True, interval=9), role="workload")
    record = recorded(request)
    record["Config"]["Healthcheck"]["Test"] = ["CMD-SHELL", "curl localhost"]
    assert weaker(request, record) == ()

    record["Config"]["Healthcheck"]["Interval"] = 1
    assert [found.field for found in weaker(request, record)] == ["Config.Healthcheck.Interval"]
