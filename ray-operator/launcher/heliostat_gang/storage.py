"""The directory of a study: its lock, its journal and its table.

In: a path, who wants it, and the time of a clock that never goes back. Out: whether the directory is ours, and files.

It must never write to a journal whose lock another driver has, nor take a lock whose holder still writes its counter.
"""

import contextlib
import csv
import io
import json
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import parameters
from .trials import RUNNING, Trial, number_text

JOURNAL, TABLE = "journal.log", "trials.csv"
# How often the holder writes its counter, for how long it has the storage after it wrote one, and after which time without a
# change another one takes it.
BEAT_SECONDS, HELD_SECONDS, LEASE_SECONDS = 5.0, 20.0, 30.0
# How often one that waits looks.
LOOK_SECONDS = 2.0
# Trials that the table of the job's output has: the best, and the last.
SHOWN = 100
MESSAGE = 200

_LOCK = re.compile(r"lock\.([0-9]{1,9})")


class StorageError(Exception):
    """A storage that cannot be used. Its text is for the user."""


class LostError(Exception):
    """The lock of a storage is another driver's."""


class Lock:
    """The lock of a directory: the file lock.N with the highest N belongs to the one that made it."""

    def __init__(self, directory: str, owner: Mapping[str, Any]) -> None:
        """Want a directory, for an owner with job, uid and attempt."""
        self._directory = directory
        self._owner = dict(owner)
        self._number = 0
        self._count = 0
        self._written = 0.0
        self._seen: Tuple[int, bytes] = (0, b"")
        self._since: Optional[float] = None  # when what was seen last was seen first

    def take(self, now: float) -> Optional[Dict[str, Any]]:
        """Take the lock. Return None when it is ours, else what is known of its holder."""
        number, content = self._highest()
        holder = _read_holder(content)
        if self._since is None or (number, content) != self._seen:
            self._seen, self._since = (number, content), now
        is_former = holder.get("uid") == self._owner["uid"] and holder.get("attempt", 0) < self._owner["attempt"]
        is_free = number == 0 or holder.get("released") or is_former or now - self._since >= LEASE_SECONDS
        if not is_free:
            return holder
        try:
            os.close(os.open(self._path(number + 1), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        except FileExistsError:
            return holder
        if self._highest()[0] != number + 1:  # others were faster, and have removed lower ones
            with contextlib.suppress(FileNotFoundError):  # one of them removed it
                os.unlink(self._path(number + 1))
            return holder
        self._number = number + 1
        self._write(now, False)
        for lower in self._numbers():
            if lower < self._number:
                with contextlib.suppress(OSError):
                    os.unlink(self._path(lower))
        return None

    def beat(self, now: float) -> None:
        """Write the counter, if it is time. Raise LostError where the lock is another one's."""
        if now - self._written >= BEAT_SECONDS:
            self.check(now)
            self._write(now, False)

    def check(self, now: float) -> None:
        """Raise LostError unless the lock is ours."""
        if now - self._written >= HELD_SECONDS:
            raise LostError(f"its lock could not be renewed for {HELD_SECONDS:.0f} s")
        if self._highest()[0] != self._number:
            raise LostError("another driver has taken the storage")

    def release(self, now: float) -> None:
        """Let others take the lock at once."""
        if self._number and self._highest()[0] == self._number:
            self._write(now, True)
        self._number = 0

    def _write(self, now: float, is_released: bool) -> None:
        self._count += 1
        line = json.dumps({**self._owner, "count": self._count, "released": is_released}).encode() + b"\n"
        descriptor = os.open(self._path(self._number), os.O_WRONLY | os.O_CLOEXEC)  # it is not made again where another one removed it
        try:
            os.write(descriptor, line.ljust(512))  # one block, so that no reader finds a shorter line behind a longer one
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._written = now

    def _highest(self) -> Tuple[int, bytes]:
        number = max(self._numbers(), default=0)
        content = b""
        with contextlib.suppress(FileNotFoundError), open(self._path(number), "rb") as file:
            content = file.read(4096)
        return number, content

    def _numbers(self) -> List[int]:
        return [int(match.group(1)) for match in map(_LOCK.fullmatch, os.listdir(self._directory)) if match]

    def _path(self, number: int) -> str:
        return os.path.join(self._directory, f"lock.{number}")


def make_directory(path: str) -> None:
    """Make the directory of a study, and look whether files can be written to it."""
    probe = os.path.join(path, f".probe-{os.getpid()}")
    try:
        os.makedirs(path, exist_ok=True)
        with open(probe, "wb"):
            pass
        os.unlink(probe)
    except OSError as error:
        why = f"storage {path} cannot be written: {error.strerror}"
        raise StorageError(f"{why}; mount a volume there that the driver's user may write to") from None


def mend_journal(path: str) -> bool:
    """Cut off what a crash left of the last operation of a journal, and return whether there was anything.

    Optuna would append behind it, and could never read the line that comes of it.
    """
    try:
        file = open(path, "r+b")
    except FileNotFoundError:
        return False
    with file:
        position = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n") or not _is_operation(line):
                if file.read(1):
                    raise StorageError(f"line {number} of {path} is broken, and others follow; restore the file, or give another storage")
                file.truncate(position)
                os.fsync(file.fileno())
                return True
            position += len(line)
    return False


def write_table(directory: str, text: str) -> None:
    """Write the table of trials, so that a crash leaves the former one or this one."""
    path = os.path.join(directory, TABLE)
    with open(f"{path}.new", "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def table(tune: Mapping[str, Any], trials: Sequence[Trial], stamp: Any) -> List[List[str]]:
    """Return the table of trials with its header. stamp makes a text of Unix time."""
    names = [parameter["name"] for parameter in tune["parameters"]]
    rows = [["trial", "state", tune["metric"], *names, "started", "seconds", "attempt", "message"]]
    for trial in trials:
        is_over = trial.state != RUNNING
        rows.append([
            str(trial.number), trial.state, "" if trial.value is None else number_text(trial.value),
            *[text for _, text in parameters.order(tune, trial.values)], stamp(trial.started) if trial.started else "",
            f"{trial.seconds:.1f}" if is_over else "", str(trial.attempt) if trial.attempt else "", trial.message,
        ])
    return rows


def print_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as RFC 4180 has it."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def print_lines(rows: Sequence[Sequence[str]]) -> List[str]:
    """Return a table with columns aligned, for people."""
    cut = [[" ".join(text.split())[:MESSAGE] or "-" for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in cut]


def choose(trials: Sequence[Trial], direction: str) -> List[Trial]:
    """Return the trials that the job's output has: all, or of many the best and the last."""
    if len(trials) <= 2 * SHOWN:
        return list(trials)
    sign = -1 if direction == "Maximize" else 1
    done = sorted((trial for trial in trials if trial.value is not None), key=lambda trial: (sign * trial.value, trial.number))
    chosen = {trial.number for trial in [*done[:SHOWN], *trials[-SHOWN:]]}
    return [trial for trial in trials if trial.number in chosen]


def _is_operation(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _read_holder(content: bytes) -> Dict[str, Any]:
    """Return what a lock has of its holder; nothing where it is empty or torn."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    has_numbers = isinstance(found, dict) and isinstance(found.get("attempt"), int) and isinstance(found.get("uid"), str)
    return found if has_numbers else {}
