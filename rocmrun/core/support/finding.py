"""One question to the support matrix and its answer, and the job that all questions are about."""

from dataclasses import dataclass
from typing import Literal

from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.support.matrix import Matrix, Release

Subject = Literal["release", "gpu", "system", "kernel", "driver", "torch", "code"]
Verdict = Literal["supported", "deprecated", "unknown", "outside", "unsupported", "incompatible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One question and its answer.

    Attributes:
        row: What of the matrix it rests on; "" where there is nothing.
        sources: Where that was read.
    """

    subject: Subject
    verdict: Verdict
    sentence: str
    row: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is judged.

    Attributes:
        names: GPU index → every model that it can be.
        release: The matrix's release of the image's ROCm, where it has one.
        rocm: The image's ROCm version.
    """

    matrix: Matrix
    host: HostFacts
    gpus: tuple[Gpu, ...]
    names: dict[int, tuple[str, ...]]
    release: Release | None
    rocm: str | None

    def found(self, subject: Subject, verdict: Verdict, sentence: str, row: str = "") -> Finding:
        """Return a finding; one that rests on a *row* has the release's sources."""
        sources = self.release.sources if self.release and row else ()
        return Finding(
            subject=subject,
            verdict=verdict,
            sentence=sentence,
            row=row,
            sources=tuple(self.matrix.sources.get(source, source) for source in sources),
        )
