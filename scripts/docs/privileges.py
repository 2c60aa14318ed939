"""The tables of docs/privileges.md and docs/seccomp.md, from the catalogues."""

from rocmrun.core.privileges import CHAINS, GROUPS, KEPT, NOT_MONOTONE, Privilege, catalogue
from rocmrun.core.seccomp_groups import GROUPS as CALL_GROUPS
from rocmrun.core.seccomp_groups import CallGroup
from scripts.docs.markdown import table

MOST_CALLS = 6


def privileges() -> str:
    """Return the catalogue; capabilities that do nothing for a user that is not root are left out there."""
    rows = [
        (
            f"`{entry.spelling}`{_effect(entry)}",
            entry.group,
            f"{entry.severity:g}",
            entry.exposes,
            entry.wanted_by + (" (lost without a word)" if entry.quiet else ""),
            ", ".join(f"`{name}`" for name in entry.narrower) or "-",
            entry.source,
        )
        for entry in catalogue()
        if entry.effect != "unlock" or entry.refused_by
    ]
    head = ("privilege", "group", "severity", "exposes", "may want it", "narrower", "source")
    return table(head, rows)


def chains() -> str:
    """Return what comes weak to strong."""
    return "\n".join(f"- {', '.join(map(_coded, chain))}" for chain in CHAINS)


def kept() -> str:
    """Return what is the same on both sides."""
    return table(("the same on both sides", "why"), list(KEPT))


def pairs() -> str:
    """Return the pairs that are not monotone."""
    rows = [(f"`{harm}`", f"`{cure}`", why) for harm, cure, why in NOT_MONOTONE]
    return table(("with", "may be needed", "why"), rows)


def groups() -> str:
    """Return the names of the groups."""
    return f"The groups are {', '.join(GROUPS)}."


def call_groups() -> str:
    """Return the groups of system calls that a filter can lose, the mildest first."""
    rows = [
        (
            f"`{group.name}`",
            f"{group.severity:g}",
            _some(group),
            group.exposes,
            group.wanted_by + (" (lost without a word)" if group.quiet else "") or "-",
            group.source,
        )
        for group in sorted(CALL_GROUPS, key=lambda group: (group.severity, group.name))
    ]
    return table(("group", "severity", "calls", "exposes", "known to use them", "source"), rows)


def _some(group: CallGroup) -> str:
    """Return the calls of a group, as far as a table has room."""
    names = sorted(group.calls)
    shown = ", ".join(names[:MOST_CALLS])
    return shown if len(names) <= MOST_CALLS else f"{shown} and {len(names) - MOST_CALLS} more"


def _coded(text: str) -> str:
    return " ".join(f"`{word}`" if ":" in word else word for word in text.split())


def _effect(entry: Privilege) -> str:
    return {"effective": " for root", "unlock": " for others"}.get(entry.effect, "")
