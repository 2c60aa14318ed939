"""What is quoted tells nothing private."""

import pytest

from rocmrun.core.diagnosis.masking import masked


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrSt", "AbCdEf"),
        ("Authorization: Bearer abcdef0123456789xyz", "abcdef0123"),
        ('{"password": "hunter22hunter"}', "hunter22"),
        ("--api-key s3cretvalue99", "s3cretvalue"),
        ("aws AKIAIOSFODNN7EXAMPLE used", "IOSFODNN7"),
        ("https://joe:pa55word@registry.example/v2/", "pa55word"),
        ("https://joe:pa55word@registry.example/v2/", "joe"),
        ("PermissionError: '/home/walter/.cache'", "walter"),
        ("C:\\Users\\walter\\models", "walter"),
        ("walter@gpubox:~$ rocminfo", "walter"),
        ("walter@gpubox:~$ rocminfo", "gpubox"),
        ("walter is member of render group", "walter"),
        ("uid=1000(walter) gid=1000(walter)", "walter"),
        ("mail walter.k@example.org", "walter"),
        ("USER=walter", "walter"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", "eyJzdWIi"),
    ],
)  # fmt: skip
def test_secrets_and_names_are_masked(text: str, private: str) -> None:
    """By their form, by the name beside them, by where they stand."""
    assert private in text
    assert private not in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "Unable to open /dev/kfd read-write: Permission denied",
        "crw-rw---- 1 root render 235, 0 /dev/kfd",
        "root is not member of \"video\" group",
        "MAX_TOKENS 4096, tokens/s 48213",
        "OSError: [Errno 30] Read-only file system: '/opt/venv/x'",
        "line 10: /opt/app/etc/passwd: Read-only file system",
    ],
)  # fmt: skip
def test_what_tells_the_cause_stays(text: str) -> None:
    """Errors, owners, modes and paths of the image are what the finding rests on."""
    assert masked(text) == text


def test_control_characters_do_not_reach_a_terminal() -> None:
    """A log is somebody else's."""
    assert masked("a\x1b[2Jb\x07c") == "abc"
