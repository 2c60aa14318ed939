"""Show what AMD's support matrix says."""

from rich.console import Console

from rocmrun.console.tables import indented_table, print_table
from rocmrun.core.support.judge import SupportReport


def support_line(report: SupportReport) -> str:
    """Return the verdict in one line."""
    source = f" ({report.rocm_source})" if report.rocm_source else ""
    return f"{report.verdict}; ROCm {report.rocm or 'unknown'}{source}, AMD's matrix as of {report.data_of}"


def print_support(console: Console, report: SupportReport) -> None:
    """Print every finding, each with the row that it rests on."""
    console.print("AMD's support matrix:", style="bold")
    table = indented_table()
    for finding in report.findings:
        row = f" [{finding.row}]" if finding.row else ""
        table.add_row(finding.subject, finding.verdict, f"{finding.sentence}{row}")
    print_table(console, table)
