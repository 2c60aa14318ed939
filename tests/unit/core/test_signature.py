"""What cosign is asked, what its answer must say, and what of it is recorded."""

import json

import pytest

from rocmrun.core.signature import (
    KEY_VARIABLE,
    SignatureRule,
    VerifiedSignature,
    names_digest,
    reason_of,
)

DIGEST = f"sha256:{'a' * 64}"
NAME = f"docker.io/team/x@{DIGEST}"
KEY = SignatureRule(key="/keys/team.pub")
PERSON = SignatureRule(identity="me@example.org", issuer="https://issuer.example.org")
WORDS = dict.fromkeys(("key", "key_sha256", "identity", "issuer"))


def payload(digest: object = DIGEST) -> dict[str, object]:
    """Return a payload as cosign 2.5 and 3.1 print it."""
    return {"critical": {"image": {"docker-manifest-digest": digest}}, "optional": None}


def verified(rule: SignatureRule, key: bytes | None = None, at: str = "T") -> VerifiedSignature:
    return VerifiedSignature.of(NAME, rule, key=key, verified_at=at)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (KEY, (f"--key=env://{KEY_VARIABLE}",)),
        (
            SignatureRule(key="/k", transparency_log=False),
            (f"--key=env://{KEY_VARIABLE}", "--insecure-ignore-tlog=true"),
        ),
        (
            PERSON,
            (
                "--certificate-identity=me@example.org",
                "--certificate-oidc-issuer=https://issuer.example.org",
            ),
        ),
    ],
)
def test_the_name_is_asked_for_last(rule: SignatureRule, expected: tuple[str, ...]) -> None:
    assert ("verify", "--output=json", *expected, NAME) == rule.arguments(NAME)


def test_people_can_repeat_the_command() -> None:
    assert f"cosign verify --output=json --key=/keys/team.pub {NAME}" == KEY.command(NAME)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (KEY, "key /keys/team.pub"),
        (
            SignatureRule(key="/k", transparency_log=False),
            "key /k, without the transparency log",
        ),
        (PERSON, "me@example.org (issuer https://issuer.example.org)"),
    ],
)
def test_a_signer_in_words(rule: SignatureRule, expected: str) -> None:
    assert (expected, expected) == (str(rule), verified(rule).signer)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (json.dumps([payload()]), True),
        (json.dumps([payload("sha256:other"), payload()]), True),
        (json.dumps([payload("sha256:other")]), False),
        (json.dumps([]), False),
        (json.dumps(payload()), False),
        (json.dumps([{"critical": None}, 7, {"critical": {"image": DIGEST}}]), False),
        (DIGEST, False),
        ("", False),
    ],
)
def test_only_an_answer_about_this_digest_counts(output: str, *, expected: bool) -> None:
    assert expected == names_digest(output, DIGEST)


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        (
            "WARNING: Skipping tlog verification is insecure\n"
            "Error: no signatures found\nerror during command execution: no signatures found\n",
            "no signatures found",
        ),
        ("\npanic: x\n\n", "panic: x"),
        ("", "it gave no reason"),
    ],
)
def test_the_reason_is_one_line(stderr: str, expected: str) -> None:
    assert expected == reason_of(stderr)


def test_a_record_has_the_keys_content_not_only_its_path() -> None:
    sha256 = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"

    assert {
        **WORDS,
        "reference": NAME,
        "key": "/keys/team.pub",
        "key_sha256": sha256,
        "transparency_log": True,
        "verified_at": "T",
    } == verified(KEY, b"key").model_dump()


def test_results_have_one_name_for_one_signer_and_strictness() -> None:
    """Neither when it was verified nor where the key lay makes another result; the key itself does."""
    same = verified(KEY, b"key").name
    moved = SignatureRule(key="/elsewhere/team.pub")
    lax = SignatureRule(key="/keys/team.pub", transparency_log=False)

    assert same == verified(moved, b"key", at="later").name
    others = {verified(KEY, b"other").name, verified(lax, b"key").name, verified(PERSON).name}
    assert len({same, *others}) == 4
