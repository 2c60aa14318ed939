"""What is said while a published `docker run` line becomes a profile: left out, changed, and left open as parameters."""

import re
from dataclasses import dataclass, field

from rocmrun.core.docker_run.shell_words import pieces
from rocmrun.core.profile.parameters import escaped
from rocmrun.core.secret_names import without_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutOption:
    """Something of the line that the profile does not have, and why."""

    what: str
    reason: str


@dataclass(slots=True, kw_only=True)
class RunNotes:
    """Grows while the line is read.

    Attributes:
        parameters: Name → help of what stands for an expression of the line.
        changed: What the profile has in another form, in sentences.
    """

    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: list[LeftOutOption] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    _named: dict[str, str] = field(default_factory=dict)

    def leave(self, what: str, reason: str) -> None:
        """Say that the profile lacks *what*."""
        self.left_out.append(LeftOutOption(what=without_secrets(what), reason=reason))

    def change(self, sentence: str) -> None:
        """Say that the profile has something in another form."""
        self.changed.append(sentence)

    def text(self, text: str) -> str:
        """Return *text* as a profile writes it: every expression becomes a parameter."""
        return "".join(
            f"${{{self._parameter(piece)}}}" if is_expression else escaped(piece)
            for piece, is_expression in pieces(text)
        )

    def _parameter(self, expression: str) -> str:
        if expression in self._named:
            return self._named[expression]
        words = re.findall(r"[a-z0-9]+", expression.lower())
        base = "_".join(words)[:40].strip("_") or "value"
        base = base if base[0].isalpha() else f"value_{base}"
        name, number = base, 2
        while name in self.parameters:
            name, number = f"{base}_{number}", number + 1
        self._named[expression] = name
        self.parameters[name] = {"help": f"what {expression} stood for in the docker run line"}
        return name
