"""The launch that README.md shows, on a real engine: what is printed there is what is printed."""

import re

from tests.docs.documents import README, blocks, words_of
from tests.workspace import Rocmrun

# What differs between machines and runs: paths and digests, which the README cuts, numbers, and the
# torch that the demo's image was built with.
VARYING = {
    "…": ".+",
    "42 pass": r"\d+ pass(, \d+ \w+)*",
    "5.4 s": r"[\d.]+ s",
    "2.13.0+cpu": r"[\w.+]+",
}
# A probe says now and then that it goes on, on a machine that is slow enough.
BEAT = r"rocmrun: probe: \d+ checks done after "


def test_the_launch_in_the_readme(rocmrun: Rocmrun, demo_image: str) -> None:
    """Messages on stderr, the workload's output on stdout, in this order and these words."""
    (shown,) = [
        block for block in blocks(README, "console") if block.startswith("$ rocmrun launch")
    ]
    command, *lines = shown.splitlines()
    rocmrun("lock", "demo", check=True)

    done = rocmrun(*words_of(command.removeprefix("$ ")), check=True)

    assert demo_image in shown
    said = [line for line in lines if line.startswith("rocmrun: ")]
    returned = [line for line in lines if line not in said]
    heard = [line for line in done.stderr.splitlines() if not re.match(BEAT, line)]
    for patterns, printed in ((said, heard), (returned, done.stdout.splitlines())):
        for pattern, line in zip(map(pattern_of, patterns), printed, strict=True):
            assert re.fullmatch(pattern, line), f"shown is: {pattern}\nprinted was: {line}"


def pattern_of(line: str) -> str:
    """Return a line of the README as a pattern that leaves open what varies."""
    pattern = re.escape(line)
    for text, varying in VARYING.items():
        pattern = pattern.replace(re.escape(text), varying)
    return pattern
