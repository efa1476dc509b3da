"""The test that one place reaches another, before any process of the gang starts.

One agent listens at a port, and the others connect to it. The listener answers with the job's UID: a proxy that accepts
every connection does not count. Connections are reset at their end, so that the port is free at once.
"""

import contextlib
import socket
import struct
import threading
import time
from typing import Optional

from heliostat_gang import ports

_TRY_SECONDS = 0.2
_CALL_SECONDS = 2.0


class Listener:
    """Answers at a port until its time is over, or it is closed."""

    def __init__(self, port: int, uid: str, seconds: float) -> None:
        """Listen at a port for so many seconds."""
        self.socket = ports.listener(port)
        self.answer = uid.encode() + b"\n"
        self.until = time.monotonic() + seconds
        self.is_closed = False
        self.thread = threading.Thread(target=self._serve, name="gang-listen", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Release the port. It returns when that is free."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes accept
        self.thread.join()

    def _serve(self) -> None:
        with self.socket:
            while not self.is_closed and (missing := self.until - time.monotonic()) > 0:
                self.socket.settimeout(missing)
                try:
                    caller, _ = self.socket.accept()
                except OSError:  # closed, or the time is over
                    return
                with contextlib.suppress(OSError), caller:
                    _reset_at_end(caller)
                    caller.settimeout(_CALL_SECONDS)
                    caller.sendall(self.answer)
                    caller.recv(1)  # the other end closes first


def reach(host: str, port: int, uid: str, seconds: float) -> Optional[str]:
    """Return None when an agent of the job answers at an address within so many seconds, else what failed."""
    until = time.monotonic() + seconds
    why = "nothing answered"
    while (missing := until - time.monotonic()) > 0:
        try:
            with socket.create_connection((host, port), timeout=min(missing, _CALL_SECONDS)) as connection:
                _reset_at_end(connection)
                answer = connection.makefile("rb").readline(len(uid) + 2)
                if answer == uid.encode() + b"\n":
                    return None
                why = "something else answered" if answer else "the connection was closed"
        except OSError as error:
            why = error.strerror or str(error)
        time.sleep(max(0.0, min(_TRY_SECONDS, until - time.monotonic())))
    return f"{why}; allow traffic between pods of the cluster on ports {ports.FIRST} to {ports.LAST}"


def connect(host: str, port: int, seconds: float) -> bool:
    """Return whether something takes connections at an address within so many seconds."""
    until = time.monotonic() + seconds
    while (missing := until - time.monotonic()) > 0:
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), timeout=min(missing, _CALL_SECONDS)).close()
            return True
        time.sleep(max(0.0, min(_TRY_SECONDS, until - time.monotonic())))
    return False


def _reset_at_end(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
