"""The actor of a place: starts the processes of a replica, and reports how they end.

In: calls of the driver. Out: what exchange returns, and files with the output of processes.

It must never end a process of another job, of a later attempt, or of a later round, unless the guard of that is dead. It imports
Ray only where a place is described, so that it runs without Ray too.
"""

import contextlib
import json
import os
import queue
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Sequence

from heliostat_gang import contracts, guard, host, mpi, output, ports, reach, spark, spark_files, sweep
from heliostat_gang.sweep import Mark

# How long processes run on after the agent sent the newest beat that the driver answered, and how often it sends one.
LEASE_SECONDS = 20.0
BEAT_SECONDS = 5.0
OUTPUT_BYTES = 256 << 20
# How much output waits for the driver. Programs that write more wait too.
WAITING_BYTES = 2 << 20
# Output that comes in small pieces goes to the driver in larger ones: so much of it at once, or so long after the first.
EAGER_BYTES = 1 << 20
PIECE_BYTES = 256 << 10
GATHER_SECONDS = 0.2
# How long a guard may take to answer, and to end what it guards after the grace.
GUARD_SECONDS = 10.0
OVERDUE_SECONDS = 3.0
# How many ports one guard holds at most, beside the descriptor of its stream.
MAX_HELD = guard.MAX_DESCRIPTORS - 1
LOOK_SECONDS = 0.2

_KEEPER_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE")


class Process:
    """A process of the gang, as its guard reports it."""

    def __init__(self, name: str, round_number: int, log: str, channel: socket.socket, stream: Optional[int]) -> None:
        """Stand for a process whose guard is at the other end of a socket."""
        self.name = name
        self.round = round_number
        self.log = log
        self.channel = channel
        self.stream = stream  # the descriptor of its output, None at its end
        self.is_reading = False  # whether the stream is waited for
        self.streamed = 0
        self.guard = 0
        self.partial = b""
        self.early: List[Dict[str, Any]] = []  # what the guard sent behind its first line
        self.ended: Optional[Dict[str, Any]] = None  # what the guard sent when the program ended
        self.is_reported = False
        self.is_complete = False  # the guard has sent that all descendants are gone
        self.is_guarded = True
        self.directory = ""  # goes with it
        self.overdue = float("inf")  # when the guard should have ended all
        self.kills = host.memory_kills()

    def send(self, line: str) -> None:
        """Send a line to the guard. One that takes none is stopped, or gone."""
        with contextlib.suppress(OSError):
            self.channel.send(line.encode() + b"\n", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def is_gone(self) -> bool:
        """Return whether nothing is left of it, and all its output is here."""
        return self.is_complete and not self.is_guarded and self.stream is None

    def lines(self) -> List[Dict[str, Any]]:
        """Read what the guard sent. It raises EOFError when the guard is gone."""
        try:
            data = self.channel.recv(64 << 10)
        except BlockingIOError:
            return []
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        *lines, self.partial = (self.partial + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Agent:
    """Runs the processes of one place. The driver makes an actor of it, with at least four calls at a time."""

    def __init__(
        self,
        gang: Dict[str, Any],
        grace: float,
        log_dir: Optional[str] = None,
        submission: str = "",
        output_bytes: int = OUTPUT_BYTES,
        lease: float = LEASE_SECONDS,
        beat: float = BEAT_SECONDS,
    ) -> None:
        """Serve a gang, which gang names by "uid" of its job, "attempt", and "child" of the attempt."""
        self.uid, self.attempt, self.child = gang["uid"], int(gang["attempt"]), int(gang["child"])
        self.grace, self.lease, self.beat = grace, lease, beat
        self.log_dir = os.path.abspath(log_dir or host.log_dir())
        self.submission = submission
        self.output_bytes = output_bytes

        self.starting = threading.Lock()
        self.keeper: Optional[socket.socket] = None
        self.round = 0
        self.reserved: Dict[int, int] = {}  # ports, and the descriptors that hold them
        self.used: Dict[int, int] = {}  # those of the round that runs
        self.listener: Optional[reach.Listener] = None
        self.relay: Optional[mpi.Relay] = None

        self.changed = threading.Condition()  # what follows is for its holder
        self.processes: List[Process] = []  # those that are not gone
        self.stopped = 0  # the last round that may start no more processes
        self.stop_word = "stop"
        self.events: List[Dict[str, Any]] = []
        self.daemons: List[Dict[str, Any]] = []  # what mpirun wants started in other places
        self.buffer = output.Buffer(WAITING_BYTES)
        self.output_since = 0.0
        self.has_changed = False  # there are events, or processes are gone
        self.turn = 0
        self.number = 0
        self.sent: Dict[int, float] = {}  # when beats were sent that are not answered
        self.lease_end: Optional[float] = None
        self.is_closed = False
        self.failure: Optional[BaseException] = None

        self.new: "queue.SimpleQueue[Process]" = queue.SimpleQueue()
        self.wake_reader, self.wake_writer = socket.socketpair()
        self.wake_writer.setblocking(False)
        threading.Thread(target=self._run, name="gang-watch", daemon=True).start()

    def describe(self) -> Dict[str, Any]:
        """Return where the place is: node_id, ip, host, pod, loopback, interface, gpus, python, pid. The first lease begins."""
        found = host.describe()
        with self.changed:
            # The driver counts from when it gets this. A first start may be on its way for longer than a lease.
            self.lease_end = guard.now() + self.lease
        return found

    def sweep(self, round: int) -> int:
        """End what is left here of this job's former attempts and of former rounds of this gang, and wait until it is gone.

        It takes at most the grace and a few seconds. It returns how many processes it ended.
        """
        return sweep.end(self._mark(round), self.grace)

    def reserve(self, count: int, avoid: Sequence[int] = ()) -> List[int]:
        """Return ports that nobody else on this node has, none of which is in avoid. Those who start next hold them.

        What was reserved before, and no process has taken, is free again.
        """
        with self.starting:
            ports.release(self.reserved)
            found = ports.reserve(count, avoid)
            self.reserved.update(found)
        return list(found)

    def listen(self, port: int, seconds: float) -> None:
        """Answer calls of reach at a port until seconds have passed, or processes start. It returns at once."""
        with self.starting:
            self._end_listening()
            self.listener = reach.Listener(port, self.uid, seconds)

    def reach(self, host: str, port: int, seconds: float) -> Optional[str]:
        """Return None when an agent of this gang answers there, else what failed."""
        return reach.reach(host, port, self.uid, seconds)

    def connect(self, host: str, port: int, seconds: float) -> bool:
        """Return whether something takes connections at an address within so many seconds."""
        return reach.connect(host, port, seconds)

    def start(self, round: int, programs: Sequence[Dict[str, Any]]) -> List[Optional[Dict[str, str]]]:
        """Start processes of a round. Return for each None, or why it cannot run: {"kind": "NotFound" or "DiskFull", "message"}.

        A program has name, argv, env, and may have defaults (variables that count where nothing else sets them), cwd, log
        (the name of its file) and stream (its output goes to the driver too). When one cannot run, none is left running.
        A round may be started in several calls. A daemon of MPI has mpi, which is empty. The command of MPI has there slots
        (ranks of each host) and interface, by which its mpirun starts daemons in other places. A process of Spark has spark: what
        spark.plan returns, and the secret.
        """
        with self.starting:
            try:
                return self._start(round, programs)
            except OSError as error:
                if not host.is_disk_full(error.errno):
                    raise
                return [{"kind": "DiskFull", "message": host.describe_full(error)} for _ in programs]

    def finish_daemon(self, round: int, number: int, code: int, message: str) -> None:
        """Have a line that mpirun of a round wanted in another place end with an exit code, and why it failed."""
        with self.starting:
            if self.relay is not None and round == self.round:
                self.relay.answer(number, code, message)

    def decommission(self, round: int, process: str) -> None:
        """Have a process of a round move what it has to others, and end: SIGPWR, and after the grace SIGKILL."""
        with self.changed:
            for found in self.processes:
                if (found.name, found.round) == (process, round):
                    found.send("decommission")
                    found.overdue = min(found.overdue, guard.now() + self.grace + OVERDUE_SECONDS)
        self._wake()

    def stop(self, round: int) -> None:
        """Begin to end the processes of a round, and those before: SIGTERM, and after the grace SIGKILL. None starts any more."""
        self._end_processes("stop", round)

    def kill(self, round: int) -> None:
        """Send SIGKILL to the processes of a round and their descendants, and those before."""
        self._end_processes("kill", round)

    def exchange(self, answered: int, has_room: bool = True) -> Dict[str, Any]:
        """Return what happened since the last call, or after beat seconds that nothing did.

        beat is the number of this reply, which the next call answers; sent is its time by CLOCK_BOOTTIME. events has an
        entry for each process that ended: process, round, code (128 + n where signal n ended it), signal, time, lines
        (its last 20), oom, message. output has pieces of the output of streamed processes: [(process, bytes)]. All output of a
        process is returned before or with the event of its end. running is how many processes are left, where one counts
        until all its descendants are gone. daemons has what mpirun wants started in other places: round, number, host,
        line, env. Where the driver has no room, output and the events behind it stay here.
        """
        with self.changed:
            self.turn += 1
            turn = self.turn
            self._answer(answered)
            self.changed.notify_all()  # a call that is still open makes way
            until = time.monotonic() + self.beat
            while turn == self.turn and self.failure is None and not (self.is_closed and not self.processes):
                is_held = not has_room and self.buffer.size > 0
                missing = (until if is_held else min(until, self._output_due())) - time.monotonic()
                if missing <= 0 or (self.has_changed and not is_held):
                    break
                self.changed.wait(missing)
            if self.failure is not None:
                raise RuntimeError(f"watch processes: {self.failure!r}")
            if turn != self.turn:  # its reply would take what the next one waits for
                return self._reply(0, [], [], [])
            was_full, taken, pieces = self.buffer.is_full(), [], []
            if has_room or not self.buffer.size:
                self.has_changed = False
                taken, self.events = self.events, []
                pieces = self.buffer.take()
            daemons, self.daemons = self.daemons, []
            self.number += 1
            reply = self._reply(self.number, taken, pieces, daemons)
            self.sent[self.number] = reply["sent"]
        if was_full:
            self._wake()
        return reply

    def close(self) -> None:
        """Begin to end everything, and release all ports."""
        self._end_processes("stop", sys.maxsize)
        with self.starting:
            self._end_listening()
            self._end_relay()
            ports.release(self.reserved)
            ports.release(self.used)
            if self.keeper is not None:
                self.keeper.close()
                self.keeper = None
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        self._wake()

    # What follows is called with self.starting held.

    def _start(self, round: int, programs: Sequence[Dict[str, Any]]) -> List[Optional[Dict[str, str]]]:
        self._await_turn(round)
        self._end_listening()
        orders: List[Dict[str, Any]] = []
        started: List[Process] = []
        try:
            answers = self._take_orders(round, programs, orders)
            if any(answers):
                self._drop_orders(programs, orders)
                return answers
            for number, (program, order) in enumerate(zip(programs, orders)):
                # Each guard holds some of the ports, for the case that the agent ends before it.
                held = list(self.reserved.values())[number :: len(programs)][:MAX_HELD]
                started.append(self._begin(round, program, order, held))
                started[-1].directory = order["directory"]
            answers = [_await_start(process) for process in started]
        except BaseException:
            for process in started:
                process.send("kill")
            self._drop_orders(programs, orders[len(started) :])
            raise
        self.used.update(self.reserved)
        self.reserved.clear()
        self._take_over([process for process, answer in zip(started, answers) if answer is None])
        if any(answers):
            self._end_processes("kill", round)
        return answers

    def _take_orders(
        self, round_number: int, programs: Sequence[Dict[str, Any]], orders: List[Dict[str, Any]]
    ) -> List[Optional[Dict[str, str]]]:
        """Append what guards need to orders. Return for each program None, or why it cannot run."""
        answers: List[Optional[Dict[str, str]]] = []
        for program in programs:
            if program.get("mpi"):
                program = self._serve_mpirun(round_number, program)
            try:
                orders.append(self._order(round_number, program))
                answers.append(None)
            except host.NotFoundError as error:
                answers.append({"kind": "NotFound", "message": str(error)})
            except spark.SizeError as error:
                answers.append({"kind": "Exit", "message": str(error)})
        return answers

    def _order(self, round_number: int, program: Dict[str, Any]) -> Dict[str, Any]:
        """Return what the guard of a program needs."""
        env = {
            **program.get("defaults", {}),
            **contracts.inherited(os.environ, host.initial_environment(), host.LAUNCHER),
            **program["env"],
            sweep.VARIABLE: str(self._mark(round_number)),
        }
        cwd = os.path.join(os.getcwd(), program.get("cwd") or "")
        argv, directory = list(program["argv"]), program.get("directory", "")
        if "spark" in program:
            argv, env, directory = spark_files.prepare(program, env, cwd)
        name = program.get("log") or f"job-driver-{self.submission}-{program['name'].replace('/', '-')}-r{round_number}.log"
        return {
            "argv": argv,
            "path": host.find_program(argv[0], env, cwd),
            "env": env,
            "cwd": cwd,
            "log": os.path.join(self.log_dir, name),
            "bytes": self.output_bytes,
            "stream": bool(program.get("stream")),
            "grace": self.grace,
            "lease": self.lease_end,
            "mpi": "mpi" in program,
            "directory": directory,
        }

    def _mark(self, round_number: int) -> Mark:
        return Mark(self.uid, self.attempt, self.child, round_number)

    def _serve_mpirun(self, round_number: int, program: Dict[str, Any]) -> Dict[str, Any]:
        """Return the command of MPI with what its mpirun needs to start daemons in other places."""
        self._end_relay()
        self.relay = mpi.Relay(program["mpi"]["slots"], lambda daemon: self._announce(round_number, daemon))
        defaults = contracts.mpi_defaults(self.relay.files, program["mpi"]["interface"])
        return {**program, "defaults": {**program["defaults"], **defaults}, "directory": self.relay.directory}

    def _announce(self, round_number: int, daemon: Dict[str, Any]) -> None:
        """Have exchange return what mpirun wants, unless the round is over. It is called in a thread of its own."""
        with self.changed:
            is_over = round_number <= self.stopped
            if not is_over:
                self.daemons.append({"round": round_number, **daemon})
                self._notify()
        if is_over:
            self.finish_daemon(round_number, daemon["number"], mpi.REFUSED, "the round has ended")

    def _drop_orders(self, programs: Sequence[Dict[str, Any]], orders: Sequence[Dict[str, Any]]) -> None:
        """Remove what was made for processes that have not started, and end the relay of a command."""
        if any(program.get("mpi") for program in programs):
            self._end_relay()
        for order in orders:
            host.remove(order["directory"])

    def _end_relay(self) -> None:
        if self.relay is not None:
            self.relay.close()
            self.relay = None

    def _begin(self, round_number: int, program: Dict[str, Any], order: Dict[str, Any], held: List[int]) -> Process:
        """Make a guard and send it an order with descriptors to hold, without waiting for its answer."""
        ours, theirs = socket.socketpair()
        ours.settimeout(GUARD_SECONDS)
        with theirs:
            self._fork_guard(theirs)
        reader = None
        if order["stream"]:
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            output.widen(reader)
            held = [writer, *held]
        try:
            guard.send_order(ours, order, held)
        finally:
            if order["stream"]:
                os.close(writer)
        return Process(program["name"], round_number, order["log"], ours, reader)

    def _fork_guard(self, channel: socket.socket) -> None:
        """Have the keeper fork a guard, and start a keeper first where there is none."""
        if self.keeper is not None:
            try:
                socket.send_fds(self.keeper, [b"g"], [channel.fileno()])
                return
            except ConnectionError:  # it was killed, and its guards live on
                self.keeper.close()
        self.keeper, theirs = socket.socketpair()
        with theirs:
            environment = {name: os.environ[name] for name in _KEEPER_ENVIRONMENT if name in os.environ}
            environment[sweep.KEEPER_VARIABLE] = f"{self.uid}/{self.attempt}"
            command = [sys.executable, "-S", "-E", host.KEEPER, str(theirs.fileno()), str(self.grace)]
            with open(os.devnull, "r+b") as nothing:
                given = {"stdin": nothing, "stdout": nothing, "pass_fds": [theirs.fileno()]}
                subprocess.run(command, env=environment, start_new_session=True, check=True, **given)
        socket.send_fds(self.keeper, [b"g"], [channel.fileno()])

    def _await_turn(self, round_number: int) -> None:
        """Wait until no process of a former round is left, and begin a round unless that is over."""
        until = time.monotonic() + self.grace + GUARD_SECONDS
        with self.changed:
            while left := [process for process in self.processes if process.round < round_number]:
                if not self.changed.wait(until - time.monotonic()):
                    raise RuntimeError(f"start round {round_number}: {left[0].name} of round {left[0].round} has not ended")
            if round_number < self.round or round_number <= self.stopped:
                raise RuntimeError(f"start round {round_number}: round {max(self.round, self.stopped)} has begun or ended")
            if self.lease_end is None:  # the caller has not had the place described
                self.lease_end = guard.now() + self.lease
            if guard.now() >= self.lease_end:
                raise RuntimeError(f"start round {round_number}: the driver has answered no beat for {self.lease:.0f} s")
            self.round = round_number
        if not self.processes:
            ports.release(self.used)

    def _take_over(self, started: List[Process]) -> None:
        """Watch guards that have started their programs."""
        with self.changed:
            for process in started:
                process.channel.setblocking(False)
                self.processes.append(process)
                self.new.put(process)
            self._send_lease()  # a beat may have been answered meanwhile
            word = self.stop_word if self.round <= self.stopped else None
        if word is not None:  # the call came while they started
            self._end_processes(word, self.round)
        self._wake()

    def _end_listening(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def _end_processes(self, word: str, round_number: int) -> None:
        """Have guards end what they guard, and note when they should have done so."""
        with self.changed:
            if round_number >= self.stopped:
                self.stopped, self.stop_word = round_number, word
            overdue = guard.now() + OVERDUE_SECONDS + (self.grace if word == "stop" else 0)
            for process in self.processes:
                if process.round <= round_number:
                    process.send(word)
                    process.overdue = min(process.overdue, overdue)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is awake, or has ended
            self.wake_writer.send(b"w")

    # What follows is called with self.changed held.

    def _answer(self, number: int) -> None:
        """Count the lease from when a beat was sent, and forget those before it."""
        sent = self.sent.get(number)
        if sent is None:
            return
        self.sent = {beat: at for beat, at in self.sent.items() if beat > number}
        self.lease_end = sent + self.lease
        self._send_lease()

    def _reply(self, beat: int, events: List[Any], pieces: List[Any], daemons: List[Any]) -> Dict[str, Any]:
        """Return what exchange returns."""
        return {
            "beat": beat,
            "sent": guard.now(),
            "events": events,
            "output": pieces,
            "daemons": daemons,
            "running": len(self.processes),
        }

    def _send_lease(self) -> None:
        if self.lease_end is not None:
            for process in self.processes:
                process.send(f"lease {self.lease_end}")

    def _output_due(self) -> float:
        """Return when output must go to the driver."""
        if not self.buffer.size:
            return float("inf")
        return 0.0 if self.buffer.size >= EAGER_BYTES else self.output_since + GATHER_SECONDS

    def _receive(self, process: Process, line: Dict[str, Any]) -> None:
        """Take a line of a guard."""
        if "ended" in line:
            process.ended = line["ended"]
            self._report(process)
        process.is_complete |= "gone" in line

    def _report(self, process: Process) -> None:
        """Make an event of a process that has ended, once all its output is here."""
        ended = process.ended
        if ended is None or process.is_reported or (process.stream is not None and process.streamed < ended["bytes"]):
            return
        process.is_reported = True
        has_no_memory = ended["signal"] == signal.SIGKILL and ended["cause"] in ("", "guard") and host.memory_kills() > process.kills
        message = {"lease": f"the driver answered no beat for {self.lease:.0f} s", "guard": "its guard was killed"}.get(ended["cause"], "")
        event = {name: ended[name] for name in ("code", "signal", "time", "lines")}
        event.update(process=process.name, round=process.round, oom=has_no_memory)
        event["message"] = "the memory of its pod ran out, and the kernel ended it" if has_no_memory else message
        self.events.append(event)
        self._notify()

    def _notify(self) -> None:
        """Have exchange return."""
        self.has_changed = True
        self.changed.notify_all()

    # What follows runs in a thread of its own.

    def _run(self) -> None:
        """Watch, and have exchange fail where that fails: a place that reports nothing is lost."""
        try:
            self._watch()
        except BaseException as error:
            with self.changed:
                self.failure = error
                for process in self.processes:
                    process.channel.close()  # its guard takes that for the end of the agent
                self.changed.notify_all()
            raise
        finally:
            self.wake_reader.close()
            self.wake_writer.close()

    def _watch(self) -> None:
        """Take what guards send, and the output of processes, until all is over."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.wake_reader, selectors.EVENT_READ)
            while not (self.is_closed and not self.processes):
                ready = selector.select(self._longest_wait())
                with self.changed:
                    self._take(ready, selector)
                self._end_overdue()

    def _take(self, ready: List[Any], selector: selectors.BaseSelector) -> None:
        """Read what is ready, and choose what is waited for next."""
        while not self.new.empty():
            self._register(self.new.get(), selector)
        for key, _ in ready:
            if key.data is None:
                self.wake_reader.recv(4096)
            elif key.fileobj is key.data.channel:
                self._read_channel(key.data, selector)
            else:
                self._read_stream(key.data, selector)
        self._choose_streams(selector)
        self._forget()

    def _longest_wait(self) -> Optional[float]:
        with self.changed:
            times = [self._overdue(process) for process in self.processes if process.is_guarded]
        return max(LOOK_SECONDS, min(times) - guard.now()) if times else None

    def _overdue(self, process: Process) -> float:
        """Return when the guard of a process should have ended it, also by its lease."""
        return min(process.overdue, self.lease_end + self.grace + OVERDUE_SECONDS)

    def _register(self, process: Process, selector: selectors.BaseSelector) -> None:
        selector.register(process.channel, selectors.EVENT_READ, process)
        for line in process.early:
            self._receive(process, line)

    def _read_channel(self, process: Process, selector: selectors.BaseSelector) -> None:
        try:
            for line in process.lines():
                self._receive(process, line)
        except EOFError:
            selector.unregister(process.channel)
            process.channel.close()
            process.is_guarded = False
            if not process.is_complete:
                threading.Thread(target=self._end_unguarded, args=(process,), name="gang-sweep", daemon=True).start()

    def _read_stream(self, process: Process, selector: selectors.BaseSelector) -> None:
        if self.buffer.is_full():
            return
        try:
            data = os.read(process.stream, PIECE_BYTES)
        except BlockingIOError:
            return
        if data:
            if not self.buffer.size:
                self.output_since = time.monotonic()
            self.buffer.add(process.name, data)
            process.streamed += len(data)
            if self.buffer.size >= EAGER_BYTES or self.buffer.size == len(data):
                self.changed.notify_all()
        else:
            if process.is_reading:
                selector.unregister(process.stream)
            os.close(process.stream)
            process.stream = None
        self._report(process)

    def _choose_streams(self, selector: selectors.BaseSelector) -> None:
        """Wait for output while there is room for it."""
        has_room = not self.buffer.is_full()
        for process in self.processes:
            if process.stream is not None and process.is_reading != has_room:
                process.is_reading = has_room
                if has_room:
                    selector.register(process.stream, selectors.EVENT_READ, process)
                else:
                    selector.unregister(process.stream)

    def _forget(self) -> None:
        """Forget processes that are gone with all their descendants and all their output."""
        left = [process for process in self.processes if not process.is_gone()]
        if len(left) != len(self.processes):
            self.processes = left
            self._notify()

    def _end_unguarded(self, process: Process) -> None:
        """End what the guard left that was killed. The program itself ends with its guard."""
        with self.changed:
            if process.ended is None:
                process.ended = {
                    "code": 128 + signal.SIGKILL,
                    "signal": int(signal.SIGKILL),
                    "time": time.time(),
                    "lines": output.last_lines(process.log),
                    "bytes": 0,
                    "cause": "guard",
                }
            self._report(process)
            is_late = guard.now() >= self._overdue(process)
        sweep.wait_for_guard(process.guard)
        sweep.end(Mark(self.uid, 0, 0, 0), 0 if is_late else self.grace)
        host.remove(process.directory)
        with self.changed:
            process.is_complete = True
        self._wake()

    def _end_overdue(self) -> None:
        """End guards that did not end what they guard, as one does that is stopped."""
        with self.changed:
            late = {process.guard for process in self.processes if process.is_guarded and guard.now() >= self._overdue(process)}
        if late:
            processes = sweep.read_processes()
            for pid in late & processes.keys():
                if processes[pid].name == sweep.GUARD_NAME:
                    sweep.end_at_once(processes[pid])


def _await_start(process: Process) -> Optional[Dict[str, str]]:
    """Wait until a guard has started its program, and return what failed."""
    lines: List[Dict[str, Any]] = []
    while not lines:
        try:
            lines = process.lines()
        except EOFError:
            raise RuntimeError(f"start {process.name}: its guard was killed") from None
        except TimeoutError:
            raise RuntimeError(f"start {process.name}: its guard did not answer in {GUARD_SECONDS:.0f} s") from None
    first, *process.early = lines
    if "failed" in first:
        process.channel.close()
        if process.stream is not None:
            os.close(process.stream)
        error = OSError(first["errno"], first["failed"], first["path"] or process.name)
        if host.is_disk_full(error.errno):
            return {"kind": "DiskFull", "message": host.describe_full(error)}
        return {"kind": "NotFound", "message": f"start {error.filename}: {error.strerror}"}
    process.guard = first["guard"]
    return None
