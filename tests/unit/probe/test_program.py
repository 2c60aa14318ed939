"""The program as children get it: the compiled file, and its text for tracebacks."""

import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from rocmrun.probe.parts.program import memory_file, program_of, show_text

SOURCE = """def add(a, b):
    return a + b  # the sum


print(add(1, 2))
"""


def code(name: str) -> CodeType:
    return compile(SOURCE, name, "exec")


def test_python_runs_the_compiled_file_as_it_is(tmp_path: Path) -> None:
    """By its first bytes: a memory file has no name that ends in .pyc."""
    path = tmp_path / "program"
    path.write_bytes(program_of(b"", code("gpu_probe.py")).compiled)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)

    assert done.stdout == "3\n"


def test_its_text_is_found_without_a_file_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    program = code("a program that is no file")
    scope: dict[str, Any] = {"__name__": "__nowhere__"}
    descriptor = memory_file(SOURCE.encode())
    try:
        show_text(descriptor, program)
        exec(program, scope)
        text = inspect.getsource(scope["add"])
    finally:
        os.close(descriptor)

    assert text == "def add(a, b):\n    return a + b  # the sum\n"
    assert capsys.readouterr().out == "3\n"
