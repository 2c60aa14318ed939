"""What a search was answered so far; asks only what is not known yet."""

from collections.abc import Sequence
from dataclasses import replace

from rocmrun.core.search_space import Ask, Members, Purpose, Question


class Answers:
    """The answers to a search's questions, each set's in the order in which they came.

    Attributes:
        purpose: What is asked from now on is asked for this.
    """

    def __init__(self, ask: Ask, jobs: int) -> None:
        """Prepare to ask at most *jobs* questions at once; nothing is asked yet."""
        self.purpose: Purpose = "gate"
        self._ask = ask
        self._jobs = jobs
        self._known: dict[tuple[Members, bool], list[bool]] = {}

    def of(self, members: Members, *, deep: bool = False) -> list[bool]:
        """Return whether a set passed, for each time that it was asked."""
        return self._known.get((members, deep), [])

    def ask(self, questions: Sequence[Question]) -> None:
        """Ask what is not known yet, each question once, in batches of as many as may run at once."""
        new: dict[Question, None] = {}
        for question in questions:
            if question.attempt >= len(self.of(question.members, deep=question.deep)):
                new[replace(question, purpose=self.purpose)] = None
        pending = list(new)
        for start in range(0, len(pending), self._jobs):
            batch = pending[start : start + self._jobs]
            for question, answer in zip(batch, self._ask(batch), strict=True):
                self._known.setdefault((question.members, question.deep), []).append(answer)

    def pass_in(self, members: Members, tries: int) -> bool:
        """Whether a set passes in one of the first *tries* tries."""
        for number in range(1, tries + 1):
            self.ask(repeated(members, number))
            if any(self.of(members)):
                # A failure beside a pass was chance: what asks next finds the pass.
                self._known[members, False].sort(reverse=True)
                return True
        return False


def repeated(members: Members, times: int, *, deep: bool = False) -> list[Question]:
    """Return the first *times* questions for a set."""
    return [Question(members=members, attempt=number, deep=deep) for number in range(times)]
