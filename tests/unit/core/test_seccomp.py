"""What is a seccomp profile, and what would switch the filter off."""

import json
import re

import pytest

from rocmrun.core.seccomp import RESTRICTING, compact_seccomp


@pytest.mark.parametrize("action", RESTRICTING)
def test_a_profile_that_restricts_is_taken_and_made_compact(action: str) -> None:
    text = f'{{\n "syscalls": [ {{"names": ["read"], "action": "SCMP_ACT_ALLOW"}} ],\n "defaultAction": "{action}" }}'

    compact = compact_seccomp(text)

    assert compact.startswith(f'{{"defaultAction":"{action}","syscalls":[')
    assert json.loads(compact) == json.loads(text)
    assert compact_seccomp(compact) == compact


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("null", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ('"SCMP_ACT_ERRNO"', "is not a JSON object"),
        ("{}", '"defaultAction" is not one of SCMP_ACT_ERRNO'),
        ('{"foo":1}', '"defaultAction" is not one of'),
        ('{"defaultAction":"","syscalls":[]}', '"defaultAction" is not one of'),
        ('{"defaultAction":null}', '"defaultAction" is not one of'),
        ('{"defaultAction":["SCMP_ACT_ERRNO"]}', '"defaultAction" is not one of'),
        ('{"defaultAction":"scmp_act_errno"}', '"defaultAction" is not one of'),
        ('{"defaultaction":"SCMP_ACT_ERRNO"}', '"defaultAction" is not one of'),
        ('{"defaultAction":"SCMP_ACT_ALLOW"}', "write seccomp:unconfined"),
        ('{"defaultAction":"SCMP_ACT_LOG"}', "write seccomp:unconfined"),
        (
            '{"defaultAction":"SCMP_ACT_ERRNO","defaultaction":""}',
            'its keys "defaultAction" and "defaultaction" differ in case alone',
        ),
        (
            '{"defaultAction":"SCMP_ACT_ERRNO","\\u017fyscalls":[],"syscalls":[]}',
            "differ in case alone",
        ),
        (
            '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"action":"SCMP_ACT_ERRNO","Action":"SCMP_ACT_ALLOW"}]}',
            'its keys "action" and "Action" differ in case alone',
        ),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_what_would_switch_the_filter_off_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        compact_seccomp(text)
