"""Where the output of processes goes: a file of bounded size, and from there what the driver wants to read.

In: bytes, as programs write them. Out: files, their last lines, and bytes in the order in which they came.

It must never hold more in memory than a stated size, and never lose what a streamed process wrote while somebody reads.
"""

import contextlib
import fcntl
import os
from typing import List, Optional, Tuple

LAST_LINES = 20
LAST_BYTES = 32 << 10
LINE_CHARACTERS = 400
PIPE_BYTES = 256 << 10
F_SETPIPE_SZ = 1031  # fcntl has it from Python 3.10 on some platforms only


class Log:
    """A file that is renamed to NAME.1 when it is half as large as both may be together."""

    def __init__(self, path: str, limit: int) -> None:
        """Open a file, and append to what it has."""
        self.path = path
        self.half = limit // 2
        self._open()

    def write(self, data: memoryview) -> None:
        """Append bytes. What the disk does not take is lost, and the program goes on."""
        room = self.half - self.size
        if len(data) > room and self.size:
            # Where the bytes have a line end, no line is cut.
            whole = bytes(data[: max(room, 0)]).rfind(b"\n") + 1
            self._append(data[:whole])
            data = data[whole:]
            self._rotate()
        self._append(data)

    def _append(self, data: memoryview) -> None:
        with contextlib.suppress(OSError):
            while data:
                written = os.write(self.descriptor, data)
                self.size += written
                data = data[written:]

    def _rotate(self) -> None:
        with contextlib.suppress(OSError):
            os.rename(self.path, self.path + ".1")
            os.close(self.descriptor)
            self._open()

    def _open(self) -> None:
        self.descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.size = os.fstat(self.descriptor).st_size


class Stream:
    """The end of a pipe that a reader empties when it can. What does not fit waits, and the caller reads no more meanwhile."""

    def __init__(self, descriptor: int) -> None:
        """Write to a pipe, which gets no blocking calls."""
        self.descriptor: Optional[int] = descriptor
        self.waiting = memoryview(b"")
        self.total = 0
        os.set_blocking(descriptor, False)

    def write(self, data: memoryview) -> None:
        """Write bytes, behind those that wait. The caller must not change them while they wait."""
        if self.descriptor is not None:
            self.total += len(data)
            self.waiting = data
            self.flush()

    def flush(self) -> None:
        """Write as much of what waits as the pipe takes."""
        try:
            while self.waiting and self.descriptor is not None:
                self.waiting = self.waiting[os.write(self.descriptor, self.waiting) :]
        except BlockingIOError:
            return
        except OSError:  # the reader is gone
            self.close()

    def close(self) -> None:
        """Give up what waits: the file has it."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor, self.waiting = None, memoryview(b"")


class Buffer:
    """Output that waits for the driver, in the order in which it came."""

    def __init__(self, limit: int) -> None:
        """Hold at most limit bytes, and one piece more."""
        self.limit = limit
        self.size = 0
        self.pieces: List[Tuple[str, List[bytes]]] = []

    def add(self, process: str, data: bytes) -> None:
        """Append output of a process."""
        if not self.pieces or self.pieces[-1][0] != process:
            self.pieces.append((process, []))
        self.pieces[-1][1].append(data)
        self.size += len(data)

    def is_full(self) -> bool:
        """Return whether no more must be added."""
        return self.size >= self.limit

    def take(self) -> List[Tuple[str, bytes]]:
        """Return all pieces, and forget them."""
        taken = [(process, b"".join(pieces)) for process, pieces in self.pieces]
        self.size, self.pieces = 0, []
        return taken


def last_lines(path: str) -> List[str]:
    """Return the last lines of a log, each cut to a bounded length."""
    data = b""
    for part in (path, path + ".1"):
        if data.count(b"\n") <= LAST_LINES and len(data) < LAST_BYTES:
            with contextlib.suppress(OSError):
                data = _tail(part, LAST_BYTES - len(data)) + data
    lines = data.decode(errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line[:LINE_CHARACTERS] for line in lines[-LAST_LINES:]]


def widen(descriptor: int) -> None:
    """Enlarge a pipe, so that its two ends take turns less often."""
    with contextlib.suppress(OSError):  # the user has too much memory in pipes
        fcntl.fcntl(descriptor, F_SETPIPE_SZ, PIPE_BYTES)


def _tail(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)
