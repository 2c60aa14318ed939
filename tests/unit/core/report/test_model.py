"""Records: what they hold, how they are read back, what they say."""

from typing import Any

from pydantic import BaseModel

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RecordedError, RunRecord
from tests.unit.core.plan_values import DIGEST, a_plan

ENGINE = EngineFacts(kind="docker", version="29.0.0", api_version="1.52", address="unix:///run/d")
HOST = HostFacts(
    kernel="6.8.0",
    driver_version="6.14.5",
    driver_source="dkms",
    gpus=(
        Gpu(index=2, node=3, unique_id="0000000000000002"),
        Gpu(
            index=3,
            node=4,
            gfx="gfx942",
            pci_address="0000:63:00.0",
            unique_id="f330dc0000000063",
            render_minor=131,
            vbios="113-M3000100-102",
            firmware=(("MEC", "0x00000090"), ("SDMA0", "0x00000012")),
        ),
    ),
)


def check(name: str, *, group: str = "device", **values: Any) -> ProbeCheck:
    return ProbeCheck.model_validate({"group": group, "name": name, "status": "pass", **values})


REPORT = ProbeReport(
    status="fail",
    reason="device 1: matmul_fp16: wrong",
    checks=(
        check("torch", group="build", evidence={"version": "2.13.0"}),
        check("accelerator", group="build", evidence={"hip": "7.2.4", "cuda": None}),
        check("matmul_fp16", device=10),
        check("matmul_fp16", device="cpu"),
        check("matmul_fp16", device=2),
        check("matmul_fp16", device=1, status="fail", reason="wrong"),
    ),
)


def begun() -> RunRecord:
    return RunRecord.begin(a_plan(), HOST, ENGINE, started_at="2026-01-02T03:04:05+00:00")


def test_a_check_is_found_by_its_names() -> None:
    found = REPORT.find("device", "matmul_fp16", 1)

    assert found is not None
    assert (found.status, found.label) == ("fail", "device 1: matmul_fp16")
    assert REPORT.find("device", "matmul_fp16") is None
    assert REPORT.failures == (found,)


def test_versions_are_those_that_the_probe_saw() -> None:
    assert REPORT.version_of("torch") == "2.13.0"
    assert REPORT.version_of("hip") == "7.2.4"
    assert REPORT.version_of("cuda") is None
    assert ProbeReport(status="broken").version_of("torch") is None


def test_devices_are_in_the_order_of_their_numbers() -> None:
    assert REPORT.devices == (1, 2, 10, "cpu")


def test_a_record_holds_the_gpus_that_the_plan_passes_and_no_other() -> None:
    record = begun()

    assert [gpu.unique_id for gpu in record.host.gpus] == ["f330dc0000000063"]
    assert record.host.gpus[0].firmware == {"MEC": "0x00000090", "SDMA0": "0x00000012"}
    assert (record.host.kernel, record.host.driver_source) == ("6.8.0", "dkms")


def test_a_record_names_what_was_locked_and_what_was_granted() -> None:
    record = begun()

    assert (record.image_digest, record.plan_hash) == (DIGEST, a_plan().hash)
    assert [grant.what for grant in record.grants] == ["group:992"]
    assert record.engine is not None
    assert record.engine.api_version == "1.52"


def test_a_probe_leaves_its_verdict_and_versions() -> None:
    record = begun().with_probe(REPORT)

    assert (record.probe_outcome, record.probe_reason) == ("failed", REPORT.reason)
    assert (record.torch_version, record.rocm_version) == ("2.13.0", "7.2.4")


def test_a_broken_report_is_a_failed_probe() -> None:
    assert begun().with_probe(ProbeReport(status="broken")).probe_outcome == "failed"


def test_a_reused_or_absent_probe_says_why() -> None:
    passed = ProbeReport(status="pass")
    reused = begun().with_probe(passed, reused="passed 3 minutes ago")

    assert (reused.probe_outcome, reused.probe_reason) == ("reused", "passed 3 minutes ago")
    absent = begun().without_probe("--no-probe")
    assert (absent.probe_outcome, absent.probe_reason, absent.probe) == (
        "none",
        "--no-probe",
        None,
    )


def test_a_finished_record_is_read_back_as_it_was() -> None:
    error = RecordedError(slug="probe-failed", code=9, message="device 1", hint="rocmrun doctor")
    record = begun().with_probe(REPORT).ended(ended_at="2026-01-02T03:05:00+00:00", error=error)

    assert RunRecord.model_validate_json(record.model_dump_json()) == record
    assert record.exit_code is None


def test_a_newer_record_is_still_readable() -> None:
    newer = begun().model_dump() | {"added_later": {"x": 1}}

    assert RunRecord.model_validate(newer) == begun()


def test_the_schema_describes_every_field() -> None:
    """What `--report` writes is published as a JSON schema."""
    models: tuple[type[BaseModel], ...] = (ProbeReport, RunRecord)
    for model in models:
        schema = model.model_json_schema()
        assert set(schema["properties"]) == set(model.model_fields)
        assert "ProbeCheck" in schema["$defs"]
