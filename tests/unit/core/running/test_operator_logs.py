"""Logs of libraries: what turns them on, and which of their lines tell of lost speed."""

import pytest

from rocmrun.core.doctor import Check
from rocmrun.core.running.operator_logs import MARKS, SWITCHES, operator_checks, switched_on
from tests.unit.core.running.observations import record

# As the programs print them, found in public reports (the sources of the marks).
LINES = {
    "MIOpen has no compiled kernels": "MIOpen(HIP): Warning [SQLiteBase] Missing system database file: gfx1030_40.kdb Performance may degrade.",
    "MIOpen searches for the fastest": "MIOpen(HIP): Info [FindSolutionImpl] Perf Db: record not found for: ConvAsm1x1U",
    "MIOpen found no tuned solution": "MIOpen(HIP): Info2 [GetSolutionsFallback] Using WTI Fallback",
    "MIOpen computes with its naive": "MIOpen(HIP): Info2 [GetSolutionsFallback] id: 85, algo: 1, time: 1000, ws: 0, name: ConvDirectNaiveConvFwd",
    "torch falls back from hipBLASLt": "UserWarning: Attempting to use hipBLASLt on an unsupported architecture! Overriding blas backend to hipblas",
    "Triton tries variants": "Triton autotuning for function add_kernel finished after 0.48s; best config selected: BLOCK_SIZE: 128",
    "vLLM has no tuned experts": "WARNING [fused_moe.py:690] Using default MoE config. Performance might be sub-optimal! Config file not found",
}  # fmt: skip


def checks(
    log: str | None = "", problem: str = "", environment: dict[str, str] | None = None
) -> list[Check]:
    return list(operator_checks(record(environment=environment or {}), log, problem))


@pytest.mark.parametrize(
    ("variable", "on", "off"),
    [
        ("MIOPEN_ENABLE_LOGGING", "1", "0"),
        ("MIOPEN_ENABLE_LOGGING_CMD", "yes", "no"),
        ("MIOPEN_LOG_LEVEL", "6", "4"),
        ("HIPBLASLT_LOG_LEVEL", "5", "1"),
        ("HIPBLASLT_LOG_MASK", "4", "0"),
        ("ROCBLAS_LAYER", "1", "0"),
        ("AMD_LOG_LEVEL", "3", "0"),
        ("NCCL_DEBUG", "info", "WARN"),
        ("TORCH_LOGS", "recompiles", ""),
        ("TORCH_CPP_LOG_LEVEL", "INFO", "ERROR"),
        ("TRITON_PRINT_AUTOTUNING", "1", "0"),
        ("VLLM_LOGGING_LEVEL", "DEBUG", "INFO"),
    ],
)
def test_each_variable_has_values_that_turn_it_on(variable: str, on: str, off: str) -> None:
    """Errors and warnings alone are no log."""
    assert [switch.variable for switch, _ in switched_on({variable: on})] == [variable]
    assert switched_on({variable: off}) == ()
    assert switched_on({"MIOPEN_LOG_LEVEL": "much"}) == ()


def test_every_switch_and_mark_has_a_source() -> None:
    """Nothing is made up."""
    assert all(each.source.startswith("https://") for each in (*SWITCHES, *MARKS))


@pytest.mark.parametrize("says", LINES)
def test_a_line_that_tells_of_lost_speed_is_quoted(says: str) -> None:
    """With what it means; the same line is there a thousand times."""
    found = checks("starting\n" + 4 * (LINES[says] + "\n"))

    (told,) = [each for each in found if each.evidence.startswith(says)]
    assert told.result == "warn"
    assert LINES[says][:60] in told.evidence
    assert told.evidence.endswith("and 1 more")


def test_a_compile_at_the_first_run_asks_for_a_cache_that_stays() -> None:
    """The finding's page has more."""
    (found,) = checks(LINES["MIOpen has no compiled kernels"])

    assert (found.kind, found.hint) == ("miopen-first-run-slow", 'a cache that stays: [cache] mode = "persistent"')  # fmt: skip


def test_what_is_on_is_named_with_where_it_goes() -> None:
    """A file inside is not in the container's log; values are masked like everything."""
    environment = {"HIPBLASLT_LOG_LEVEL": "4", "HIPBLASLT_LOG_FILE": "/tmp/x.log", "NCCL_DEBUG": "WARN"}  # fmt: skip
    (found,) = checks(environment=environment)

    assert found.result == "warn"
    assert found.evidence == "HIPBLASLT_LOG_LEVEL=4: much is printed, which costs time; lines go where HIPBLASLT_LOG_FILE says"  # fmt: skip
    assert checks(environment={"TORCH_LOGS": "x"})[0].evidence == "TORCH_LOGS=x: much is printed, which costs time"  # fmt: skip


def test_none_that_is_on_is_well_and_a_log_that_cannot_be_read_is_unknown() -> None:
    """With the reason."""
    (quiet,) = checks()
    (unread,) = checks(None, "kept nowhere")

    assert (quiet.result, quiet.evidence) == ("ok", "none is turned on")
    assert (unread.result, unread.evidence) == ("unknown", "none is turned on; its log cannot be read: kept nowhere")  # fmt: skip


@pytest.mark.parametrize("value", ["9" * 5000, "²", "-1", "5.5"])
def test_a_level_that_is_no_number_turns_nothing_on(value: str) -> None:
    """A container's variables are whatever somebody wrote."""
    assert switched_on({"MIOPEN_LOG_LEVEL": value}) == ()
