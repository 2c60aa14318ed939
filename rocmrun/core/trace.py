"""What a container's processes asked of the kernel, read from lines of the kernel's trace. Pure, and bounded.

The lines are those of the engine's daemons and of all that they start, from before the container's start on, so
that no call of it is missing. What belongs to the container is its first process from its first exec on (before,
it is the runtime that sets the container up), and all that descend from it.

Names of processes in these lines are chosen by the job: they may hold anything, line ends too. An event is taken by
the words after them, which 15 characters cannot imitate; paths, which are longer, come in lines that the kernel is
asked to leave out when they hold a line end.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core.system_calls import CallNames
from rocmrun.core.text import printable

# What refuses a call: a capability or a filter, a file's mode, a filter that plays an older kernel.
REFUSALS = {-1: "EPERM", -13: "EACCES", -38: "ENOSYS"}
# A trace goes on however much a job does; what is kept of it does not.
MOST_TASKS, MOST_KINDS = 1 << 16, 4096
# The kernel takes a filter of less than a page.
MOST_FILTER = 4000
_AND = " && "
# The kernel's filters: what is returned by calls that were refused, and programs whose path is one line.
REFUSED = " || ".join(f"ret == {result}" for result in REFUSALS)
ONE_LINE = '!(filename ~ "*\n*")'
SUCCEEDED = "ret == 0"
# Above the numbers of every table: x32, a second set of calls of x86_64.
X32 = 1 << 30

_LINE = re.compile(
    r"-(\d+)\s+\[\d+\]\s+(?:\S+\s+)?\d+\.\d+: "
    r"(sys_enter|sys_exit|cap_capable|task_newtask|sched_process_exec|sys_execve|sys_execveat)(?:: | )(.*)"
)
_ENTER = re.compile(r"NR (\d+) ")
_EXIT = re.compile(r"NR (\d+) = (-?\d+)$")
_CHECK = re.compile(r"cred (\S+), target_ns (\S+), .*cap (\d+), ret (-?\d+)$")
_TASK = re.compile(r"pid=(\d+) ")


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A kind of refused call: its number, "EPERM", the program, and whether it is a call of another table."""

    number: int
    error: str
    program: str
    foreign: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Check:
    """A kind of capability check: its number, its outcome, whose credentials were asked, and in which namespace."""

    capability: int
    granted: bool
    credentials: str
    namespace: str


@dataclass(slots=True)
class Facts:
    """What was seen of some tasks.

    Attributes:
        calls: Numbers of calls.
        foreign: Numbers of calls of another table: those of 32-bit programs, and x32.
    """

    calls: set[int] = field(default_factory=set)
    foreign: set[int] = field(default_factory=set)
    refused: Counter[Refusal] = field(default_factory=Counter)
    checks: Counter[Check] = field(default_factory=Counter)

    def add(self, other: "Facts") -> None:
        """Take in what was seen of others."""
        self.calls |= other.calls
        self.foreign |= other.foreign
        self.refused += other.refused
        self.checks += other.checks


@dataclass(slots=True)
class _Task:
    """A thread, until it is known whether the container's.

    Attributes:
        before: What was seen until its first exec.
        inside: Whether it is the container's.
        foreign: Whether it runs a 32-bit program.
        pivoted: Whether it took another root, as a runtime does for a container's first process.
    """

    facts: Facts = field(default_factory=Facts)
    before: Facts | None = None
    children: list["_Task"] = field(default_factory=list)
    children_before: list["_Task"] = field(default_factory=list)
    inside: bool = False
    foreign: bool = False
    pivoted: bool = False


class Trace:
    """Takes lines, and gathers what belongs to the container.

    Attributes:
        inside: What was seen of the container.
        began: Whether its first exec was seen.
        namespace: The user namespace of the first check of all, which is the daemons'.
        crowded: Whether there was more than is kept.
    """

    def __init__(self, names: CallNames, *, tells_programs: bool) -> None:
        """*tells_programs*: whether an exec has a second line, sys_execve, if the program is of the kernel's own kind."""
        self._tells_programs = tells_programs
        self._pivot = names.numbers["pivot_root"]
        self._tasks: dict[int, _Task] = {}
        self._first: int | None = None
        self.inside = Facts()
        self.began = False
        self.namespace = ""
        self.crowded = False
        self._ran_foreign = False

    @property
    def ran_foreign(self) -> bool:
        """Whether the container ran a 32-bit program, even one whose calls all have numbers that are asked for no more."""
        return self._ran_foreign or any(one.inside and one.foreign for one in self._tasks.values())

    def first_process(self, pid: int) -> None:
        """Say which process is the container's first one."""
        self._first = pid
        task = self._task(pid)
        if task.before is not None:
            self._take(task)

    def guess_first_process(self) -> bool:
        """Find it where nobody could say, since it had ended: the one that took another root and then ran a program."""
        found = [pid for pid, task in self._tasks.items() if task.pivoted and task.before]
        if len(found) == 1:
            self.first_process(found[0])
        return len(found) == 1

    def feed(self, lines: Iterable[str]) -> None:
        """Take *lines* of the trace, in order."""
        for line in lines:
            if match := _LINE.search(line):
                self._event(int(match[1]), match[2], match[3], line[: match.start()])

    def _event(self, pid: int, name: str, rest: str, program: str) -> None:
        task = self._task(pid)
        if name == "sys_enter" and (match := _ENTER.match(rest)):
            self._entered(task, int(match[1]))
        elif name == "sys_exit" and (match := _EXIT.match(rest)):
            self._returned(task, int(match[1]), int(match[2]), program)
        elif name == "cap_capable" and (match := _CHECK.match(rest)):
            self.namespace = self.namespace or match[2]
            check = Check(int(match[3]), match[4] == "0", match[1], match[2])
            self._count(self._facts(task).checks, check)
        elif name == "task_newtask" and (match := _TASK.match(rest)):
            self._new(task, int(match[1]))
        elif name == "sched_process_exec":
            self._ran_foreign |= task.inside and task.foreign  # by now it would have been cleared
            self._started(pid, task, foreign=self._tells_programs)
        elif name.startswith("sys_exec"):
            self._started(pid, task, foreign=False)

    def _task(self, pid: int) -> _Task:
        task = self._tasks.get(pid)
        if task is None:
            task = _Task()
            if len(self._tasks) < MOST_TASKS:
                self._tasks[pid] = task
            else:
                self.crowded = True
        return task

    def _facts(self, task: _Task) -> Facts:
        return self.inside if task.inside else task.facts

    def _entered(self, task: _Task, number: int) -> None:
        task.pivoted = task.pivoted or number == self._pivot
        facts = self._facts(task)
        numbers = facts.foreign if task.foreign or number & X32 else facts.calls
        if len(numbers) < MOST_KINDS:
            numbers.add(number)
        else:
            self.crowded = True

    def _returned(self, task: _Task, number: int, result: int, program: str) -> None:
        if result in REFUSALS:
            foreign = task.foreign or bool(number & X32)
            named = printable(program.strip(), 15)
            refusal = Refusal(number, REFUSALS[result], named, foreign)
            self._count(self._facts(task).refused, refusal)

    def _count(self, counter: Counter[Any], kind: object) -> None:
        if kind in counter or len(counter) < MOST_KINDS:
            counter[kind] += 1
        else:
            self.crowded = True

    def _started(self, pid: int, task: _Task, *, foreign: bool) -> None:
        """A program was started, a 32-bit one as far as is known by now."""
        task.foreign = foreign
        if task.before is None:
            task.before, task.facts = task.facts, Facts()
            task.children_before, task.children = task.children, []
            if pid == self._first:
                self._take(task)

    def _new(self, parent: _Task, pid: int) -> None:
        if ended := self._tasks.pop(pid, None):
            self._ran_foreign |= ended.inside and ended.foreign
        child = self._task(pid)
        child.inside, child.foreign = parent.inside, parent.foreign
        if not child.inside:
            parent.children.append(child)

    def _take(self, first: _Task) -> None:
        """Count *first* and what descends from it as the container's, now and from now on."""
        self.began = first.inside = True
        self.inside.add(first.facts)
        waiting = first.children
        first.children = []
        while waiting:
            task = waiting.pop()
            if task.inside:
                continue
            task.inside = True
            for facts in (task.before or Facts(), task.facts):
                self.inside.add(facts)
            waiting += [*task.children_before, *task.children]
            task.children, task.children_before = [], []


def entries_but(numbers: Iterable[int]) -> str:
    """Return the kernel's filter for entries of all calls but *numbers*, which are known by now; "0" for no filter."""
    words: list[str] = []
    room = MOST_FILTER
    for word in (f"id != {number}" for number in sorted(numbers)):
        room -= len(word) + len(_AND)
        if room < 0:
            break
        words.append(word)
    return _AND.join(words) or "0"
