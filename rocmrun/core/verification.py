"""How often a result of a search was seen to hold, as certificates say it."""

from pydantic import BaseModel, ConfigDict

from rocmrun.core.search_space import Finding, failure_rate_excluded


class CertificateRecord(BaseModel):
    """A part of a certificate: never changed, and read by later versions that know more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Verification(CertificateRecord):
    """How often the minimal side passed in the end, and the permissive side."""

    passes: int
    runs: int
    control_passes: int
    control_runs: int
    excluded_failure_rate: float

    @classmethod
    def of(cls, finding: Finding) -> "Verification":
        """Return what *finding* says of it."""
        whole = finding.passes == finding.runs
        return cls(
            passes=finding.passes,
            runs=finding.runs,
            control_passes=finding.control_passes,
            control_runs=finding.control_runs,
            excluded_failure_rate=round(failure_rate_excluded(finding.passes if whole else 0), 3),
        )
