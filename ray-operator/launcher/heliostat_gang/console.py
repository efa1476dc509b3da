"""The job's own output: what processes write, as it is, and the few lines of the launcher.

In: pieces of output by process. Out: bytes at two descriptors, in the order in which they came. Lines of different processes are
never merged.
"""

import os
import threading
from collections import deque
from typing import Deque, Dict, Tuple

# How much may wait to be written before processes wait.
WAITING_BYTES = 32 << 20
# A line that is longer is written as several ones where lines have a prefix.
LONGEST_LINE = 1 << 20

_OUT, _ERR = 1, 2


class Console:
    """Writes in a thread of its own, so that a slow disk stops no beat."""

    def __init__(self, has_prefix: bool, out: int = _OUT, err: int = _ERR) -> None:
        """Write to two descriptors. With has_prefix each line begins with its process."""
        self._has_prefix = has_prefix
        self._descriptors = {_OUT: out, _ERR: err}
        self._partial: Dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._queue: Deque[Tuple[int, bytes]] = deque()
        self._size = 0
        self._is_closed = False
        self._at_start = True  # of a line
        self._thread = threading.Thread(target=self._run, name="gang-console", daemon=True)
        self._thread.start()

    def write(self, process: str, data: bytes) -> None:
        """Write a piece of the output of a process."""
        if not self._has_prefix:
            self._put(_OUT, data)
            return
        data = self._partial.pop(process, b"") + data
        end = data.rfind(b"\n") + 1
        whole, rest = data[:end], data[end:]
        if len(rest) > LONGEST_LINE:
            whole, rest = data, b""
        if rest:
            self._partial[process] = rest
        if whole:
            self._put_lines(process, whole)

    def end(self, process: str) -> None:
        """Write what a process that has ended left without the end of a line."""
        rest = self._partial.pop(process, b"")
        if rest:
            self._put_lines(process, rest)

    def note(self, text: str) -> None:
        """Write a line of the launcher."""
        self._put(_ERR, f"gang: {text}\n".encode(errors="replace"))

    def show(self, text: str) -> None:
        """Write text of the launcher that belongs to the job's output, such as a table."""
        self._put(_OUT, text.encode(errors="replace"))

    def is_full(self) -> bool:
        """Report whether so much waits that processes have to."""
        return self._size > WAITING_BYTES

    def close(self) -> None:
        """Write everything that waits."""
        for process in list(self._partial):
            self.end(process)
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _put_lines(self, process: str, text: bytes) -> None:
        prefix = f"[{process}] ".encode()
        lines = text[:-1] if text.endswith(b"\n") else text
        self._put(_OUT, prefix + lines.replace(b"\n", b"\n" + prefix) + b"\n")

    def _put(self, to: int, data: bytes) -> None:
        if not data:
            return
        with self._changed:
            self._queue.append((to, data))
            self._size += len(data)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_closed:
                    self._changed.wait()
                if not self._queue:
                    return
                to, data = self._queue.popleft()
            if to == _ERR and not self._at_start:
                data = b"\n" + data
            self._at_start = data.endswith(b"\n")
            try:
                self._write(self._descriptors[to], data)
            except OSError:
                pass  # nobody can read it; the gang goes on
            with self._changed:
                self._size -= len(data)

    @staticmethod
    def _write(descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest):]
