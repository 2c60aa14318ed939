"""Write rocmrun/data/system-calls.tsv from the kernel's own headers: the number of each system call, by architecture.

    python -m scripts.system_calls /usr/include/x86_64-linux-gnu:/usr/include /usr/aarch64-linux-gnu/include SOURCES

Each argument is where the headers of one architecture are, several places parted by colons; the last one is said in
the file. Debian has them in linux-libc-dev and linux-libc-dev-arm64-cross.
"""

import re
import subprocess
import sys
from pathlib import Path

ARCHITECTURES = ("x86_64", "aarch64")
# What the compiler would define, and what decides between the tables of one header.
DEFINED = {"x86_64": ("-D__x86_64__=1",), "aarch64": ("-D__aarch64__=1",)}
TARGET = Path(__file__).parent.parent / "rocmrun/data/system-calls.tsv"
_DEFINE = re.compile(r"#define __NR_(\w+) (\w+)")
# Counts, ranges and names of other architectures that the generic header defines beside the calls.
NO_CALLS = {"syscalls", "arch_specific_syscall"}


def numbers(architecture: str, places: str) -> dict[str, int]:
    """Return name → number, as the preprocessor sees <asm/unistd.h> of *architecture*."""
    includes = [f"-I{place}" for place in places.split(":")]
    words = ["cpp", "-undef", "-dM", "-nostdinc", "-D__LP64__=1", "-D__BITS_PER_LONG=64"]
    done = subprocess.run(
        [*words, *DEFINED[architecture], *includes, "-"],
        input="#include <asm/unistd.h>\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    defined = dict(re.findall(r"#define (__NR\w+) (\w+)", done.stdout))
    found = {}
    for name, value in _DEFINE.findall(done.stdout):
        while value in defined:
            value = defined[value]  # noqa: PLW2901  # a name for a name
        if name not in NO_CALLS and value.isdigit():
            found[name] = int(value)
    return found


def table(found: dict[str, dict[str, int]], source: str) -> str:
    """Return the file: one line a call, in the order of the first architecture's numbers."""
    names = sorted(
        {name for numbers in found.values() for name in numbers},
        key=lambda name: tuple(found[one].get(name, 10_000) for one in ARCHITECTURES),
    )
    lines = [
        f"# Made by scripts/system_calls.py from {source}.",
        "\t".join(("name", *ARCHITECTURES)),
    ]
    for name in names:
        columns = (str(found[one].get(name, "-")) for one in ARCHITECTURES)
        lines.append("\t".join((name, *columns)))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table."""
    *places, source = sys.argv[1:]
    found = {one: numbers(one, place) for one, place in zip(ARCHITECTURES, places, strict=True)}
    TARGET.write_text(table(found, source), encoding="utf-8")


if __name__ == "__main__":
    main()
