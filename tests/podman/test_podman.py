"""rocmrun on Podman's Docker socket: what works as on Docker, and what Podman does otherwise."""

import json
import signal
from pathlib import Path

from tests.docker.waiting import started
from tests.podman.service import Podman
from tests.workspace import Workspace

LINES = 20_000
# What Podman gives every container (containers/common).
OWN_FILTER = Path("/usr/share/containers/seccomp.json")
INSIDE = """
echo user $(id -u):$(id -g)
grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status
grep -E ' (/|/run|/tmp|/var/tmp) ' /proc/mounts
cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null
ls /sys/class/net
"""


def test_locks_launches_and_relays(workspace: Workspace, tiny_image: str) -> None:
    """The registry is asked in the engine's place; output, input and exit codes arrive as they left."""
    rocmrun, name = workspace.rocmrun, workspace.profile(tiny_image)
    text = "".join(f"line {number} of what came in\n" for number in range(LINES))

    asked = rocmrun("lock", name, "--upgrade", "--resolver", "engine")
    job = ("sh", "-c", "cat; echo e >&2; exit 7")
    echoed = rocmrun("launch", "-i", name, "--no-probe", "--", *job, input=text)
    absent = rocmrun("launch", name, "--no-probe", "--", "nosuchprogram")
    data = rocmrun("launch", name, "--no-probe", "--", "/bin")

    assert (asked.returncode, asked.stdout) == (8, "")
    assert "cannot ask registries" in asked.stderr
    assert (echoed.returncode, echoed.stdout == text) == (7, True)
    assert echoed.stderr.endswith("e\n")
    assert (absent.returncode, data.returncode) == (127, 126)
    assert "not found in" in absent.stderr


def test_rights_inside_and_as_recorded(
    workspace: Workspace, podman: Podman, tiny_image: str
) -> None:
    """What the plan says is what the container has, and what Podman adds by itself is bounded."""
    name = workspace.profile(tiny_image, '[container]\nuser = "1234:1235"\npids = 99\n')
    plan = json.loads(workspace.rocmrun("plan", name, "--json", check=True).stdout)
    keep = ("launch", name, "--no-probe", "--keep", "--name", f"rocmrun-{name}")

    inside = workspace.rocmrun(*keep, "--", "sh", "-c", INSIDE).stdout

    own = json.loads(podman("inspect", f"rocmrun-{name}"))[0]
    podman("rm", f"rocmrun-{name}")
    assert "user 1234:1235" in inside
    assert inside.count("0000000000000000") == 5  # all five sets of capabilities
    assert "NoNewPrivs:\t1" in inside
    assert "Seccomp:\t2" in inside
    mounts = {line.split()[1]: line for line in inside.splitlines() if line.count(" ") == 5}
    assert " ro," in mounts["/"]
    assert all(
        "noexec" in mounts[path] and "size=" in mounts[path] for path in ("/run", "/var/tmp")
    )
    assert "\n99\n" in inside
    assert inside.endswith("\nlo\n")
    assert (own["BoundingCaps"], own["EffectiveCaps"]) == (None, None)
    granted = {grant["what"] for grant in plan["plan"]["grants"]}
    assert {"tmpfs:/run", "tmpfs:/var/tmp"} <= granted
    assert any(what.startswith("ulimit:nproc=") for what in granted)


def test_lives_and_ends(workspace: Workspace, tiny_image: str) -> None:
    """Detached, listed, replaced, read, signalled, waited for and stopped."""
    rocmrun, name = workspace.rocmrun, workspace.profile(tiny_image)
    job = ("sh", "-c", "echo here; exec sleep 100")

    first = rocmrun("launch", name, "--no-probe", "--detach", "--", *job, check=True)
    second = rocmrun("launch", name, "--no-probe", "--detach", "--replace", "--", *job, check=True)
    listed = json.loads(rocmrun("ps", "--json", check=True).stdout)
    log = rocmrun("logs", name, check=True)
    stopped = rocmrun("stop", name, "--time", "0")
    with started(rocmrun, "launch", name, "--no-probe", "--", *job) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)

    assert first.stdout == second.stdout
    assert first.stdout.strip() in json.dumps(listed)
    assert log.stdout == "here\n"
    assert stopped.returncode == 0
    assert code == 143


def test_capabilities_are_in_force_for_every_user(workspace: Workspace, tiny_image: str) -> None:
    """Docker gives a user that is not root no use of one; Podman does, so that a job can need it."""
    tables = "".join(
        f'[[privileges]]\ngrant = "{grant}"\nreason = "the recipe has it"\n'
        for grant in ("cap:SYS_CHROOT", "ipc:host")
    )
    name = workspace.profile(tiny_image, tables)
    words = ("diff-privileges", name, "--repeats", "1", "--retries", "0", "--json")

    found = workspace.rocmrun(*words, "--", "chroot", "/", "true")

    assert found.returncode == 1, found.stderr
    certificate = json.loads(found.stdout)
    assert certificate["minimal"] == ["cap:SYS_CHROOT"]
    effects = {one["privilege"]: one["effect"] for one in certificate["verdicts"]}
    assert effects["cap:SYS_CHROOT"] == "effective"


def test_seccomp_profiles_are_files_for_as_long_as_podman_reads_them(
    workspace: Workspace, tiny_image: str, tmp_path: Path
) -> None:
    """Podman takes a path where Docker takes the text: nothing of it stays."""
    own = json.loads(OWN_FILTER.read_text(encoding="utf-8"))
    for rule in own["syscalls"]:
        rule["names"] = [name for name in rule["names"] if not name.startswith("mkdir")]
    file = tmp_path / "no-mkdir.json"
    file.write_text(json.dumps(own), encoding="utf-8")
    name = workspace.profile(
        tiny_image, f'[[privileges]]\ngrant = "seccomp:{file}"\nreason = "fewer calls"\n'
    )
    folder = tmp_path / "temporary"
    folder.mkdir()

    done = workspace.rocmrun(
        "launch", name, "--no-probe", "--", "mkdir", "/tmp/x", env={"TMPDIR": str(folder)}
    )

    assert "Function not implemented" in done.stderr, done.stderr
    assert list(folder.iterdir()) == []


def test_the_probe_finds_what_the_plan_says(workspace: Workspace, python_image: str) -> None:
    """Of an image without torch it proves no GPU; everything around it is as planned."""
    name = workspace.profile(python_image)

    done = workspace.rocmrun("probe", name, "--json")

    assert done.returncode == 9, done.stderr
    checks = json.loads(done.stdout)["probe"]["checks"]
    failed = [f"{one['group']} {one['name']}" for one in checks if one["status"] == "fail"]
    assert failed == ["build torch"]
    assert {"environment", "isolation"} <= {one["group"] for one in checks}
