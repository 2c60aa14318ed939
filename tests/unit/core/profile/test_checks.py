"""[[probe.checks]]: what may stand there, and that every mistake is named at once with its key."""

from typing import Any

import pytest

from rocmrun.core.planning.checks import planned_check, sent_check, text_hash
from rocmrun.core.profile.parse import dump_profile, parse_profile
from rocmrun.core.toml import load_toml
from rocmrun.errors import ProfileInvalid
from tests.builders import plan

GOOD = {"name": "serves", "command": ["python3", "-m", "ours"]}


def mistakes(*checks: dict[str, Any]) -> tuple[str, ...]:
    """Return what is wrong with a profile that has *checks*."""
    with pytest.raises(ProfileInvalid) as caught:
        parse_profile({"probe": {"checks": list(checks)}})
    return caught.value.details


def test_a_check_needs_a_name_and_something_to_run() -> None:
    (check,) = parse_profile({"probe": {"checks": [GOOD]}}).probe.checks

    assert (check.timeout, check.expect_exit, check.expect_output) == (60, 0, "")
    assert (check.level, check.device, check.writable_mounts) == ("standard", "all", False)


def test_it_goes_to_text_and_back() -> None:
    profile = parse_profile(
        {"probe": {"checks": [{**GOOD, "metrics": {"tokens/s": {"min": 5, "max": 1e9}}}]}}
    )

    assert parse_profile(load_toml(dump_profile(profile))) == profile


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"name": "x"}, "probe.checks[0]: names nothing to run: a command or a file"),
        ({**GOOD, "file": "a.py"}, "probe.checks[0].file: a check is a command or a file; keep one of the two"),
        ({**GOOD, "name": "Serves!"}, 'probe.checks[0].name: "Serves!" is not a name of up to 64 characters in a-z, 0-9 and _'),
        ({**GOOD, "expect_output": "("}, 'probe.checks[0].expect_output: "(" is no regular expression: missing ), unterminated subpattern at position 0'),
        ({**GOOD, "metrics": {"tps": {"min": 2, "max": 1}}}, "probe.checks[0].metrics.tps: no number is at least 2 and at most 1"),
        ({**GOOD, "expect_exit": 256}, "probe.checks[0].expect_exit: must be at most 255, and is 256"),
        ({**GOOD, "timeout": 0}, "probe.checks[0].timeout: must be at least 1, and is 0"),
        ({**GOOD, "level": "ful"}, 'probe.checks[0].level: "ful" is not one of quick, standard, full; did you mean "full"?'),
        ({**GOOD, "device": "gpu"}, 'probe.checks[0].device: "gpu" is not one of all, each'),
        ({**GOOD, "metric": {}}, 'probe.checks[0].metric: unknown key; did you mean "metrics"?'),
        ({**GOOD, "command": "true"}, "probe.checks[0].command: expected a list, got a string"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_key(check: dict[str, Any], said: str) -> None:
    assert mistakes(check) == (said,)


def test_several_mistakes_are_named_at_once() -> None:
    """Wrong values and contradictions, of several checks."""
    found = mistakes(
        {**GOOD, "expect_output": "["}, GOOD, {**GOOD, "metrics": {"a": {"min": 1, "max": 0}}}
    )

    assert [line.partition(": ")[0] for line in found] == [
        "probe.checks[0].expect_output", "probe.checks[1].name", "probe.checks[2].name",
        "probe.checks[2].metrics.a",
    ]  # fmt: skip


def test_the_plan_holds_the_hash_and_the_probe_gets_the_text() -> None:
    (check,) = parse_profile(
        {
            "probe": {
                "checks": [{"name": "ours", "file": "/x/ours.py", "metrics": {"tps": {"min": 5}}}]
            }
        }
    ).probe.checks
    files = {"/x/ours.py": "print(1)\n"}

    planned = planned_check(check, files)
    sent = sent_check(planned, files)

    assert (planned.sha256, planned.metrics) == (text_hash("print(1)\n"), (("tps", 5.0, None),))
    assert (sent["source"], sent["command"], sent["metrics"]) == (
        "print(1)\n",
        [],
        {"tps": {"min": 5.0}},
    )


def test_a_level_runs_the_checks_of_those_below() -> None:
    checks = [{**GOOD, "name": level, "level": level} for level in ("quick", "standard", "full")]
    probe = plan({"probe": {"checks": checks}}).probe

    assert [check.name for check in probe.checks_at("quick")] == ["quick"]
    assert [check.name for check in probe.checks_at("full")] == ["quick", "standard", "full"]


def test_mounts_are_writable_only_where_a_check_that_runs_needs_it() -> None:
    checks = [{**GOOD, "level": "full", "writable_mounts": True}]
    probe = plan({"probe": {"checks": checks}}).probe

    assert (probe.writes_at("standard"), probe.writes_at("full")) == (False, True)
