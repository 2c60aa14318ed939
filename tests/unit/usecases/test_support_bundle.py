"""A support bundle: nothing personal in it, and the same diagnosis from it as where it was made."""

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.console.bundle import tell_written
from rocmrun.console.doctor import diagnosis_as_json
from rocmrun.core.bundle import MOST_LINES, VERSION, bundle_text
from rocmrun.core.doctor import Diagnosis
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.known_strings import Personal, base64_cores, percent_encoded
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import HostSummary, RecordedError, RefusedRun, RunRecord
from rocmrun.errors import BundleInvalid, BundleUnwritable, EngineUnreachable
from rocmrun.usecases.doctor import Case, judged, look
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.judge_bundle import case_of, judge_bundle
from rocmrun.usecases.proofs import keep_proof
from rocmrun.usecases.support_bundle import (
    check_bundle_path,
    make_bundle,
    read_run,
    write_bundle,
)
from tests.builders import ENGINE, IMAGE, host
from tests.fakes import FakeEngine
from tests.hosts import FakeGpu, FakeNode, write
from tests.unit.usecases.stage import PULLED, Stage, an_engine

UNIQUE_ID = 0x7F3A9C1D2E4B5A60
# What is known before anything is read: from the caller, the profile, the host, the engine, the image.
KNOWN = {
    "user": "wkowalski",
    "person": "Jürgen Döring",
    "group": "quantumlab",
    "node": "gpubox-17",
    "domain": "hpc.zyntrix.de",
    "caller secret": "correcthorsebattery",
    "env value": "zyntrix-churn-model",
    "env token": "abCD1234efGH5678",
    "parameter": "falconette",
    "mount": "nightjar",
    "mount with blanks": "Blue Heron",
    "volume": "zyntrix_pgdata",
    "option value": "kestrel-70b-internal",
    "registry": "registry.zyntrix.io:5000",
    "repository": "mlops-secret",
    "profile": "ospreyjob",
    "unique id": f"{UNIQUE_ID:016x}",
    "unique id, decimal": str(UNIQUE_ID),
    "engine": "7XKQ:ABCD:WXYZ:EFGH",
    "image value": "built-by-mwalters",
    "label": "Martha Walters <mw@zyntrix.io>",
    "port address": "10.44.5.6",
}
# What tells itself by its form, or by what stands beside it, in text that nobody has seen before.
FORMS = {
    "home": ("open('/home/tsuzuki/.cache/x'): denied", "tsuzuki"),
    "home elsewhere, no sign": ("assigned to tsuzuki today", "tsuzuki"),
    "mail": ("mail ops.team@fenwick-labs.org", "fenwick-labs"),
    "IPv4": ("connect 172.31.9.77:29500 failed", "172.31.9.77"),
    "IPv6": ("inet6 fe80::21a:2bff:fe3c:4d5e/64", "21a:2bff"),
    "MAC": ("link/ether 00:1a:2b:3c:4d:5e", "00:1a:2b"),
    "host of a URL": ("GET https://artifacts.fenwick.internal/a?sig=9f8e7d6c", "fenwick"),
    "query": ("GET https://artifacts.fenwick.internal/a?sig=9f8e7d6c", "9f8e7d6c"),
    "login in a URL": ("https://deploy:hunter2secret@github.com/x", "hunter2secret"),
    "token": ("HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUv", "AbCdEfGhIj"),
    "bearer": ("Authorization: Bearer zzTOPsecret12345", "zzTOPsecret12345"),
    "syslog": ("Nov 30 10:01:02 bluerack9 kernel: amdgpu 0000:63:00.0: reset", "bluerack9"),
    "prompt of a shell": ("hmoreau@labpc:~$ rocminfo", "hmoreau"),
    "listing": ("crw-rw---- 1 pellegrini starlings 226, 128 Nov 30 10:00 /dev/dri/renderD128", "pellegrini"),
    "group of a listing": ("crw-rw---- 1 pellegrini starlings 226, 128 Nov 30 10:00 /dev/dri/renderD128", "starlings"),
    "id": ("uid=1000(okonkwo) gid=1000(okonkwo) groups=1000(okonkwo),44(video),1005(moonshot)", "okonkwo"),
    "group by number": ("uid=1000(okonkwo) gid=1000(okonkwo) groups=1000(okonkwo),44(video),1005(moonshot)", "moonshot"),
    "path": ("FileNotFoundError: '/data/plumage-project/run7/weights.pt'", "plumage"),
    "registry": ("pulling reg.plover.corp/team-x/thing:v1", "plover"),
    "cgroup": ("0::/user.slice/user-1000.slice/user@1000.service/app-albatross.scope", "albatross"),
    "serial": ("GPU[0]: Serial Number: 692231000123", "692231000123"),
    "uuid": ("GPU UUID: 6fa459ea-ee8a-3ca4-894e-db77e160355e", "6fa459ea"),
    "other GPU": ("GPU-a1b2c3d4e5f60718 is busy", "a1b2c3d4e5f60718"),
    "prompt": ("Received request: prompt: 'Dear doctor Lindqvist', params: x", "Lindqvist"),
    "model": ("vllm serve --model cormorant/condor-8b", "condor"),
    "windows": (r"C:\Users\bjornsen\models", "bjornsen"),
    "in JSON, escaped": ('{"log": "open /home/\\u0074suzuki/x: denied\\n"}', "tsuzuki"),
    "key": ("-----BEGIN OPENSSH PRIVATE KEY-----b3BlbnNzaC1rZXk", "b3BlbnNz"),
    "blob": ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7x9Zk1mZ0pQwErTyUiOpAsDfGh", "AAAAB3Nza"),
}  # fmt: skip
PERSONAL = Personal(
    users=(KNOWN["user"], KNOWN["person"], KNOWN["group"]),
    hosts=(KNOWN["node"], KNOWN["domain"]),
    secrets=(KNOWN["caller secret"],),
)
PROFILE = f"""
accelerator = "rocm"
description = "ask {FORMS["home"][1]}"
[parameters]
data = {{ default = "/srv/{KNOWN["parameter"]}", help = "where" }}
[image]
ref = "{KNOWN["registry"]}/{KNOWN["repository"]}/vllm:1"
[container]
command = ["serve", "--served-model-name", "{KNOWN["option value"]}", "--port=8000"]
network = "bridge"
ports = ["{KNOWN["port address"]}:8000:8000"]
env = {{ PROJECT = "{KNOWN["env value"]}", HSA_OVERRIDE_GFX_VERSION = "9.4.2", NCCL_DEBUG = "INFO" }}
env_from = ["MY_CREDENTIAL"]
[[mounts]]
source = "%s/{KNOWN["mount"]}"
target = "/models"
[[mounts]]
source = "%s/{KNOWN["mount with blanks"]}"
target = "/data"
[[mounts]]
type = "volume"
source = "{KNOWN["volume"]}"
target = "/pg"
[[privileges]]
grant = "ulimit:memlock=-1"
reason = "asked by {FORMS["id"][1]}"
"""
ENGINE_HERE = replace(
    ENGINE,
    identity=KNOWN["engine"],
    mirrors=(f"https://mirror.{KNOWN['domain']}/",),
    security_options=(f"name=seccomp,profile=/etc/{KNOWN['mount']}/default.json",),
)
IMAGE_HERE = replace(
    IMAGE,
    env=(("PATH", "/usr/bin"), ("BUILD", KNOWN["image value"]), ("HIP_VISIBLE_DEVICES", "0")),
    labels=(("maintainer", KNOWN["label"]),),
    user="2000:2000",
)


def spread(text: str) -> str:
    """Return *text* as logs may have it."""
    return f"plain {text} end\nurl %2F{percent_encoded(text)}\nupper {text.upper()}\nin_{text}_name"


def a_log() -> str:
    lines = ["Unable to open /dev/kfd read-write: Permission denied"]
    lines += [spread(value) for value in KNOWN.values()]
    lines += [line for line, _ in FORMS.values()]
    lines += ['nodes: {"/dev/kfd": "root:992 0660"}', "groups: 1000 44"]
    return "\n".join(lines)


def a_report() -> ProbeReport:
    evidence: dict[str, Any] = {name: spread(value) for name, value in KNOWN.items()}
    evidence |= {f"by form {name}": line for name, (line, _) in FORMS.items()}
    evidence["command"] = ["sh", "-c", "cd /srv && runlindgren now"]
    evidence |= {KNOWN["user"]: {"unique_id": UNIQUE_ID, "api_token": "shortsecret"}}
    failed = ProbeCheck(
        group="own", name=KNOWN["profile"], status="fail",
        reason=f"{KNOWN['mount']}: no such file", evidence=evidence,
    )  # fmt: skip
    return ProbeReport(
        status="fail", reason=spread(KNOWN["node"]), checks=(failed,), stderr_tail=(KNOWN["user"],)
    )


def a_run() -> RunRecord:
    return RunRecord(
        profile=KNOWN["profile"],
        image_ref=f"{KNOWN['registry']}/{KNOWN['repository']}/vllm:1",
        platform="linux/amd64",
        plan_hash="0" * 64,
        isolation="strong",
        host=HostSummary(kernel="6.8.0"),
        error=RecordedError(slug="probe-failed", code=9, message=spread(KNOWN["user"])),
        started_at="2026-01-01T00:00:00+00:00",
    )


@pytest.fixture
def loaded_stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a stage where every input has something personal in it."""
    for name in (KNOWN["mount"], KNOWN["mount with blanks"]):
        (stage.path / name).mkdir()
    (stage.path / f"profiles/{KNOWN['profile']}.toml").write_text(
        PROFILE % (stage.path, stage.path), encoding="utf-8"
    )
    stage.host(FakeGpu(unique_id=UNIQUE_ID, hive_id=UNIQUE_ID + 1))
    write(stage.root / "proc/sys/kernel/hostname", f"{KNOWN['node']}.{KNOWN['domain']}\n")
    write(
        stage.root / "proc/cmdline",
        f"root=/dev/mapper/{KNOWN['mount']} iommu=pt amdgpu.noretry=0 ip={KNOWN['port address']}\n",
    )
    # As the caller's environment has it, which a profile's env_from names.
    monkeypatch.setenv("MY_CREDENTIAL", KNOWN["env token"])
    return stage


def the_case(stage: Stage) -> tuple[Case, Any]:
    ref = f"{KNOWN['registry']}/{KNOWN['repository']}/vllm:1"
    engine = FakeEngine(facts=ENGINE_HERE, images={ref: IMAGE_HERE, PULLED: IMAGE_HERE})
    ask = stage.ask(profile=KNOWN["profile"], unlocked=True, pull=False)
    found = look(
        ask,
        host_root=stage.root,
        log=a_log(),
        report=a_report(),
        connect=lambda: engine,
        always=True,
    )
    return found, ask


def planted() -> Mapping[str, str]:
    return KNOWN | {f"form: {name}": private for name, (_, private) in FORMS.items()}


def forms(text: str) -> set[str]:
    """Return every spelling of *text* that must not be there, in lower case; base64 as it is."""
    plain = {text, percent_encoded(text), json.dumps(text)[1:-1], text.replace(" ", "+")}
    return {each.lower() for each in plain}


def test_nothing_that_was_planted_is_in_any_byte(loaded_stage: Stage, tmp_path: Path) -> None:
    """Not as written, not for a URL, not in base64, in no case of letters, whichever input had it."""
    case, ask = the_case(loaded_stage)
    path = tmp_path / "bundle.json"
    assert case.prepared is not None, case.seen and case.seen.refusal
    assert case.seen is not None
    write_bundle(
        case,
        ask,
        path,
        found=judged(case),
        render=diagnosis_as_json,
        run=a_run(),
        personal=lambda: PERSONAL,
    )

    text = path.read_bytes().decode("ascii")
    lower = text.lower()
    leaks = {
        f"{name}: {form}" for name, private in planted().items() for form in forms(private) if form in lower
    }  # fmt: skip
    leaks |= {
        f"{name}: base64" for name, private in planted().items()
        for core in base64_cores(private) if len(core) >= 6 and core in text
    }  # fmt: skip
    assert leaks == set()
    assert "lindgren" not in lower
    assert len(planted()) > 40
    assert str(tmp_path).lower() not in lower
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def masked_away(value: Any) -> Any:
    """Return JSON values with the place of every mark and of every word that one may stand for left open."""
    if isinstance(value, dict):
        return {key: masked_away(each) for key, each in value.items()}
    if isinstance(value, list):
        return [masked_away(each) for each in value]
    if not isinstance(value, str):
        return value
    known = sorted((form for each in planted().values() for form in forms(each)), key=len)
    text = value
    for form in reversed(known):
        text = re.sub(re.escape(form), "<x>", text, flags=re.IGNORECASE)
    return re.sub(r"<[a-z]+>|[A-Z]{2,8}-\d+|…", "<x>", text)


def through_a_bundle(case: Case, personal: Personal = PERSONAL) -> tuple[Any, Any]:
    """Return what is found in a case, and in the bundle of it, both as JSON values."""
    bundle = make_bundle(case, personal, at="2026-01-01T00:00:00+00:00", render=diagnosis_as_json)
    again = diagnosis_as_json(judged(case_of(bundle)))
    assert again == bundle.found
    return masked_away(diagnosis_as_json(judged(case))), masked_away(again)


def no_engine() -> Engine:
    msg = f"no engine answers on tcp://{KNOWN['port address']}:2375"
    raise EngineUnreachable(msg)


SENT_OF_HOST = {
    "schema_version", "root", "kernel", "architecture", "os_id", "os_version", "os_name", "cmdline", "cpu_count",
    "memory_bytes", "numa_nodes", "numa_balancing", "driver_version", "driver_source", "nvidia", "kfd", "kfd_topology",
    "gpus", "pci_gpus", "card_nodes", "render_nodes", "devices", "cgroup_version", "selinux", "apparmor",
    "yama_ptrace_scope", "memlock_bytes", "nofile_limit", "nproc_limit", "wsl", "problems",
}  # fmt: skip
SENT_OF_GPU = {
    "index", "node", "permitted", "gfx", "gfx_source", "name", "device_id", "vendor_id", "subsystem_id", "revision",
    "pci_address", "domain_known", "partition", "compute_partition", "memory_partition", "render_minor", "render_node",
    "card", "kfd_gpu_id", "vram_bytes", "compute_units", "simd_count", "num_xcc", "cpu_node", "numa_node", "apu",
    "amd_smi_index", "xgmi_peers", "links", "firmware", "vbios", "link_width", "link_width_max", "link_speed",
    "link_speed_max", "holders", "skipped_lines",
}  # fmt: skip
HOSTS: Mapping[str, Mapping[str, Any]] = {
    "healthy": {"gpus": [FakeGpu(unique_id=UNIQUE_ID)]},
    "node for its owner alone": {"gpus": [FakeGpu()], "kfd": FakeNode(mode=0o600)},
    "node of group 0": {"gpus": [FakeGpu(node=FakeNode(gid=0))]},
    "without a render node": {"gpus": [FakeGpu(node=None)]},
    "no driver": {"gpus": [], "kfd": None},
    "several Radeons": {
        "gpus": [FakeGpu(gfx_version=110000, device_id=0x744C, address=f"0000:0{n}:00.0", minor=128 + n) for n in (3, 4)],
    },
    "driver of AMD's": {"gpus": [FakeGpu(unique_id=UNIQUE_ID)], "driver_version": "6.10.5"},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_the_same_checks_come_out_of_a_bundle(name: str, stage: Stage) -> None:
    """With a profile and an engine, and without both; word for word, but for what is masked."""
    facts = dict(HOSTS[name])
    gpus = facts.pop("gpus")
    (stage.path / "tree").mkdir()
    stage.host(*gpus, **facts)
    stage.profile('accelerator = "rocm"\n[image]\nref = "example.com/rocm/torch:1"\n')
    connect = stage.connect(an_engine(facts=ENGINE_HERE))
    for ask, connected in ((None, no_engine), (stage.ask(pull=False), connect)):
        case = look(ask, host_root=stage.root, log=None, report=None, connect=connected)
        here, there = through_a_bundle(case)
        assert here == there


def test_the_same_diagnosis_comes_out_of_a_bundle(loaded_stage: Stage) -> None:
    """Checks, kinds, confidence, lines and next steps, whatever was masked."""
    case, _ = the_case(loaded_stage)

    here, there = through_a_bundle(case)

    assert here["checks"] == there["checks"]
    assert [f["kind"] for f in here["findings"]] == [f["kind"] for f in there["findings"]]
    assert [f["confidence"] for f in here["findings"]] == [f["confidence"] for f in there["findings"]]  # fmt: skip
    assert [e["line"] for f in here["findings"] for e in f["evidence"]] == [
        e["line"] for f in there["findings"] for e in f["evidence"]
    ]


def test_the_matrix_is_asked_anew(stage: Stage) -> None:
    """By the facts of the bundle and this version's data, not by what was answered then."""
    stage.host(FakeGpu(), driver_version="6.10.5")
    stage.profile('accelerator = "rocm"\n[image]\nref = "example.com/rocm/torch:1"\n')
    image = replace(IMAGE, env=(("ROCM_VERSION", "6.4.1"), ("PYTORCH_ROCM_ARCH", "gfx90a")))
    engine = FakeEngine(images={"example.com/rocm/torch:1": image, PULLED: image})
    ask = stage.ask(pull=False)
    case = look(ask, host_root=stage.root, log=None, report=None, connect=stage.connect(engine))
    bundle = make_bundle(case, PERSONAL, at="", render=diagnosis_as_json)
    assert case.seen is not None
    assert case.seen.support is not None

    again = case_of(bundle).seen

    assert again is not None
    assert again.support == case.seen.support
    assert bundle.looked is not None
    assert bundle.looked.support is not None
    assert bundle.looked.support.claims is not None
    assert bundle.looked.support.claims.gfx == ("gfx90a",)


def test_a_host_keeps_all_but_its_name_and_the_ids() -> None:
    """Every other fact comes back as it was, so that rules to come can use it."""
    whole = host(
        2, hostname="gpubox-17", cmdline="iommu=pt root=/dev/sda1", os_name="Ubuntu 24.04.3 LTS"
    )
    case = look(None, host_root=Path("/nowhere"), log=None, report=None, connect=no_engine, host=whole)  # fmt: skip
    bundle = make_bundle(case, Personal(), at="", render=diagnosis_as_json)

    seen = case_of(bundle).seen

    assert seen is not None
    assert [gpu.unique_id for gpu in seen.host.gpus] == ["GPU-1", "GPU-2"]
    gpus = tuple(
        replace(gpu, unique_id=kept.unique_id)
        for gpu, kept in zip(seen.host.gpus, whole.gpus, strict=True)
    )
    assert replace(seen.host, gpus=gpus) == replace(whole, hostname=None, cmdline="iommu=pt")


def test_a_new_fact_of_a_host_is_judged_before_it_is_sent() -> None:
    """Whoever adds a field decides here whether it tells one machine from another."""
    of_host = {field.name for field in fields(HostFacts)} - {"hostname"}
    of_gpu = {field.name for field in fields(Gpu)} - {"unique_id", "hive_id"}

    assert (of_host, of_gpu) == (SENT_OF_HOST, SENT_OF_GPU)


@pytest.mark.parametrize(
    "login", ["bundle", "format", "docker", "kernel", "policy", "pass", "looked", "checks"]
)
def test_a_login_that_is_a_word_of_ours_breaks_nothing(
    login: str, stage: Stage, tmp_path: Path
) -> None:
    """It tells nobody anything, and the bundle can still be read."""
    connect = stage.connect(an_engine())
    case = look(
        None,
        host_root=stage.root,
        log=f"/home/{login}/x",
        report=a_report(),
        connect=connect,
        always=True,
    )
    path = tmp_path / "b.json"
    write_bundle(
        case,
        None,
        path,
        found=judged(case),
        render=diagnosis_as_json,
        personal=lambda: Personal(users=(login,)),
    )

    bundle = judge_bundle(path).bundle
    assert bundle.log_text == "/home/USER-1/x"
    assert bundle.report is not None


def test_equal_cases_make_equal_bundles(loaded_stage: Stage) -> None:
    """But for the time."""
    case, _ = the_case(loaded_stage)
    texts = {
        bundle_text(make_bundle(case, PERSONAL, at="then", render=diagnosis_as_json))
        for _ in range(2)
    }

    assert len(texts) == 1


def test_a_long_log_is_cut_in_the_middle_and_keeps_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What began it and what ended it stay; what was left out is said, and what is not found for it."""
    lines = [f"step {number} loss {'x' * (number % 90)}" for number in range(40_000)]
    lines[7] = "Unable to open /dev/kfd read-write: Permission denied"
    lines[-3] = "HIP error: invalid device function"
    lines[9] = "y" * 100_000
    lines[12_000] = "OSError: [Errno 28] No space left on device: '/dev/shm/torch_1'"
    case = Case(log="\n".join(lines))
    written = write_bundle(
        case,
        None,
        tmp_path / "b.json",
        found=judged(case),
        render=diagnosis_as_json,
        personal=Personal,
    )
    tell_written(written)

    bundle, text = written.bundle, bundle_text(written.bundle)
    told = capsys.readouterr().err
    shown = (bundle.log_text or "").split("\n")

    assert len(text) < 4 * 1024 * 1024
    assert len(shown) == len(lines)
    assert (shown[7], shown[-3]) == (lines[7], lines[-3])
    assert any("lines of the log" in each for each in bundle.cut)
    assert any("long lines" in each for each in bundle.cut)
    assert "arch-not-in-image" in bundle.kinds
    assert "without masking and cutting the causes are " in written.differs
    assert "left out: " in told
    assert written.differs in told


def test_a_log_of_any_bytes_keeps_its_lines() -> None:
    """A terminal's title that nobody ended, keys without an end, quotes across lines: each line stays where it was."""
    lines = ["\x1b]0;a title", "HIP error: invalid device function", "password:", "x", "cookie:",
             "prompt: 'a", "b'", "\x1b[", "\u2028\x85 \x0c", "end", "-----BEGIN RSA PRIVATE KEY-----", "abc"]  # fmt: skip

    bundle = make_bundle(Case(log="\n".join(lines)), Personal(), at="now", render=diagnosis_as_json)

    shown = (bundle.log_text or "").split("\n")
    assert len(shown) == len(lines)
    assert (shown[1], shown[9]) == (lines[1], "end")


def test_a_report_of_any_size_fits() -> None:
    """Long texts and lists are cut, and that is said."""
    evidence = {"text": "word " * 50_000, "list": list(range(5_000))}
    checks = tuple(
        ProbeCheck(group="own", name=f"c{n}", status="pass", evidence=evidence) for n in range(300)
    )
    case = Case(report=ProbeReport(status="pass", checks=checks))
    bundle = make_bundle(case, Personal(), at="", render=diagnosis_as_json)

    assert len(bundle_text(bundle)) < 4 * 1024 * 1024
    assert len(bundle.cut) == 3


def test_a_proof_that_counts_is_in_it(stage: Stage) -> None:
    """For people: no check reads it."""
    ask = stage.ask(pull=False)
    connect = stage.connect(an_engine())
    case = look(ask, host_root=stage.root, log=None, report=None, connect=connect)
    assert case.prepared is not None
    slow = ProbeCheck(
        group="device", name="copy", status="degraded", reason="slow at /home/tsuzuki"
    )
    report = ProbeReport(status="degraded", level="quick", checks=(slow,))
    prepared = case.prepared
    keep_proof(prepared.plan, prepared.host, prepared.engine, prepared.plan.probe.level, report)

    proof = make_bundle(case, Personal(), at="", render=diagnosis_as_json).proof

    assert proof is not None
    assert (proof["status"], proof["not_passed"]) == (
        "degraded",
        ["device: copy: slow at /home/USER-1"],
    )


def test_the_record_of_a_run_is_found_in_a_reports_file(tmp_path: Path) -> None:
    """Also of one that was refused; a report by itself has none."""
    run, refused, alone = tmp_path / "run.json", tmp_path / "refused.json", tmp_path / "report.json"
    run.write_text(a_run().model_dump_json())
    refused.write_text(
        RefusedRun(
            profile="p",
            error=RecordedError(slug="usage", code=2, message="m"),
            started_at="",
            ended_at="",
        ).model_dump_json()
    )
    alone.write_text(ProbeReport(status="pass").model_dump_json())

    assert isinstance(read_run(run), RunRecord)
    assert isinstance(read_run(refused), RefusedRun)
    assert [read_run(path) for path in (alone, tmp_path / "none", tmp_path)] == [None, None, None]


class TestPlace:
    """Where a bundle may be written."""

    def test_what_is_there_stays(self, tmp_path: Path) -> None:
        """Unless it is said otherwise."""
        path = tmp_path / "b.json"
        path.write_text("mine")

        with pytest.raises(BundleUnwritable, match="is there already"):
            check_bundle_path(path, force=False)
        check_bundle_path(path, force=True)

    @pytest.mark.parametrize("place", ["missing/b.json", ".", "-"])
    def test_a_place_for_no_file_is_refused(self, place: str, tmp_path: Path) -> None:
        """Before anything is looked at."""
        with pytest.raises(BundleUnwritable):
            check_bundle_path(Path(place) if place == "-" else tmp_path / place, force=True)

    def test_it_is_its_owners_alone(self, tmp_path: Path) -> None:
        """Also where a file that others may read was replaced."""
        path = tmp_path / "b.json"
        path.write_text("old")
        path.chmod(0o644)

        write_bundle(
            Case(log="x"),
            None,
            path,
            found=Diagnosis(),
            render=diagnosis_as_json,
            personal=Personal,
        )

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["b.json"]


class TestReading:
    """What somebody sent, which may be anything."""

    def a_bundle(self) -> dict[str, Any]:
        case = look(
            None, host_root=Path("/"), log="x", report=None, connect=no_engine, host=host(1)
        )
        text = bundle_text(make_bundle(case, Personal(), at="", render=diagnosis_as_json))
        value: dict[str, Any] = json.loads(text)
        return value

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"", "no JSON"),
            (b"{", "no JSON"),
            (b"[1]", "no support bundle"),
            (b'{"format": "other"}', "no support bundle"),
            (b"\x1f\x8b\x08\x00\xff", "not UTF-8"),
            (b"PK\x03\x04\xff", "not UTF-8"),
            (b"[" * 200_000, "no JSON"),
            (b'{"format": "rocmrun support bundle", "version": 1}', "damaged"),
            (b'{"format": "rocmrun support bundle", "version": 1, "made": {"rocmrun": "1", "at": ""}, "log": [{"first": 99999999999, "lines": []}]}', "damaged"),
            (b'{"a": ' + b"1" * 10_000 + b"}", "no JSON"),
            (b" " * (16 * 1024 * 1024 + 1), "larger than"),
        ],
        ids=["empty", "cut off", "list", "other", "gzip", "zip", "nested", "no parts", "a gap without end", "a number without end", "huge"],
    )  # fmt: skip
    def test_what_is_none_is_refused(self, content: bytes, says: str, tmp_path: Path) -> None:
        """In words, with nothing unpacked and nothing written."""
        path = tmp_path / "b.json"
        path.write_bytes(content)

        with pytest.raises(BundleInvalid, match=says):
            judge_bundle(path)
        assert [each.name for each in tmp_path.iterdir()] == ["b.json"]

    @pytest.mark.parametrize("place", [".", "missing.json"])
    def test_no_file_is_refused(self, place: str, tmp_path: Path) -> None:
        """A directory is none."""
        with pytest.raises(BundleInvalid):
            judge_bundle(tmp_path / place)

    @pytest.mark.parametrize(
        ("key", "value"),
        [("host", {"gpus": "many"}), ("host", {"kernel": "6"}), ("engine", {"kind": 3}), ("looked", {"policy": "never"})],
    )  # fmt: skip
    def test_a_damaged_part_is_named(self, key: str, value: Any, tmp_path: Path) -> None:
        """Not a bug of ours."""
        path = tmp_path / "b.json"
        path.write_text(json.dumps(self.a_bundle() | {key: value}))

        with pytest.raises(BundleInvalid, match="damaged"):
            judge_bundle(path)

    def test_one_of_a_newer_rocmrun_is_refused(self, tmp_path: Path) -> None:
        """It may mean other things by the same words."""
        path = tmp_path / "b.json"
        path.write_text(json.dumps(self.a_bundle() | {"version": VERSION + 1}))

        with pytest.raises(BundleInvalid, match=f"version {VERSION + 1}"):
            judge_bundle(path)

    @pytest.mark.parametrize("version", [True, "2", -1, 0, 1.0, None, 10**60])
    def test_a_version_is_a_number(self, version: object, tmp_path: Path) -> None:
        """What could be read as this version is not taken for it."""
        path = tmp_path / "b.json"
        path.write_text(json.dumps(self.a_bundle() | {"version": version}))

        with pytest.raises(BundleInvalid):
            judge_bundle(path)

    def test_gaps_of_a_log_cost_little(self, tmp_path: Path) -> None:
        """Whoever sent it may have written any numbers: a bundle of some bytes takes no minutes to judge."""
        path = tmp_path / "b.json"
        log = [{"first": MOST_LINES, "lines": ["HIP error: invalid device function"]}]
        path.write_text(json.dumps(self.a_bundle() | {"log": log}))

        found = judge_bundle(path).found.findings

        lines = [line.number for each in found for reason in each.reasons for line in reason.lines]
        assert max(lines) == MOST_LINES

    def test_keys_that_nobody_knows_are_ignored_and_missing_ones_have_defaults(
        self, tmp_path: Path
    ) -> None:
        """So that other versions' bundles stay readable."""
        value = self.a_bundle() | {"weather": "fine"}
        for key in ("cut", "masked", "found", "plan", "looked", "engine"):
            del value[key]
        path = tmp_path / "b.json"
        path.write_text(json.dumps(value))

        found = judge_bundle(path)

        assert found.bundle.kinds == ()
        assert [check.id for check in found.found.checks if check.id == "driver"] == ["driver"]
