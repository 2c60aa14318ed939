"""A support bundle of a real engine, a real image and a real probe's report, judged where there is no engine."""

import json

from tests.workspace import Workspace

# Each stands in what one of the parts is made from: a mount, a variable, a check of the profile's own, a log.
MOUNT, VALUE, CHECK, SAID, SECRET = "nightjar", "zyntrix", "ospreycheck", "tsuzuki", "qW3rT5yU7i"
PROFILE = "kestreljob"
TABLES = f"""
[container]
env = {{ PROJECT = "{VALUE}", NCCL_DEBUG = "INFO" }}
env_from = ["MY_CREDENTIAL"]
[[mounts]]
source = "{{source}}"
target = "/data"
[[probe.checks]]
name = "{CHECK}"
level = "quick"
command = ["sh", "-c", "echo cannot open /home/{SAID}/w.bin >&2; ls /data; exit 3"]
"""
LOG = f"""PermissionError: [Errno 13] Permission denied: '/data/{MOUNT}-weights/config.json'
{SAID} asked for {VALUE} with {SECRET}
"""


def test_a_bundle_says_elsewhere_what_the_doctor_says_here(
    workspace: Workspace, demo_image: str
) -> None:
    """Checks and causes are the same, engine and image are in it, and nobody learns whose they are."""
    source = workspace.path / MOUNT
    source.mkdir()
    job = workspace.profile(demo_image, TABLES.replace("{source}", str(source)), name=PROFILE)
    (workspace.path / "run.log").write_text(LOG, encoding="utf-8")
    credential = {"MY_CREDENTIAL": SECRET}
    probed = workspace.rocmrun("probe", job, "--level", "quick", "--report", "r.json", env=credential)  # fmt: skip
    assert probed.returncode == 9, probed.stderr

    made = workspace.rocmrun(
        "doctor", job, "--log", "run.log", "--probe-report", "r.json", "--bundle", "b.json", "--json",
        env=credential,
    )  # fmt: skip
    read = workspace.rocmrun(
        "doctor", "--from", "b.json", "--json", env={"DOCKER_HOST": "unix:///nowhere.sock"}
    )
    text = (workspace.path / "b.json").read_text(encoding="ascii")
    here, there, bundle = json.loads(made.stdout), json.loads(read.stdout), json.loads(text)

    assert made.returncode == read.returncode
    assert [(c["id"], c["result"]) for c in here["checks"]] == [
        (c["id"], c["result"]) for c in there["checks"]
    ]
    assert [(f["kind"], f["confidence"]) for f in here["findings"]] == [
        (f["kind"], f["confidence"]) for f in there["findings"]
    ]
    assert here["bundle"]["differs"] is None
    assert (bundle["engine"]["kind"], bundle["looked"]["image"]["known"]) == ("docker", True)
    assert bundle["report"]["status"] == "fail"
    assert bundle["run"]["probe_outcome"] == "failed"
    assert bundle["profile"]["accelerator"] == "cpu"
    assert bundle["plan"]["env_from"] == ["MY_CREDENTIAL"]
    private = (MOUNT, VALUE, CHECK, SAID, SECRET, PROFILE, str(workspace.path))
    assert [each for each in private if each.lower() in text.lower()] == []
