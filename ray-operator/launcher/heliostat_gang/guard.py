"""The guard of a process: starts a program, and ends it with all that descends from it.

In: an order, and lines of the agent: "lease TIME", "decommission", "stop", "kill". Out: lines of JSON: started or failed, ended, gone;
and the program's output, in a file and for those who stream it.

It ends the program when the agent wants it, when the agent is gone, and when the lease ends: SIGTERM, and after the grace
SIGKILL to all descendants. It must never wait for a reader once nobody is there to read, and needs no other process to do
its work. It imports little, as each process of a gang has one.
"""

import ctypes
import errno
import json
import os
import select
import signal
import socket
import time
from typing import Any, Dict, List, Optional, Set, Tuple, Union

from heliostat_gang import output, ports, ranks, sweep

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
READ_BYTES = 64 << 10
# poll counts time without that of a suspended machine, and leases count it, so that none is waited for at once.
LONGEST_WAIT = 5.0
# How often new descendants are looked for once the program has ended, and once SIGKILL was sent.
LOOK_SECONDS = 0.5
KILL_SECONDS = 0.05
# How long mpirun may take to end after its ranks.
MPIRUN_SECONDS = 1.0
MAX_DESCRIPTORS = 253  # what the kernel passes in one message

_libc = ctypes.CDLL(None, use_errno=True)


def now() -> float:
    """Return the time since boot, in which a suspended machine's time counts."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def prctl(option: int, value: Union[int, bytes]) -> None:
    """Call prctl(2) with one argument."""
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    if _libc.prctl(option, argument, *[ctypes.c_ulong(0)] * 3) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")


def wake_on(*numbers: int) -> int:
    """Return a descriptor that can be read once one of these signals has come."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def send_order(channel: socket.socket, order: Dict[str, Any], descriptors: List[int]) -> None:
    """Send a new guard what it starts, with the descriptor to stream to (where the order has it), and those to hold."""
    text = json.dumps(order).encode()
    socket.send_fds(channel, [len(text).to_bytes(8, "big")], descriptors)
    channel.sendall(text)


def receive(channel: socket.socket, size: int, count: int) -> Tuple[bytes, List[int]]:
    """Return bytes and descriptors of another process. Programs inherit none of these."""
    data, descriptors, _, _ = socket.recv_fds(channel, size, count)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return data, descriptors


def _receive_order(channel: socket.socket) -> Tuple[Dict[str, Any], List[int]]:
    head, descriptors = receive(channel, 8, MAX_DESCRIPTORS)
    missing = int.from_bytes(head, "big")
    if not head:
        raise ConnectionError("receive an order: the agent is gone")
    parts = []
    while missing:
        part = channel.recv(min(missing, READ_BYTES))
        if not part:
            raise ConnectionError("receive an order: the agent is gone")
        parts.append(part)
        missing -= len(part)
    return json.loads(b"".join(parts)), descriptors


def run(channel: socket.socket) -> None:
    """Serve one order. It returns when the program and all its descendants are gone."""
    os.setsid()
    prctl(PR_SET_NAME, sweep.GUARD_NAME.encode())
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    order, held = _receive_order(channel)
    guard = Guard(channel, order, output.Stream(held.pop(0)) if order["stream"] else None)
    if guard.start():
        guard.serve()
    if order["directory"]:
        import shutil  # few guards need it, and each has its memory

        shutil.rmtree(order["directory"], ignore_errors=True)
    for descriptor in held:
        ports.touch(descriptor)


class Guard:
    """Guards one program. It has a process for itself, with a single thread, as PDEATHSIG counts the thread that forked."""

    def __init__(self, channel: socket.socket, order: Dict[str, Any], stream: Optional[output.Stream]) -> None:
        """Prepare an order, without starting it."""
        self.channel = channel
        self.order = order
        self.stream = stream
        self.lease = order["lease"]
        self.partial = b""
        self.is_agent_there = True
        self.program = 0
        self.status: Optional[int] = None  # how the program ended
        self.time = 0.0
        self.is_reported = False
        self.has_children = True
        self.has_sigterm = False
        self.cause = ""  # why it ends: decommission, stop, kill, lease, agent; or "exit" where the program ended by itself
        self.kill_at: Optional[float] = None
        self.terminated: Set[Tuple[int, int]] = set()
        self.alone_since: Optional[float] = None  # when all ranks of MPI had ended that got SIGTERM
        self.buffer = bytearray(READ_BYTES)

    def start(self) -> bool:
        """Start the program, and report whether it runs."""
        self.wake = wake_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        signal.signal(signal.SIGTERM, self.take_sigterm)
        try:
            self.log = output.Log(self.order["log"], self.order["bytes"])
            self.output: Optional[int]
            self.output, theirs = os.pipe()
            os.set_blocking(self.output, False)
            output.widen(self.output)
            self.program = _execute(self.order, theirs)
        except OSError as error:
            self.send(failed=f"{error.strerror or error}", path=error.filename or "", errno=error.errno)
            return False
        os.close(theirs)
        self.send(started=self.program, guard=os.getpid())
        # What the order has in memory is the environment, which the program has now.
        self.order["env"] = self.order["argv"] = None
        return True

    def serve(self) -> None:
        """Copy output, reap children and end them, until there is none."""
        while True:
            self.wait()
            self.reap()
            self.copy()
            self.report()
            if not self.has_children and self.is_reported and not self.is_blocked():
                break
            self.end()
        self.send(gone=True)

    def wait(self) -> None:
        """Return when a descriptor is ready, or the next time has come at which there is something to do."""
        poller = select.poll()
        poller.register(self.wake, select.POLLIN)
        if self.is_agent_there:
            poller.register(self.channel, select.POLLIN)
        if self.is_blocked():
            poller.register(self.stream.descriptor, select.POLLOUT)
        elif self.output is not None:
            poller.register(self.output, select.POLLIN)
        for descriptor, _ in poller.poll(max(0.0, self.longest_wait()) * 1000 + 1):
            if descriptor == self.wake:
                os.read(self.wake, 4096)
            elif descriptor == self.channel.fileno():
                self.receive()

    def longest_wait(self) -> float:
        """Return how many seconds there is nothing to do."""
        if self.kill_at is None:
            return min(LONGEST_WAIT, self.lease - now())
        if now() >= self.kill_at:
            return KILL_SECONDS
        is_calm = self.status is None and not self.order["mpi"]
        return min(LONGEST_WAIT if is_calm else LOOK_SECONDS, self.kill_at - now())

    def is_blocked(self) -> bool:
        """Return whether output waits for its reader."""
        return self.stream is not None and bool(self.stream.waiting)

    def receive(self) -> None:
        """Do what lines of the agent want."""
        try:
            data = self.channel.recv(READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self.is_agent_there = False
            self.begin_end("agent")
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            word, _, value = line.decode().partition(" ")
            if word == "lease":
                self.lease = max(self.lease, float(value))
            else:
                self.begin_end(word)

    def reap(self) -> None:
        """Take the status of children that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.has_children = False
                return
            if pid == 0:
                return
            if pid == self.program:
                self.status, self.time = status, time.time()

    def copy(self) -> None:
        """Copy output until there is none, or its reader is slow, or enough that the other work must not wait."""
        if self.stream is not None:
            self.stream.flush()
        for _ in range(1 + 2 * output.PIPE_BYTES // READ_BYTES):
            if self.output is None or self.is_blocked():
                return
            try:
                size = os.readv(self.output, [self.buffer])
            except BlockingIOError:
                return
            if size == 0:
                os.close(self.output)
                self.output = None
                return
            data = memoryview(self.buffer)[:size]
            self.log.write(data)
            if self.stream is not None:
                self.stream.write(data)

    def report(self) -> None:
        """Send how the program ended, once its output is where it goes."""
        if self.status is None or self.is_reported or self.is_blocked():
            return
        self.is_reported = True
        code = os.waitstatus_to_exitcode(self.status)
        ended = {
            "code": code if code >= 0 else 128 - code,
            "signal": -code if code < 0 else None,
            "time": self.time,
            "lines": output.last_lines(self.log.path),
            "bytes": self.stream.total if self.stream is not None else 0,
            "cause": self.cause,
        }
        self.send(ended=ended)
        self.begin_end("exit")

    def take_sigterm(self, *_: Any) -> None:
        """Note SIGTERM. It may come before the program is there, or when its status was taken and not noted yet."""
        self.has_sigterm = True

    def begin_end(self, cause: str) -> None:
        """Send SIGTERM to the program, or SIGPWR where it has to move what it has, and count the grace from now."""
        if cause == "kill":
            self.kill_at = now()
        if cause in ("agent", "lease") and self.stream is not None:
            self.stream.close()  # nobody reads, and the program must be able to save
        if self.cause and not (self.cause == "decommission" and cause in ("stop", "lease", "agent")):
            return
        self.cause = cause
        if self.kill_at is None:
            self.kill_at = now() + self.order["grace"]
        if self.status is None and cause != "kill":
            if self.order["mpi"]:
                self.end_ranks()
            else:
                os.kill(self.program, signal.SIGPWR if cause == "decommission" else signal.SIGTERM)

    def end_ranks(self) -> None:
        """Send SIGTERM to ranks of MPI, and to the program where there are none. It ends soon after its ranks by itself."""
        receivers = ranks.find_receivers(self.program, sweep.descendants(os.getpid(), sweep.read_processes()))
        if not (self.terminated and [process.pid for process in receivers] == [self.program]):
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = now()
        if self.alone_since is None or now() >= self.alone_since + MPIRUN_SECONDS:
            for process in receivers:
                self.terminate(process)

    def terminate(self, process: sweep.Process) -> None:
        """Send SIGTERM to a process, once."""
        if (process.pid, process.start) not in self.terminated:
            self.terminated.add((process.pid, process.start))
            sweep.send(process, signal.SIGTERM)

    def end(self) -> None:
        """Do what is due: the lease, SIGTERM to what the program left, SIGKILL."""
        if self.has_sigterm:
            self.begin_end("stop")
        if now() >= self.lease and self.cause not in ("lease", "agent"):
            self.begin_end("lease")
        if self.kill_at is None or not self.has_children:
            return
        is_late = now() >= self.kill_at
        if self.status is None and not is_late:
            if self.order["mpi"]:
                self.end_ranks()
            return
        for process in sweep.descendants(os.getpid(), sweep.read_processes()):
            if is_late:
                sweep.send(process, signal.SIGKILL)
            else:
                self.terminate(process)

    def send(self, **message: Any) -> None:
        """Send a line to the agent, if that is there."""
        try:
            self.channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise


def _execute(order: Dict[str, Any], theirs: int) -> int:
    """Start a program in a session of its own, which ends with this process, and return its number."""
    parent = os.getpid()
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(order, theirs, parent)
        except OSError as error:
            os.write(writable, json.dumps([error.errno, error.filename or ""]).encode())
        finally:
            os._exit(127)
    os.close(writable)
    with open(readable, "rb") as file:
        failure = file.read()
    if failure:
        os.waitpid(pid, 0)
        number, path = json.loads(failure)
        raise OSError(number, os.strerror(number), path)
    return pid


def _become(order: Dict[str, Any], theirs: int, parent: int) -> None:
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(127)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(order["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(theirs, 1)
    os.dup2(theirs, 2)
    os.execve(order["path"], order["argv"], order["env"])
