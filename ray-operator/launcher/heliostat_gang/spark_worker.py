"""Runs a Worker of Spark, with what its executors write, and ends it when they have ended after SIGPWR.

usage: spark_worker.py DIRECTORY COMMAND…, where DIRECTORY is the Worker's own. It ends with the exit code of the Worker.

A Worker leaves the output of executors in files, and runs on when it was told to move what it has to others.
"""

import glob
import os
import signal
import subprocess
import sys
import time
from typing import Any, BinaryIO, Dict, List, Optional

if __name__ == "__main__":  # the folder of this file would come before the standard library
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from heliostat_gang import sweep

LOOK_SECONDS = 0.5
READ_BYTES = 64 << 10


class Output:
    """The files of executors, of which whole lines are copied."""

    def __init__(self, directory: str) -> None:
        """Copy files of a Worker's directory."""
        self.pattern = os.path.join(directory, "*", "*", "std[oe][ur][tr]")
        self.files: Dict[str, BinaryIO] = {}
        self.partial: Dict[str, bytes] = {}

    def copy(self, to: BinaryIO) -> None:
        """Copy what is new. A file that was renamed, as it is large, is read to its end first."""
        for path in sorted({*self.files, *glob.glob(self.pattern)}):
            file = self.files.get(path)
            if file is not None:
                self._read(path, file, to)
                if _is_at(path, file):
                    continue
                self._read(path, file, to)
                file.close()
                del self.files[path]
            try:
                self.files[path] = open(path, "rb")
            except OSError:  # it has not been made again
                continue
            self._read(path, self.files[path], to)
        to.flush()

    def end(self, to: BinaryIO) -> None:
        """Copy what is left, also where a line has no end."""
        self.copy(to)
        for rest in self.partial.values():
            to.write(rest + b"\n" if rest else b"")
        to.flush()
        for file in self.files.values():
            file.close()
        self.files, self.partial = {}, {}

    def _read(self, path: str, file: BinaryIO, to: BinaryIO) -> None:
        while data := file.read(READ_BYTES):
            lines, newline, rest = (self.partial.get(path, b"") + data).rpartition(b"\n")
            to.write(lines + newline)
            self.partial[path] = rest
            if len(rest) > READ_BYTES:  # a line without an end
                to.write(rest)
                self.partial[path] = b""


class Worker:
    """The Worker, with the signals that go on to it."""

    def __init__(self, command: List[str]) -> None:
        """Start the Worker. Signals may come before it is there."""
        self.is_decommissioned = False
        self.early: List[int] = []
        self.process: Optional["subprocess.Popen[bytes]"] = None
        for number in (signal.SIGTERM, signal.SIGPWR):
            signal.signal(number, self.take)
        self.process = subprocess.Popen(command)
        for number in self.early:
            self.take(number)

    def take(self, number: int, *_: Any) -> None:
        """Send a signal on. After SIGPWR the Worker moves what its executors have to others, and they end."""
        if self.process is None:
            self.early.append(number)
            return
        self.is_decommissioned |= number == signal.SIGPWR
        self.process.send_signal(number)

    def look(self) -> bool:
        """Report whether the Worker runs. One that is decommissioned is ended when it has no executor."""
        if self.process.poll() is not None:
            return False
        if self.is_decommissioned and not any(one.parent == self.process.pid for one in sweep.read_processes().values()):
            self.process.terminate()
        return True


def main() -> None:
    """Run the Worker."""
    output, worker = Output(sys.argv[1]), Worker(sys.argv[2:])
    while worker.look():
        output.copy(sys.stdout.buffer)
        time.sleep(LOOK_SECONDS)
    output.end(sys.stdout.buffer)
    code = worker.process.returncode
    sys.exit(code if code >= 0 else 128 - code)


def _is_at(path: str, file: BinaryIO) -> bool:
    """Report whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False


if __name__ == "__main__":
    main()
