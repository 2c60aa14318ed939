"""Which path a program names as read-only, in the words of shells and languages, and as it wrote it."""

import pytest

from rocmrun.core.diagnosis.refused import read_only_paths


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("OSError: [Errno 30] Read-only file system: '/app/State/x'", ("/app/State/x",)),
        # A capital letter that is two in lower case.
        ("İzmir: [Errno 30] Read-only file system: '/app/State/x'", ("/app/State/x",)),
        ("/app/serve: line 2: can't create /app/state/db: Read-only file system", ("/app/state/db",)),
        ("/app/serve: line 2: /app/state/db: Read-only file system", ("/app/state/db",)),
        ("mkdir: cannot create directory \u2018/data/y\u2019: Read-only file system", ("/data/y",)),
        ("panic: mkdir /var/lib/x: read-only file system", ("/var/lib/x",)),
        ("Error: EROFS: read-only file system, open '/app/node.log'", ("/app/node.log",)),
        ("java.nio.file.FileSystemException: /app/java.log: Read-only file system", ("/app/java.log",)),
        ("touch: cannot touch '/b': Read-only file system\nsh: cannot create /a/c: Read-only file system", ("/b", "/a/c")),
        ("[Errno 13] Permission denied: '/etc/x'", ()),
        ("Read-only file system", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_the_path_that_is_read_only_is_told(text: str, paths: tuple[str, ...]) -> None:
    """Not what else was refused, nor the program that says so."""
    assert paths == read_only_paths(text)
