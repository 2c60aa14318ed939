"""Telling builds of torch apart by what pip says it would fetch, and the choice between them.

pip is a small program here; the choice made with its answers is real.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import torch_wheel
from scripts.commands import SetupError
from scripts.torch_wheel import Download

PLAIN = f"torch=={torch_wheel.TORCH}"
CPU = f"torch=={torch_wheel.TORCH}+cpu"


def report(*packages: str) -> dict[str, Any]:
    """Build what `pip install --dry-run --report` writes, as far as it is read."""
    pairs = [package.split("==") for package in packages]
    return {
        "version": "1",
        "install": [
            {
                "metadata": {"name": name, "version": version},
                "download_info": {"url": f"file:///nowhere/{name}-{version}.whl"},
            }
            for name, version in pairs
        ],
    }


class Pip:
    """A pip that answers each list of requirements with a report, and fails where it has none."""

    def __init__(self, folder: Path, answers: dict[str, dict[str, Any]]) -> None:
        self.log = folder / "log"
        self.asked = folder / "asked"
        for requirement, answer in answers.items():
            (folder / requirement).write_text(json.dumps(answer))
        program = folder / "pip"
        program.write_text(
            "#!/bin/sh\n"
            f'echo "$@" >>{self.asked}\n'
            f"for word; do case $word in torch==*) answer={folder}/$word ;; *.json) report=$word ;; esac\n"
            'done\n[ -f "$answer" ] || { echo no such torch >&2; exit 1; }\n'
            '[ -z "$report" ] || cp "$answer" "$report"\n'
        )
        program.chmod(0o755)
        self.command = [str(program)]

    def wanted(self, *, allow_cuda: bool = False) -> list[str]:
        return torch_wheel.wanted(self.command, log=self.log, allow_cuda=allow_cuda)


def test_names_are_read_as_pip_compares_them() -> None:
    """Case and underscores do not count in a package's name."""
    found = torch_wheel.downloads_in(report("Nvidia_cublas==13.0"))

    assert found == (
        Download(
            name="nvidia-cublas", version="13.0", url="file:///nowhere/Nvidia_cublas-13.0.whl"
        ),
    )


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        (["torch==2.13.0", "sympy==1.14"], "CPU"),
        (["torch==2.13.0+cpu"], "CPU"),
        (["torch==2.13.0+cu130"], "CUDA"),
        (["torch==2.13.0", "nvidia-cublas==13.0"], "CUDA"),
    ],
)
def test_a_cuda_build_is_known_by_its_version_or_its_libraries(
    packages: list[str], expected: str
) -> None:
    """On PyPI the CUDA build has a plain version: only what it needs tells."""
    cuda = torch_wheel.is_cuda(torch_wheel.downloads_in(report(*packages)))

    assert expected == ("CUDA" if cuda else "CPU")


def test_where_pip_finds_a_cpu_build_nothing_else_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip's own configuration decides, and what is fetched is said."""
    pip = Pip(tmp_path, {PLAIN: report("torch==2.13.0+cpu", "sympy==1.14")})

    assert pip.wanted() == [PLAIN, "numpy"]
    assert "2.13.0+cpu and 1 packages that it needs" in capsys.readouterr().out
    assert torch_wheel.CPU_INDEX not in pip.asked.read_text()


def test_a_cpu_build_is_preferred_to_several_gigabytes(tmp_path: Path) -> None:
    """Where the plain name is a CUDA build, PyTorch's own index for the CPU is asked too."""
    pip = Pip(
        tmp_path,
        {
            PLAIN: report("torch==2.13.0", "nvidia-cublas==13.0"),
            CPU: report("torch==2.13.0+cpu"),
        },
    )

    assert pip.wanted() == ["--extra-index-url", torch_wheel.CPU_INDEX, CPU, "numpy"]


def test_a_cuda_build_is_taken_only_when_allowed(tmp_path: Path) -> None:
    """With no CPU build to be had, the set-up stops and names the way on."""
    pip = Pip(tmp_path, {PLAIN: report("torch==2.13.0", "nvidia-cublas==13.0")})

    with pytest.raises(SetupError, match="only a CUDA build") as caught:
        pip.wanted()

    assert caught.value.hint is not None
    assert f"{torch_wheel.ALLOW_CUDA}=1 make demo" in caught.value.hint
    assert pip.wanted(allow_cuda=True) == [PLAIN, "numpy"]
