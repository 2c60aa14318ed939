"""docs/findings.md, from the package's table: an index in the order of mending, and a section for each kind."""

from rocmrun.core.diagnosis.finding import HOST_STEPS, Kind
from rocmrun.core.diagnosis.kinds import parse_kinds
from rocmrun.system.package_data import read_findings
from scripts.docs.markdown import table


def index() -> str:
    """Return a row for each kind."""
    kinds = parse_kinds(read_findings())
    rows = [(kind.step, f"[`{slug}`](#{slug})", kind.title) for slug, kind in kinds.items()]
    return table(("step", "finding", "what it is"), rows)


def sections() -> str:
    """Return a section for each kind."""
    return "\n\n".join(_section(kind) for kind in parse_kinds(read_findings()).values())


def _section(kind: Kind) -> str:
    parts = [
        f"## {kind.slug}",
        f"**{kind.title}.**\n{kind.cause}",
        f"How to tell: {kind.recognise}",
        f"What to do: {kind.remedy}",
    ]
    if kind.next:
        parts.append(f"```sh\n{kind.next}\n```")
    if kind.step in HOST_STEPS:
        parts.append("No package of the image mends this: reinstalling torch cannot help.")
    if kind.look_alikes:
        parts.append(f"Looks alike: {', '.join(f'[{o}](#{o})' for o in kind.look_alikes)}.")
    if kind.sources:
        parts.append(f"Reported in {', '.join(f'<{source}>' for source in kind.sources)}.")
    else:
        parts.append(
            "No public thread is kept for it: the mechanism is the kernel's or the engine's."
        )
    return "\n\n".join(parts)
