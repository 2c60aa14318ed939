"""Words of shell lines as people publish them: quotes, continuations, expressions. Nothing is expanded or run.

`$HOME`, `$(id -u)`, `<tag>` and `{{ image }}` stay as they are written, marked, so that whoever reads
on can tell an expression from text. What bash would refuse or misread is read as it was meant, and said.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Around an expression inside a word; private characters that no published line has.
OPEN, CLOSE = "\ue000", "\ue001"

COMMENT_AFTER = "a comment after a line's backslash was dropped"
COMMENT_INSIDE = "a comment line between continued lines was dropped"
NO_BACKSLASH = "a line break without a backslash was joined"
CARRIAGE_RETURNS = "carriage returns were dropped"

_OPERATOR = re.compile(r"\|\||&&|;|\||&|\d*>>?[&|]?|<<?<?")
_PLACEHOLDER = re.compile(r"<[^<>\n]+>|\{\{[^\n]*?\}\}")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_DEFAULT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?-(.*)\}", re.DOTALL)
_MARKED = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
_CONTINUED = re.compile(r"\\[ \t]*\n")
_CONTINUED_COMMENT = re.compile(r"\\[ \t]+#[^\n]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word.

    Attributes:
        text: Without its quotes; expressions are marked.
        quoted: Whether any of it stood in quotes.
    """

    text: str
    quoted: bool = False

    @property
    def is_expression(self) -> bool:
        """Whether bash could make several words of it, or none: an unquoted variable or command alone."""
        return not self.quoted and bool(re.fullmatch(rf"{OPEN}\$[^{CLOSE}]*{CLOSE}", self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellText:
    """Several commands, each a tuple of words.

    Attributes:
        repairs: What was read in another way than bash would.
        vanished: Expressions whose default is nothing, so that no word is left of them.
    """

    commands: tuple[tuple[Word, ...], ...]
    repairs: tuple[str, ...]
    vanished: tuple[str, ...]


def read_shell(text: str) -> ShellText:
    """Return the commands in *text*.

    Raises:
        ValueError: a quote or a bracket is not closed.
    """
    lexer = _Lexer(text=text.replace("\r", "").replace(OPEN, "").replace(CLOSE, ""))
    if "\r" in text:
        lexer.repairs.append(CARRIAGE_RETURNS)
    commands = lexer.commands()
    return ShellText(
        commands=tuple(tuple(command) for command in commands if command),
        repairs=tuple(dict.fromkeys(lexer.repairs)),
        vanished=tuple(lexer.vanished),
    )


def expressions(text: str) -> tuple[str, ...]:
    """Return the expressions in *text*, as written."""
    return tuple(_MARKED.findall(text))


def plain(text: str) -> str:
    """Return *text* as it was written, without the marks."""
    return text.replace(OPEN, "").replace(CLOSE, "")


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of *text* and whether each is an expression."""
    for index, piece in enumerate(_MARKED.split(text)):
        if piece:
            yield piece, index % 2 == 1


@dataclass(kw_only=True)
class _Lexer:
    """Reads from left to right; `position` is where it stands."""

    text: str
    position: int = 0
    repairs: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    _continued: bool = False

    def commands(self) -> list[list[Word]]:
        found: list[list[Word]] = [[]]
        ended_by_line = False
        while self.position < len(self.text):
            if self._skipped_blank():
                continue
            if self.text[self.position] == "\n":
                self.position += 1
                self._continued = False
                ended_by_line = bool(found[-1]) or ended_by_line
                found.append([])
                continue
            if (operator := _OPERATOR.match(self.text, self.position)) and not self._placeholder():
                self._skip_operator(operator[0], found)
                continue
            word = self._word()
            if word is None:
                continue
            if not found[-1] and ended_by_line and word.text.startswith("-"):
                # An option begins no command: the line before it lacks its backslash.
                self.repairs.append(NO_BACKSLASH)
                found = [command for command in found if command]
            ended_by_line = False
            found[-1].append(word)
        return found

    def _skip_operator(self, operator: str, found: list[list[Word]]) -> None:
        self.position += len(operator)
        if ">" in operator or "<" in operator:
            while self._skipped_blank():
                pass
            if self.position < len(self.text) and self.text[self.position] != "\n":
                self._word()
        else:
            found.append([])

    def _skipped_blank(self) -> bool:
        """Step over blanks, continued line ends and comments; whether there was one."""
        if self.position >= len(self.text):
            return False
        if self.text[self.position] in " \t":
            self.position += 1
            return True
        if comment := _CONTINUED_COMMENT.match(self.text, self.position):
            return self._step(comment, COMMENT_AFTER)
        if continued := _CONTINUED.match(self.text, self.position):
            return self._step(continued, "")
        if self.text[self.position] == "#":
            end = self.text.find("\n", self.position)
            end = len(self.text) if end < 0 else end
            # In a continued command the next line goes on; alone the line end counts.
            self.position = end + 1 if self._continued else end
            if self._continued:
                self.repairs.append(COMMENT_INSIDE)
            return True
        return False

    def _step(self, match: re.Match[str], repair: str) -> bool:
        self.position = match.end()
        self._continued = True
        if repair:
            self.repairs.append(repair)
        return True

    def _word(self) -> Word | None:
        parts: list[str] = []
        quoted = False
        while self.position < len(self.text):
            character = self.text[self.position]
            if character in " \t\n;|&>" or (character == "<" and not self._placeholder()):
                break
            if character == "\\":
                if continued := _CONTINUED.match(self.text, self.position):
                    self._step(continued, "")
                    # "word\" and the next line's indentation end the word, as in bash.
                    continue
                parts.append(self.text[self.position + 1 : self.position + 2])
                self.position += 2
            elif character == "'":
                quoted = True
                parts.append(self._single())
            elif character == '"':
                quoted = True
                parts.append(self._double())
            else:
                parts.append(self._plain())
        text = "".join(parts)
        return Word(text=text, quoted=quoted) if text or quoted else None

    def _single(self) -> str:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            msg = "a single quote is not closed"
            raise ValueError(msg)
        found = self.text[self.position + 1 : end]
        self.position = end + 1
        return found

    def _double(self) -> str:
        self.position += 1
        parts: list[str] = []
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == '"':
                self.position += 1
                return "".join(parts)
            if character == "\\":
                following = self.text[self.position + 1 : self.position + 2]
                kept = "" if following in {'"', "\\", "$", "`"} else "\\"
                parts.append("" if following == "\n" else kept + following)
                self.position += 2
                continue
            parts.append(self._plain())
        msg = "a double quote is not closed"
        raise ValueError(msg)

    def _plain(self) -> str:
        """Return an expression, or one character."""
        if placeholder := self._placeholder():
            return self._marked(placeholder)
        if self.text.startswith(("$(", "${"), self.position):
            return self._bracketed()
        if self.text[self.position] == "`":
            end = self.text.find("`", self.position + 1)
            return self._marked(self.text[self.position : (end if end > 0 else self.position) + 1])
        if variable := _VARIABLE.match(self.text, self.position):
            return self._marked(variable[0])
        self.position += 1
        return self.text[self.position - 1]

    def _placeholder(self) -> str:
        found = _PLACEHOLDER.match(self.text, self.position)
        return found[0] if found else ""

    def _bracketed(self) -> str:
        expression = _balanced(self.text, self.position + 1)
        default = _DEFAULT.fullmatch(f"${expression}")
        if default is None:
            return self._marked(f"${expression}")
        self.position += len(expression) + 1
        if not default[2]:
            self.vanished.append(f"${expression}")
        return _Lexer(text=default[2]).all_plain()

    def all_plain(self) -> str:
        """Return the whole text, blanks and quotes as they are, with its expressions marked."""
        parts = []
        while self.position < len(self.text):
            parts.append(self._plain())
        return "".join(parts)

    def _marked(self, expression: str) -> str:
        self.position += len(expression)
        return f"{OPEN}{expression}{CLOSE}"


def _balanced(text: str, start: int) -> str:
    """Return the bracketed part of *text* that begins at *start*, quotes and brackets in it respected."""
    pairs = {"(": ")", "{": "}"}
    waiting: list[str] = []
    position = start
    while position < len(text):
        character = text[position]
        if waiting and waiting[-1] in "'\"" and character != waiting[-1]:
            # Inside quotes only "$(" opens anew.
            if waiting[-1] == '"' and text.startswith("$(", position):
                waiting.append(")")
                position += 1
        elif waiting and character == waiting[-1]:
            waiting.pop()
            if not waiting:
                return text[start : position + 1]
        elif character in "'\"":
            waiting.append(character)
        elif character in pairs:
            waiting.append(pairs[character])
        position += 1
    msg = f"{text[start - 1 : start + 20]} is not closed"
    raise ValueError(msg)
