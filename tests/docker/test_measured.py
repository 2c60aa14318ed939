"""`rocmrun lock --facts` after a probe: what torch said inside the image stands in the lock."""

from rocmrun.core.lock import parse_lock
from tests.workspace import Rocmrun, Workspace


def test_a_probe_that_passed_is_the_source_of_its_facts(
    rocmrun: Rocmrun, workspace: Workspace, demo_image: str
) -> None:
    """Without running anything again, and for a moved tag no longer."""
    name = workspace.profile(demo_image)
    rocmrun("lock", name, "--facts", check=True)
    before = parse_lock(workspace.lockfile.read_text(), "x").images[0].facts
    rocmrun("probe", name, "--level", "quick", check=True)

    told = rocmrun("lock", name, "--facts", check=True)

    facts = parse_lock(workspace.lockfile.read_text(), "x").images[0].facts
    assert before is None or "probe" not in before.sources.values()
    assert facts is not None
    assert facts.torch is not None
    assert facts.torch.endswith("+cpu")
    assert {facts.sources["torch"], facts.sources["python"]} == {"probe"}
    assert f"torch {facts.torch}" in told.stdout
