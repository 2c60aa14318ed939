"""What one reader of texts knows as a secret, all do: profiles and plans, lines on a terminal, bundles."""

import re
from collections.abc import Callable

import pytest

from rocmrun.core.diagnosis.masking import masked
from rocmrun.core.known_strings import Personal
from rocmrun.core.redaction import Redactor
from rocmrun.core.secret_forms import BUNDLES, LINES, PLANS, TOKENS, without
from rocmrun.core.secret_names import without_secrets

Reader = Callable[[str], str]


def bundled(text: str) -> str:
    return Redactor(Personal(), frozenset()).text(text)


READERS: tuple[Reader, ...] = (without_secrets, masked, bundled)
LETTERS = "aB3dE6gH9kL2nP5rS8uV1xY4"

SECRETS = (
    # Tokens as they are issued.
    f"hf_{LETTERS}", f"sk-proj-{LETTERS}", f"ghp_{LETTERS}", f"github_pat_{LETTERS}", f"glpat-{LETTERS}",
    f"xoxb-{LETTERS}", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", f"npm_{LETTERS * 2}", f"pypi-{LETTERS * 3}",
    f"AIza{LETTERS * 2}", f"ya29.{LETTERS}", f"dckr_pat_{LETTERS}", f"nvapi-{LETTERS}", f"hvs.{LETTERS}",
    f"gsk_{LETTERS}", f"r8_{LETTERS}", f"sk_live_{LETTERS}", f"xai-{LETTERS}", f"tskey-{LETTERS}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{LETTERS}.{LETTERS}",
)  # fmt: skip
TOLD = (
    # (text, what of it is secret): headers, URLs, keys.
    (f"Authorization: Bearer {LETTERS}", LETTERS),
    ("curl -H 'Authorization: Basic dTpwYXNzd29yZA=='", "dTpwYXNz"),
    ("Authorization: Digest abc=d, response=0123abcd", "0123abcd"),
    ("curl -H 'Cookie: session=s3ss; id=4711'", "4711"),
    ("https://joe:pa55word@registry.example/v2/", "pa55word"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nshort==\n-----END RSA PRIVATE KEY-----", "short=="),
    ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\n\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    # Behind the name of a variable, a key or an option.
    ("export DB_PASSWORD=7; serve", "7"),
    ("sh -c 'SSH_KEY=hunter2 serve'", "hunter2"),
    ("GITHUB_PAT=hunter2", "hunter2"),
    ("registry-creds=hunter2", "hunter2"),
    ("signing-key: hunter2", "hunter2"),
    ('{"encryption_key": "correct horse"}', "horse"),
    ("{'apiKey': 'a b'}", "a b"),
    ('"password": "correct horse battery"', "battery"),
    ("passwd: 123456, next", "123456"),
    ("serve --api-key s3", "s3"),
    ("serve --access-token 4711", "4711"),
    ("serve --hf-token='it is this'", "is this"),
    ("serve --token pa,ss;word", "word"),
    # On command lines that take them behind a letter.
    ("curl -s -u me:pa:ss http://localhost/", "pa:ss"),
    ("docker login -u me -p hunter2 x", "hunter2"),
    ("mysql -h db -phunter2", "hunter2"),
)  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_token_is_known_to_all(secret: str, reader: Reader) -> None:
    """Alone, and in the middle of a line."""
    assert secret not in reader(secret)
    assert LETTERS not in reader(f"got {secret} there")
    assert secret not in reader(f"got {secret} there")


def test_every_form_of_a_token_is_tried() -> None:
    """A form that is added needs a line above."""
    alone = {token.whose for token in TOKENS for secret in SECRETS if _is(token.exact, secret)}

    assert alone == {token.whose for token in TOKENS}


def _is(pattern: str, secret: str) -> bool:
    return re.fullmatch(pattern, secret) is not None


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("text", "secret"), TOLD)
def test_what_is_told_by_its_place_is_known_to_all(text: str, secret: str, reader: Reader) -> None:
    """By a header, by a name, by an option; and nothing more is lost than before."""
    shown = reader(text)

    assert secret in text
    assert secret not in shown.replace("localhost", "")
    assert reader(shown) == shown or reader is not without_secrets


@pytest.mark.parametrize(
    ("text", "plans", "lines", "bundles"),
    [
        # What only may be one: profiles stay as they were written.
        ("hf-abcdefghijklmnop", False, True, True),
        ("the token abcdefgh", False, True, True),
        ("PAD_TOKEN=abcdefgh", False, True, True),
        ("https://joe@registry.example/", False, True, True),
        # Short, and behind what only sounds like a name of one.
        ("pad_token=xy", False, False, True),
        # An expression says where it is; in a log it is what was logged.
        ("HF_TOKEN=$TOKEN", False, True, True),
        # A number is a count there.
        ("max_tokens=512, pad_token: 0", False, False, False),
        ("MAX_TOKENS 4096, tokens/s 48213", False, False, False),
        ("line 10: /opt/app/etc/passwd: Read-only file system", False, False, False),
        ("--tokenizer meta/llama --sort-key name", False, False, False),
        ("HF_TOKEN_PATH=/run/secrets/hf", False, False, False),
    ],
)  # fmt: skip
def test_how_much_must_look_like_one(text: str, plans: bool, lines: bool, bundles: bool) -> None:  # noqa: FBT001  # columns of the table
    """The one difference between the three, as a table."""
    assert [without(text, strictness, lambda _: "*") != text for strictness in (PLANS, LINES, BUNDLES)] == [plans, lines, bundles]  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_a_key_that_was_cut_off_takes_no_other_lines(reader: Reader) -> None:
    """Its own lines go, as many as look like one's."""
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{LETTERS}{LETTERS}\nb2==\ngroups: 1000 44"

    assert LETTERS not in reader(text)
    assert "b2==" not in reader(text)
    assert reader(text).endswith("groups: 1000 44")


@pytest.mark.parametrize(
    "piece", ["token ", "key-", "-----BEGIN AAAA-----a", "curl -s ", 'token="', "://a", "eyJaaaaaaaaa "]
)  # fmt: skip
def test_a_long_text_is_read_to_its_end(piece: str) -> None:
    """Names without a value, headers without an end, commands without a password: none costs its square."""
    text = piece * (200_000 // len(piece)) + f"\n hf_{LETTERS}"

    assert LETTERS not in without(text, BUNDLES, lambda _: "*")
