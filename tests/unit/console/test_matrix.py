"""What people see of AMD's support matrix."""

import io
from dataclasses import replace

from rich.console import Console

from rocmrun.console.matrix import matrix_as_json, print_matrix
from rocmrun.core.support.matrix import parse_matrix
from rocmrun.core.support.query import Asked, Reading, answers
from rocmrun.system.package_data import read_support_matrix


def printed(reading: Reading) -> str:
    stream = io.StringIO()
    print_matrix(Console(file=stream, width=200), reading, whole=False)
    return stream.getvalue()


def test_releases_of_which_nothing_was_found_are_one_line_after_the_others() -> None:
    """They are in JSON as they are; a row each would come before what is known."""
    matrix = parse_matrix(read_support_matrix())
    found = answers(matrix, Asked())
    known = found[1]
    bare = replace(known.release, version="99.0", gpus=(), os=(), pytorch=(), drivers=())
    empty = replace(known, release=bare, gpus=(), os=())
    reading = Reading(matrix=matrix, age_days=1, answers=(empty, known), images=None)

    first, *_, last = printed(reading).splitlines()
    assert first.startswith("ROCm")
    assert last == "of these releases no table was found: 99.0"
    assert f"\n{known.release.version} " in printed(reading)
    assert "no table" not in printed(replace(reading, answers=(known,)))
    assert matrix_as_json(reading)["releases"][0]["version"] == "99.0"
