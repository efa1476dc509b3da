"""Starts the daemons of mpirun in other places of the gang, without ssh.

mpirun calls an agent program as it would call ssh, with a host and a line of shell. The agent program sends both to the
Relay in the place where the command runs; Daemons in the driver decide where the line runs; and the exit code goes back.

It must never run a line for anybody else: lines come through a socket in a directory of mode 0700.
"""

import json
import os
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

from . import contracts

MAX_REQUEST = 1 << 20
REFUSED = 255  # the exit code of ssh where it fails itself
LAUNCH_AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch_agent.py")


class Relay:
    """Serves the agent programs of one round, in the place where the command runs."""

    def __init__(self, slots: Mapping[str, int], announce: Callable[[Dict[str, Any]], None]) -> None:
        """Write hostfiles and the agent program into a directory of their own.

        announce is called with each request, in a thread: number, host, line, and variables that go along.
        """
        self.directory = tempfile.mkdtemp(prefix="heliostat-mpi-", dir="/tmp")  # the path of a socket must be short
        self.files = contracts.MPIFiles(*(os.path.join(self.directory, name) for name in ("agent", "slots", "counts")))
        self._announce = announce
        self._lock = threading.Lock()
        self._waiting: Dict[int, socket.socket] = {}
        self._number = 0
        self._is_closed = False
        self._server = socket.socket(socket.AF_UNIX)
        try:
            self._write(slots)
            self._server.bind(os.path.join(self.directory, "socket"))
        except BaseException:  # such as a disk that is full; nobody else knows of the directory
            self._server.close()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        self._server.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def answer(self, number: int, code: int, message: str = "") -> None:
        """Answer a request with the exit code of its line, and why it failed."""
        with self._lock:
            connection = self._waiting.pop(number, None)
        if connection is None:
            return
        with connection:
            try:
                connection.sendall(json.dumps({"code": code, "message": message}).encode() + b"\n")
            except OSError:
                pass  # who waited for it has ended

    def close(self) -> None:
        """Let all agent programs end, and remove the directory. A second call does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for connection in waiting:
            connection.close()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, slots: Mapping[str, int]) -> None:
        code = os.path.join(self.directory, "launch_agent.py")
        shutil.copyfile(LAUNCH_AGENT, code)
        command = shlex.join([sys.executable, "-S", "-E", code])
        with open(self.files.agent, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {command} "$@"\n')  # #! alone may be too long for the path of Python
        os.chmod(self.files.agent, 0o700)
        with open(self.files.slots, "w", encoding="utf-8") as file:
            file.writelines(f"{host} slots={count}\n" for host, count in slots.items())
        with open(self.files.counts, "w", encoding="utf-8") as file:
            file.writelines(f"{host}:{count}\n" for host, count in slots.items())

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return  # it is closed
            threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as file:
                request = json.loads(file.readline(MAX_REQUEST))
        except (OSError, ValueError):
            connection.close()
            return
        with self._lock:
            if self._is_closed:
                connection.close()
                return
            self._number += 1
            number = self._number
            self._waiting[number] = connection
        self._announce({"number": number, **request})


class Daemons:
    """Finds where the lines of a round run."""

    def __init__(self, places: Sequence[contracts.Place], starts: Sequence[contracts.Start]) -> None:
        """Take the places and what their processes are started with."""
        self._at: Dict[str, contracts.Start] = {}
        for start in starts:
            self._at.setdefault(places[start.process.place].host, start)
        self._names: Dict[str, int] = {}

    def start(self, request: Mapping[str, Any]) -> Tuple[str, contracts.Start]:
        """Return the name of a new process, and what it is started with. It raises KeyError for another host."""
        found = self._at[request["host"]]
        name = found.process.name
        # The command itself is the first process of its name. A command may run mpirun again, or twice at a time.
        count = self._names[name] = self._names.get(name, 0 if found.process.is_daemon else 1) + 1
        env = {**found.env, **request["env"]}
        return name if count == 1 else f"{name}-{count}", found._replace(argv=["sh", "-c", request["line"]], env=env)


def describe_failure(lines: Sequence[str], code: int) -> str:
    """Return what the output of mpirun has of a line that ended with an exit code: its own last output."""
    return "" if code == 0 else "; ".join(lines[-3:]) or f"the daemon ended with exit code {code}"
