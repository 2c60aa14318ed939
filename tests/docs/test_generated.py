"""Generated parts are fresh and say the same on every machine."""

import subprocess
import sys

from scripts.docs import session
from tests.docs.documents import DOCUMENTS, README, ROOT, text_of

LONGEST_README = 180


def test_generated_parts_are_fresh() -> None:
    """When this fails: make docs."""
    generated = [str(path) for path in DOCUMENTS if "[[[cog" in text_of(path)]

    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "--diff", *generated],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_stays_short() -> None:
    """It is read whole by people who decide in a minute."""
    assert len(text_of(README).splitlines()) <= LONGEST_README


def test_the_session_shows_the_devices_the_groups_and_the_reasons() -> None:
    """The plan in the README is made by the planner; what it is there to show is in it."""
    shown = session.plan_session()

    assert (
        "device:/dev/dri/renderD128:rw    the render node of GPU 0 (gfx942, 0000:05:00.0)" in shown
    )
    assert (
        "group:992                        owns /dev/dri/renderD128, /dev/kfd on this host" in shown
    )
    assert "mount:/models:ro                 bind of /srv/models [command line: mounts[0]]" in shown
    assert "user root: no ROCm library needs it" in shown
    assert "renderD136" not in shown  # the second GPU


def test_the_session_holds_nothing_of_this_machine() -> None:
    """Whoever runs `make docs`, the text is the same."""
    shown = session.plan_session()

    assert str(ROOT) not in shown
    assert "1000:1000" in shown
    assert session.mi300x_host() == session.mi300x_host()
