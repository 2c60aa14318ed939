"""Whatever a driver, a kernel or a copied tree writes into these files, reading them raises nothing."""

from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.cgroups import group_paths
from rocmrun.core.running.cgroup import V1_FILES, V2_FILES, use_v1, use_v2
from rocmrun.core.running.gpu_metrics import Throttling, parse_gpu_metrics
from rocmrun.core.running.process import parse_fdinfo, parse_stat
from rocmrun.core.running.sensors import FILES, parse_sensors
from tests.unit.core.running.metrics import SIZES, table

NAMES = (*FILES, *V2_FILES, *(name for names in V1_FILES.values() for name in names))
FILES_OF_ANY_TEXT = st.dictionaries(st.sampled_from(NAMES), st.text(max_size=60))


@given(st.binary(max_size=200))
def test_any_bytes_as_gpu_metrics(data: bytes) -> None:
    """Either something is told, or why not."""
    found = parse_gpu_metrics(data)
    assert found.now is not None or found.cycles is not None or found.problem


@given(st.sampled_from(sorted(SIZES)), st.integers(0, 2**64 - 1))
def test_a_table_that_is_cut_is_not_read(revision: tuple[int, int], bits: int) -> None:
    """One byte less is another table."""
    whole = table(revision, ("Q", 8, bits))
    assert parse_gpu_metrics(whole[:-1]).problem


@given(FILES_OF_ANY_TEXT, st.text(max_size=200))
def test_any_text_in_the_other_files(files: dict[str, str], text: str) -> None:
    """Numbers that are none are not known."""
    assert parse_sensors(files, files, Throttling(), {}).unread == {}
    assert (use_v1(files).version, use_v2(files).version) == (1, 2)
    parse_fdinfo(f"drm-driver: amdgpu\n{text}")
    parse_stat(text, 100)
    group_paths(text)
