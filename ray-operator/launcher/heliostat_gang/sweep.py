"""Finds processes of a gang on this node, and ends those that nothing else will end.

A process of a gang has HELIOSTAT_GANG=UID/ATTEMPT/CHILD/ROUND in its environment, and its guard among its ancestors. Guards and
keepers have HELIOSTAT_KEEPER=UID/ATTEMPT. Child gangs of an attempt run side by side; a gang of its own is 0.

It must never end a process of another job. Of processes whose guard is alive, it must never end one of another child gang, of this
round or a later one, or of a later attempt.
"""

import contextlib
import os
import signal
import time
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

VARIABLE = "HELIOSTAT_GANG"
KEEPER_VARIABLE = "HELIOSTAT_KEEPER"
GUARD_NAME = "gang-guard"
KEEPER_NAME = "gang-keeper"
# A guard that is asked to end needs the grace itself; after these seconds more it is ended with all its descendants.
GUARD_SECONDS = 2.0
# How often /proc is read when processes end meanwhile.
READS = 20
# How long processes may take to go after SIGKILL. One that a device or a file system holds goes later.
KILLED_SECONDS = 5.0


class Process(NamedTuple):
    """An entry of /proc. Number and start together name a process: numbers are used again."""

    pid: int
    parent: int
    name: str
    start: int
    is_zombie: bool  # it has ended, and its parent has not taken its status


class Mark(NamedTuple):
    """What HELIOSTAT_GANG has: which start of which processes a process belongs to."""

    uid: str  # of the job
    attempt: int
    child: int
    round: int

    def __str__(self) -> str:
        """Return the value of the variable."""
        return "/".join(map(str, self))

    def precedes(self, other: "Mark") -> bool:
        """Report whether all of this start must have ended before another one of the job begins."""
        is_same_gang = (self.attempt, self.child) == (other.attempt, other.child)
        return self.attempt < other.attempt or (is_same_gang and self.round < other.round)


class Target(NamedTuple):
    """A process of a gang, and its guard where that is alive."""

    process: Process
    guard: Optional[Process]


def read_processes() -> Dict[int, Process]:
    """Return the processes that this one sees."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                text = file.read().decode(errors="replace")
        except OSError:  # it has ended
            continue
        # The name stands in parentheses, and may have some itself.
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        found[int(entry)] = Process(int(entry), int(rest[1]), name, int(rest[19]), rest[0] in "ZX")
    return found


def descendants(root: int, processes: Dict[int, Process]) -> List[Process]:
    """Return what descends from a process, parents before their children."""
    children: Dict[int, List[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(process.pid for process in below)
    return found


def send(process: Process, number: int) -> None:
    """Send a signal to a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        descriptor = _open(process.pid)
        try:
            if _start_of(process.pid) != process.start:
                return
            if descriptor is None:
                os.kill(process.pid, number)
            else:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def find(start: Mark) -> List[Target]:
    """Return processes of a job that must end before one of its rounds starts.

    These are those of lower attempts, those of lower rounds of its own child gang, and those whose guard is dead.
    """
    found: List[Target] = []
    waiting: Optional[Set[int]] = None
    for _ in range(READS):
        processes = read_processes()
        unclear = set()
        for pid in processes.keys() - {os.getpid()} if waiting is None else waiting & processes.keys():
            try:
                found.extend(_judge(processes[pid], processes, start))
            except KeyError:  # an ancestor ended between two reads, so that it has another one now
                unclear.add(pid)
        if not unclear:
            break
        waiting = unclear
    return found


def end(start: Mark, grace: float) -> int:
    """End what find returns, by SIGTERM and after the grace by SIGKILL, and return how many processes these were.

    It returns when they are gone, or some seconds after SIGKILL.
    """
    begin = time.monotonic()
    ended: Set[Tuple[int, int]] = set()
    for pause in _pauses():
        targets = find(start)
        passed = time.monotonic() - begin
        if not targets or passed > grace + GUARD_SECONDS + KILLED_SECONDS:
            break
        for process, guard in targets:
            first = guard or process
            if (first.pid, first.start) not in ended:
                send(first, signal.SIGTERM)
                ended.add((first.pid, first.start))
            ended.add((process.pid, process.start))
            if guard is None and passed >= grace:
                send(process, signal.SIGKILL)
            if guard is not None and passed >= grace + GUARD_SECONDS:
                end_at_once(guard)
        time.sleep(pause)
    return len(ended)


def end_at_once(guard: Process) -> None:
    """Send SIGKILL to all that descends from a guard, and to the guard."""
    for process in (*descendants(guard.pid, read_processes()), guard):
        send(process, signal.SIGKILL)


def wait_for_guard(pid: int) -> None:
    """Wait until a guard that closed its descriptors has ended, and its descendants have other parents."""
    for pause in _pauses():
        process = read_processes().get(pid)
        if process is None or process.is_zombie or process.name != GUARD_NAME:
            return
        time.sleep(pause)


def _pauses() -> Iterator[float]:
    pause = 0.02
    while True:
        yield pause
        pause = min(0.25, pause * 1.5)


def _judge(process: Process, processes: Dict[int, Process], start: Mark) -> List[Target]:
    if process.name == GUARD_NAME and not process.is_zombie:
        numbers = _numbers(process.pid, KEEPER_VARIABLE, start.uid)
        return [Target(process, process)] if len(numbers) == 1 and numbers[0] < start.attempt else []
    numbers = _numbers(process.pid, VARIABLE, start.uid)
    if len(numbers) == 2:  # its launcher is older than child gangs, and may have left it on this node before an upgrade
        numbers.insert(1, 0)
    if len(numbers) != 3:
        return []
    guard = _guard_of(process, processes)
    return [Target(process, guard)] if guard is None or Mark(start.uid, *numbers).precedes(start) else []


def _guard_of(process: Process, processes: Dict[int, Process]) -> Optional[Process]:
    """Return the guard of a process, or None where its ancestors lead to the first process without one.

    Guards adopt orphans, so that the ancestors of a guarded process lead to its guard at any time. It raises KeyError where
    an ancestor is missing, or is a guard that has just ended.
    """
    while process.name != GUARD_NAME:
        if process.parent == 0:
            return None
        process = processes[process.parent]
    if process.is_zombie:
        raise KeyError(process.pid)
    return process


def _numbers(pid: int, variable: str, uid: str) -> List[int]:
    """Return the numbers behind a job's UID in a variable of a process; none if that is not of this job."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = b"\0" + file.read()
    except OSError:  # it has ended, or belongs to another user
        return []
    _, is_there, value = variables.partition(f"\0{variable}={uid}/".encode())
    numbers = value.partition(b"\0")[0].split(b"/") if is_there else []
    return [int(number) for number in numbers] if all(number.isdigit() for number in numbers) else []


def _open(pid: int) -> Optional[int]:
    """Return a descriptor of a process, whose number may be used again before a signal is sent. None where that is not to be had.

    Python has these functions only if it was built with headers of Linux 5.3 or later, and that of conda is not.
    """
    if not (hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # a kernel or sandbox without such descriptors
        return None


def _start_of(pid: int) -> Optional[int]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None
