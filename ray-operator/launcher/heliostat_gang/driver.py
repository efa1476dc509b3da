"""The driver of a gang: carries out what the rounds decide, and reports.

In: the description, and a cluster: groups, agents, nodes. Out: the job's output, the report, and how the driver ends.

One thread decides and calls. What comes from elsewhere is posted to it as a function with its arguments. It waits for nothing
but that.
"""

import functools
import queue
import secrets
import signal
import time
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from . import capacity, contracts, groups, mpi, report, rounds, spark

# How often the rounds look at the time while something is under way, and while processes just run.
BUSY_SECONDS, CALM_SECONDS = 0.1, 1.0
# How long agents have for a call that must not take long, beside the grace.
CALL_SECONDS = 40.0
# How long a place has to reach the first one's port.
REACH_SECONDS = 8.0
LISTEN_SECONDS = 60.0
# How long Spark's Master may take until it takes connections, and one look at that.
MASTER_SECONDS, CONNECT_SECONDS = 120.0, 5.0
# How long output may wait before a beat is answered all the same.
FULL_SECONDS = 2.0


Posted = "queue.SimpleQueue[Tuple[Callable[..., None], Tuple[Any, ...]]]"


class Failure(NamedTuple):
    """Why a call of an agent has no result."""

    message: str
    is_memory: bool = False  # Ray has ended the agent, as its node had no memory left
    is_disk_full: bool = False  # the agent is there, and its disk takes nothing more

    def located(self, where: str) -> "Failure":
        """Return the failure with a text behind its own, which has where it was."""
        return self._replace(message=self.message + where)


class Call(NamedTuple):
    """A call of an agent that has to come back in time."""

    place: int
    method: str
    seconds: float
    deadline: float


class Driver:
    """Runs one attempt of a gang."""

    def __init__(
        self, description: Mapping[str, Any], make_cluster: Callable[..., Any], console: Any, posted: Optional[Posted] = None
    ) -> None:
        """Take a description, and what makes a cluster of it and of a function that posts. Several drivers may share a queue."""
        self.description = description
        self.console = console
        self.posted: Posted = queue.SimpleQueue() if posted is None else posted
        self.cluster = make_cluster(description, self.post)
        self.cluster.on_group = self.take_group
        self.cluster.on_drain = self.take_drain
        self.cluster.on_nodes = self.take_nodes
        self.cluster.on_refused = self.take_refusal
        self.rounds = rounds.Rounds(description, now())
        self.roles = {role["name"]: role for role in description["roles"]}
        self.places: Dict[int, Dict[str, Any]] = {}  # what open places say of themselves; empty before
        self.result: Optional[rounds.Finish] = None
        self.calls: Dict[int, Call] = {}
        self.called = 0
        self.reached: Set[Tuple[int, int]] = set()  # the first place, and one that reaches it
        self.ports_before: Dict[int, List[int]] = {}
        # The round that is prepared or runs.
        self.serial = 0
        self.seats: Tuple[rounds.Seat, ...] = ()
        self.waiting = 0  # calls that prepare the round
        self.needed: List[Tuple[str, int]] = []
        self.ports: Dict[str, int] = {}
        self.starting: Counter[int] = Counter()  # how many calls of start places have not answered
        self.mpirun = -1  # the place where the command of MPI runs
        self.daemons: Optional[mpi.Daemons] = None
        self.lines: Dict[str, int] = {}  # what mpirun waits for, by the names of daemons
        self.stopping: Dict[int, str] = {}  # what they have to do then
        # Of Spark: what starts once the Master takes connections, processes that have joined the round, and the round's secret.
        self.later: List[Tuple[int, List[Dict[str, Any]]]] = []
        self.joined: Set[str] = set()
        self.decommissioning: Dict[int, str] = {}  # processes to decommission once they have started, by places
        self.secret = ""
        self.full: Dict[int, Tuple[int, float]] = {}  # beats that wait for the console, with the latest time of the answer
        self.noted: Optional[rounds.Cause] = None  # the last cause that was written

    @functools.cached_property
    def reporter(self) -> report.Reporter:
        """Write reports."""
        return report.Reporter(self.cluster.put_report)

    def post(self, do: Callable[..., None], *arguments: Any) -> None:
        """Have the driver's thread call a function. Threads and signal handlers may post."""
        self.posted.put((do, arguments))

    def run(self) -> rounds.Finish:
        """Run the gang, and return how the driver has to end."""
        self.step()
        while self.result is None:
            do_posted(self.posted, self.is_calm())
            self.step()
        self.leave()
        return self.result

    def is_calm(self) -> bool:
        """Report whether processes just run."""
        return self.rounds.phase == rounds.RUNNING and not self.full

    def step(self) -> None:
        """Do what has to be done now."""
        moment = now()
        for number, call in list(self.calls.items()):
            if moment >= call.deadline:
                del self.calls[number]
                self.lose(call.place, Failure(f"its agent has not answered {call.method} for {call.seconds:.0f} s"))
        for place, (beat, latest) in list(self.full.items()):
            if moment >= latest or not self.console.is_full():
                del self.full[place]
                self.exchange(place, beat)
        for action in self.rounds.step(moment):
            getattr(self, type(action).__name__.lower())(*action)
        while self.rounds.alone:
            self.console.note(f"replaces {describe(self.rounds.alone.pop(0))}")
        if self.rounds.last is not self.noted and self.rounds.phase != rounds.ENDED:
            self.noted = self.rounds.last
            self.console.note(f"restarts after {describe(self.noted)}" if self.noted else "")
        is_growing = self.rounds.phase == rounds.RUNNING and self.rounds.hand.is_growing()
        self.cluster.gather(is_growing or self.rounds.phase in (rounds.GATHERING, rounds.PREPARING))
        self.write_report()

    def write_report(self) -> None:
        """Write the report, if it has changed."""
        self.reporter.write(self.encode())

    def encode(self) -> bytes:
        """Return the report."""
        return report.encode(self.rounds.report(), self.waiting_text(), time.time() - now(), self.page())

    def page(self) -> Optional[report.Page]:
        """Return where the program serves a page of its own, if its framework has one."""
        if self.description["framework"] != "Spark" or self.rounds.phase != rounds.RUNNING or self.later:
            return None
        name = f"{spark.DRIVER}/0"
        place = next(seat.place for seat in self.seats if seat.role == spark.DRIVER)
        found = self.places.get(place)
        return report.Page(found.get("pod") or found["host"], self.ports[spark.page_key(name)]) if found else None

    def waiting_text(self) -> str:
        """Return what the gang waits for."""
        if self.rounds.phase == rounds.ENDING:
            left = self.rounds.blockers()
            return f"{_some(left)} to end" if left else ""
        if self.rounds.phase not in (rounds.GATHERING, rounds.PREPARING):
            return ""
        hand = self.rounds.hand
        if hand.unplaced():
            return hand.missing_text()
        ready = sum(place.is_ready for place in hand.places.values())
        if ready < hand.replicas:
            return f"{hand.replicas - ready} of {hand.replicas} agents to start"
        seconds, what = self.rounds.wait_left(now())
        return what if seconds > 0 else ""

    # What is posted.

    def take_group(self, group: int, state: str) -> None:
        """Take what Ray has of a group."""
        self.rounds.placed(group, state, now())

    def take_drain(self, nodes: Sequence[str]) -> None:
        """Take which nodes drain."""
        self.rounds.draining(nodes)

    def take_nodes(self, is_coming: bool, nodes: List[capacity.Node]) -> None:
        """Take what nodes have free, and whether others are on their way."""
        self.rounds.is_coming = is_coming
        hand = self.rounds.hand
        hand.fitting = capacity.fitting(nodes, self.roles, hand.unplaced(), self.description["placement"])

    def take_refusal(self, message: str) -> None:
        """Take that Ray refuses a group, whatever is free."""
        self.rounds.hand.refusal = message

    def take_unreachable(self, node: str) -> None:
        """Take that a node does not answer."""
        self.rounds.unreachable(node, now())

    def take_stop(self) -> None:
        """Take that the attempt has to end."""
        self.rounds.stop()

    def take_description(self, place: int, found: Optional[Dict[str, Any]], failure: Optional[Failure]) -> None:
        """Take what an agent says of itself: it is there."""
        if place not in self.places:
            return
        if failure is not None or found is None:
            self.lose(place, failure)
            return
        self.places[place] = found
        self.rounds.ready(place, groups.Facts(found["node_id"], found.get("pod") or found["host"], found["ip"]), now())
        self.exchange(place, 0)

    def take_exchange(self, place: int, reply: Optional[Dict[str, Any]], failure: Optional[Failure]) -> None:
        """Take a beat, with what happened in a place."""
        if place not in self.places:
            return
        if failure is not None or reply is None:
            self.lose(place, failure)
            return
        for process, data in reply["output"]:
            self.console.write(process, data)
        moment = now()
        self.rounds.beat(place, reply["running"], moment)
        for event in reply["events"]:
            if event["round"] == self.rounds.round:
                self.console.end(event["process"])
                self.finish_daemon(event["process"], event["code"], mpi.describe_failure(event["lines"], event["code"]))
                self.rounds.ended(
                    place, event["process"], event["code"], moment, event["lines"], event["oom"], event.get("message") or ""
                )
        for request in reply["daemons"]:
            self.start_daemon(place, request)
        if self.console.is_full():
            self.full[place] = (reply["beat"], moment + FULL_SECONDS)
        else:
            self.exchange(place, reply["beat"])

    # What the rounds want.

    def ask(self, group: int, roles: Sequence[str], avoid: Sequence[str]) -> None:
        """Ask for a group."""
        found = [self.roles[name] for name in roles]
        self.cluster.ask(group, [role["resources"] for role in found], [role["labelSelector"] for role in found], avoid)

    def release(self, group: int) -> None:
        """Give a group back."""
        self.cluster.release(group)

    def open(self, place: int, group: int, bundle: int, role: str) -> None:
        """Start an agent."""
        self.places[place] = {}
        self.cluster.open(place, group, bundle, self.roles[role]["resources"], self.take_description)

    def close(self, place: int) -> None:
        """End an agent, and call it no more."""
        self.places.pop(place, None)
        if any(seat.place == place for seat in self.seats):
            self.serial = -1  # a round that is prepared with it does not start
        self.full.pop(place, None)
        self.ports_before.pop(place, None)
        self.starting.pop(place, None)
        self.stopping.pop(place, None)
        self.decommissioning.pop(place, None)
        self.calls = {number: call for number, call in self.calls.items() if call.place != place}
        self.cluster.close(place)

    def probe(self, node: str) -> None:
        """Look whether a node answers."""
        self.cluster.probe(node, self.take_unreachable)

    def prepare(self, serial: int, number: int, seats: Tuple[rounds.Seat, ...]) -> None:
        """Sweep all places, and reserve the ports of the round."""
        self.serial, self.seats, self.ports = serial, seats, {}
        try:
            self.needed = contracts.needed_ports(self.description, self.contract_places())
        except contracts.ContractError as error:
            self.rounds.fail(None, "Exit", str(error), now())
            return
        keys: Dict[int, List[str]] = {seat.place: [] for seat in seats}
        for key, position in self.needed:
            keys[seats[position].place].append(key)
        self.waiting = len(seats)
        for place, wanted in keys.items():
            self.call(place, "sweep", (number,), lambda place, _, wanted=wanted: self.reserve(serial, place, wanted))

    def reserve(self, serial: int, place: int, keys: List[str]) -> None:
        """Reserve ports in a place that was swept."""
        if serial != self.serial or not keys:
            self.take_preparation(serial)
            return
        before = self.ports_before.get(place, [])
        self.call(place, "reserve", (len(keys), before), lambda place, ports: self.take_ports(serial, place, keys, ports))

    def take_ports(self, serial: int, place: int, keys: List[str], ports: List[int]) -> None:
        """Take the ports of a place."""
        if serial == self.serial:
            self.ports.update(zip(keys, ports))
            self.ports_before[place] = ports
        self.take_preparation(serial)

    def take_preparation(self, serial: int) -> None:
        """Take that a place is prepared. After the last one the others have to reach the first."""
        if serial != self.serial:
            return
        self.waiting -= 1
        if self.waiting == 0:
            self.check_reach(serial)

    def check_reach(self, serial: int) -> None:
        """Look whether all places reach the port of the first one."""
        first = self.seats[dict(self.needed)[contracts.MASTER]].place
        others = [seat.place for seat in self.seats if seat.place != first and (first, seat.place) not in self.reached]
        if not others:
            self.rounds.prepared(serial)
            return
        port, host = self.ports[contracts.MASTER], self.places[first]["ip"]
        self.waiting = len(others)

        def reach(*_: Any) -> None:
            for place in others if serial == self.serial else ():
                self.call(place, "reach", (host, port, REACH_SECONDS), take)

        def take(place: int, problem: Optional[str]) -> None:
            if serial != self.serial:
                return
            if problem is not None:
                self.rounds.fail(place, "Unreachable", f"does not reach {host}:{port} of the first place: {problem}", now())
                return
            self.reached.add((first, place))
            self.waiting -= 1
            if self.waiting == 0:
                self.rounds.prepared(serial)

        self.call(first, "listen", (port, LISTEN_SECONDS), reach)

    def launch(self, number: int) -> None:
        """Start the processes of a round, place by place in the order of ranks."""
        self.console.note(f"round {number} starts in {len(self.seats)} places")
        self.starting.clear()
        places = self.contract_places()
        starts: Iterable[contracts.Start] = contracts.starts(self.description, places, self.ports, number)
        if self.description["framework"] == "MPI":
            starts = list(starts)
            self.mpirun = self.seats[starts[0].process.place].place
            self.daemons, self.lines = mpi.Daemons(places, starts), {}
        if self.description["framework"] == "Spark":
            self.launch_spark(number, starts)
            return
        programs: List[Dict[str, Any]] = []
        position = None
        is_first = True
        for start in starts:
            if start.process.is_daemon:
                continue
            if position is not None and position != start.process.place:
                self.start(number, self.seats[position].place, programs)
                programs = []
            position = start.process.place
            programs.append(self.program(number, start, is_first or self.description["output"] == "All"))
            if self.daemons is not None:
                slots = contracts.mpi_slots(self.description, places)
                programs[0]["mpi"] = {"slots": slots, "interface": places[position].interface}
            is_first = False
        if position is not None:
            self.start(number, self.seats[position].place, programs)

    def launch_spark(self, number: int, starts: Iterable[contracts.Start]) -> None:
        """Start Spark's Master, and all others once it takes connections: they would pause long after a refusal."""
        self.later, self.joined, self.decommissioning, self.secret = [], set(), {}, secrets.token_hex(32)
        for start in starts:
            place = self.seats[start.process.place].place
            program = self.program(number, start, start.process.is_counted or self.description["output"] == "All")
            if start.process.is_master:
                self.start(number, place, [program])
                self.await_master(number, place, now() + MASTER_SECONDS)
            else:
                self.later.append((place, [program]))

    def await_master(self, number: int, place: int, until: float) -> None:
        """Start what waits for Spark's Master when that takes connections."""
        address = self.places[place]["ip"], self.ports[contracts.MASTER]

        def take(place: int, takes_connections: bool) -> None:
            if number != self.rounds.round or self.rounds.phase != rounds.RUNNING:
                return
            if takes_connections:
                waiting, self.later = self.later, []
                for one, programs in waiting:
                    if one in self.places:
                        self.start(number, one, programs)
            elif now() < until:
                self.await_master(number, place, until)
            else:
                message = f"takes no connections at port {address[1]} {MASTER_SECONDS:.0f} s after its start"
                self.rounds.fail(place, "Exit", message, now(), spark.MASTER)

        self.call(place, "connect", (*address, CONNECT_SECONDS), take)

    def join(self, number: int, seat: rounds.Seat) -> None:
        """Start a process that joins the round: it may have run before, and its place may be new."""
        self.seats = (*(one for one in self.seats if one.place in self.places and one.place != seat.place), seat)
        name = f"{seat.role}/{seat.replica}"
        places, position = self.contract_places(), len(self.seats) - 1
        keys = [key for key, at in contracts.needed_ports(self.description, places) if at == position]

        def is_over() -> bool:
            return number != self.rounds.round or self.rounds.phase != rounds.RUNNING

        def reserve(place: int, _: Any) -> None:
            if not is_over():
                self.call(place, "reserve", (len(keys), self.ports_before.get(place, [])), start)

        def start(place: int, ports: List[int]) -> None:
            self.ports.update(zip(keys, ports))
            self.ports_before[place] = ports
            if is_over() or not self.rounds.joined(place, name, now()):
                return
            self.joined.add(name)
            self.console.note(f"{name} joins round {number} on {self.places[place].get('pod') or self.places[place]['host']}")
            found = contracts.start_of(self.description, places, self.ports, number, name)
            programs = [self.program(number, found, self.description["output"] == "All")]
            if self.later:
                self.later.append((place, programs))
            else:
                self.start(number, place, programs)

        self.call(seat.place, "sweep", (number,), reserve)

    def decommission(self, number: int, place: int, process: str) -> None:
        """Have a process move what it has to others, and end, once it has started."""
        if self.starting[place] or any(one == place for one, _ in self.later):
            self.decommissioning[place] = process
        else:
            self.call(place, "decommission", (number, process), lambda *_: None)

    def program(self, number: int, start: contracts.Start, is_streamed: bool) -> Dict[str, Any]:
        """Return what an agent needs for a process."""
        name = start.process.name
        log = f"job-driver-{self.description['submission']}-{self.log_prefix()}{name.replace('/', '-')}-r{number}.log"
        found = {"name": name, "argv": start.argv, "env": start.env, "defaults": start.defaults, "log": log, "stream": is_streamed}
        return {**found, "spark": {**start.spark, "secret": self.secret}} if start.spark else found

    def log_prefix(self) -> str:
        """Return what the names of logs have before the process."""
        return ""

    def start(self, number: int, place: int, programs: List[Dict[str, Any]]) -> None:
        """Start processes in a place."""
        self.starting[place] += 1
        names = [program["name"] for program in programs]
        self.call(place, "start", (number, programs), lambda place, answers: self.take_start(place, number, names, answers))

    def take_start(self, place: int, number: int, names: List[str], answers: Sequence[Optional[Dict[str, str]]]) -> None:
        """Take which processes have started."""
        failed = [(name, answer) for name, answer in zip(names, answers) if answer is not None]
        if failed and failed[0][0] in self.lines:
            self.refuse_daemon(place, failed[0][0], failed[0][1])
        elif failed and failed[0][0] in self.joined:  # the others run
            self.rounds.ended(place, failed[0][0], 2, now(), message=failed[0][1]["message"])
        elif failed:
            self.rounds.fail(place, failed[0][1]["kind"], failed[0][1]["message"], now(), failed[0][0])
        else:
            self.rounds.has_started(now())
        self.starting[place] -= 1
        method = None if self.starting[place] else self.stopping.pop(place, None)
        process = None if self.starting[place] else self.decommissioning.pop(place, None)
        if method is not None:
            self.end_processes(method, number, (place,))
        elif process is not None:
            self.decommission(number, place, process)

    def start_daemon(self, place: int, request: Dict[str, Any]) -> None:
        """Start a daemon that mpirun in a place wants in another one."""
        number = request["round"]
        is_over = number != self.rounds.round or self.rounds.phase != rounds.RUNNING
        try:
            name, start = self.daemons.start(request)
            target = self.seats[start.process.place].place
        except (KeyError, TypeError):  # also what a program of the user asked for in its place
            target = None
        if is_over or target not in self.places:
            problem = "the round has ended" if is_over else "no place of the gang has this address"
            self.call(place, "finish_daemon", (number, request["number"], mpi.REFUSED, problem), lambda *_: None)
            return
        self.lines[name] = request["number"]
        self.rounds.began(target, name)
        program = self.program(number, start._replace(process=start.process._replace(name=name)), False)
        self.start(number, target, [{**program, "mpi": {}}])

    def finish_daemon(self, name: str, code: int, message: str) -> None:
        """Have mpirun take the end of a daemon, if the process is one."""
        if name in self.lines:
            answer = self.rounds.round, self.lines.pop(name), code, message
            self.call(self.mpirun, "finish_daemon", answer, lambda *_: None)

    def refuse_daemon(self, place: int, name: str, answer: Mapping[str, str]) -> None:
        """Take that a daemon cannot start. A disk that is full ends the attempt, as for other processes."""
        self.finish_daemon(name, mpi.REFUSED, answer["message"])
        if answer["kind"] == "DiskFull":
            self.rounds.fail(place, answer["kind"], answer["message"], now(), name)
        else:
            self.rounds.ended(place, name, mpi.REFUSED, now(), message=answer["message"])

    def stop(self, number: int, places: Tuple[int, ...]) -> None:
        """Send SIGTERM to processes."""
        self.serial = -1
        waiting, self.later = self.later, []
        for place, programs in waiting:  # they have never started
            for program in programs:
                self.rounds.ended(place, program["name"], 128 + signal.SIGTERM, now())
        self.end_processes("stop", number, places)

    def kill(self, number: int, places: Tuple[int, ...]) -> None:
        """Send SIGKILL to processes."""
        self.end_processes("kill", number, places)

    def end_processes(self, method: str, number: int, places: Tuple[int, ...]) -> None:
        """Call stop or kill, after start has come back: what comes before it would find nothing."""
        for place in places:
            if self.starting[place]:
                self.stopping[place] = method
            else:
                asked = now()
                self.call(place, method, (number,), lambda place, _, asked=asked: self.rounds.answered(place, asked))

    def finish(self, code: int, signal_number: int) -> None:
        """End the driver."""
        self.result = rounds.Finish(code, signal_number)

    def leave(self) -> None:
        """Write the last report, and all output that waits."""
        cause = self.rounds.last
        if self.rounds.is_stopping:
            self.console.note("stopped")
        elif cause is not None and self.result != rounds.Finish(0, 0):
            for line in cause.lines[-8:]:
                self.console.note(f"{cause.process}: {line}")
            self.console.note(describe(cause))
        self.reporter.close(self.encode())
        self.console.close()

    # What they have in common.

    def exchange(self, place: int, answered: int) -> None:
        """Answer a beat, and wait for the next one."""
        self.cluster.call(place, "exchange", (answered, not self.console.is_full()), self.take_exchange)

    def call(self, place: int, method: str, arguments: Tuple[Any, ...], then: Callable[[int, Any], None]) -> None:
        """Call an agent, and call then with the place and the result. Where it fails or takes too long the place is lost.

        A disk that is full ends the attempt: the place is there, and another round would fail as well.
        """
        if place not in self.places:
            return
        self.called += 1
        number = self.called
        # These two wait for what is left of former rounds.
        seconds = CALL_SECONDS + (self.description["graceSeconds"] if method in ("sweep", "start") else 0)
        self.calls[number] = Call(place, method, seconds, now() + seconds)

        def take(place: int, result: Any, failure: Optional[Failure]) -> None:
            if self.calls.pop(number, None) is None:
                return
            if failure is not None and failure.is_disk_full:
                self.rounds.fail(place, "DiskFull", failure.message, now())
            elif failure is not None:
                self.lose(place, failure)
            else:
                then(place, result)

        self.cluster.call(place, method, arguments, take)

    def lose(self, place: int, failure: Optional[Failure]) -> None:
        """Take that a place is lost."""
        failure = failure or Failure("its agent has given no answer")
        self.rounds.lost(place, failure.message, now(), failure.is_memory)

    def contract_places(self) -> List[contracts.Place]:
        """Return the places of the round, as the contracts want them."""
        found = []
        for seat in self.seats:
            facts = self.places[seat.place]
            gpus = tuple(str(gpu) for gpu in facts["gpus"])
            found.append(contracts.Place(seat.role, seat.replica, facts["ip"], facts["loopback"], facts["interface"], gpus))
        return found


def do_posted(posted: Posted, is_calm: bool) -> None:
    """Do what is posted, and wait for it a while."""
    try:
        do, arguments = posted.get(timeout=CALM_SECONDS if is_calm else BUSY_SECONDS)
        do(*arguments)
        for _ in range(posted.qsize()):
            do, arguments = posted.get_nowait()
            do(*arguments)
    except queue.Empty:
        pass


def describe(cause: rounds.Cause) -> str:
    """Return a cause in a line."""
    where = f" on {cause.pod}" if cause.pod else ""
    if not cause.process or cause.message.startswith(cause.process):  # the message names it
        return f"{cause.message}{where}"
    return f"{cause.process}{where}: {cause.message}"


def now() -> float:
    """Return the time by the clock that leases use, which also counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _some(names: Sequence[str]) -> str:
    """Return names for a text, the first ones of many."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
