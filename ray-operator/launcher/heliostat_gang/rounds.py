"""What a gang does next: gather places, start a round, end it, restart, or end the attempt.

In: the description, what was seen of groups, places and processes, and the time in seconds of a clock that never goes back.
Out: actions, which the driver carries out.

It never starts a round beside processes of another one, nor below the minimum of a role. Processes join or restart while a round
runs only in a role that starts alone, which is a property of the framework. Nothing here reads a clock, calls Ray, or waits.
"""

import itertools
import signal
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from . import contracts
from .groups import AGENT_FAILURES, Close, Facts, Hand, Probe, Replica

# A guard ends its program this long after its agent sent the newest beat that was answered, plus the grace.
LEASE_SECONDS = 20.0
SLACK_SECONDS = 2.0
# A place that is lost this soon after a start, twice in a row, fails the attempt.
EARLY_SECONDS = 60.0
# Rounds that end this soon pause before the next one, at most for so long.
SHORT_SECONDS = 10.0
LONGEST_PAUSE = 60.0
# How often in a row a process that starts alone may end within EARLY_SECONDS of its start.
EARLY_ENDS = 3
FREE_DRAINS = 20
# An exit code that a daemon of MPI has only where it was lost: by a signal, or 255 of Open MPI 5.
LOST_DAEMON = 128
# How long a loss may show after a failure that it caused.
JUDGE_SECONDS = 3.0
# How long processes may be there after SIGKILL before their place is given up.
STUCK_SECONDS = 20.0
# What Ray may need to place a bundle that fits now, and an autoscaler to report nodes for one that does not.
PLACING_SECONDS = 2.0
SCALING_SECONDS = 10.0
# How long a place may take to answer what prepares a round, beside the grace of processes that it ends first.
PREPARE_SECONDS = 90.0

GATHERING, PREPARING, RUNNING, ENDING, ENDED = "Gathering", "Preparing", "Running", "Ending", "Ended"
_PORT_TAKEN = ("eaddrinuse", "address already in use", "address in use", "errno: 98", "errno 98")


class Seat(NamedTuple):
    """A replica of a round, with its place."""

    role: str
    replica: int
    place: int


class Prepare(NamedTuple):
    """Find ports, look whether places reach each other, then call prepared with the serial."""

    serial: int
    round: int
    seats: Tuple[Seat, ...]


class Launch(NamedTuple):
    """Start the processes of the round that was prepared."""

    round: int


class Join(NamedTuple):
    """Find ports for a replica, and start its process while the round runs; call began and then started."""

    round: int
    seat: Seat


class Decommission(NamedTuple):
    """Have a process move what it has to others, and end."""

    round: int
    place: int
    process: str


class Stop(NamedTuple):
    """Send SIGTERM to the processes of a round, in these places."""

    round: int
    places: Tuple[int, ...]


class Kill(NamedTuple):
    """Send SIGKILL to the processes of a round, in these places."""

    round: int
    places: Tuple[int, ...]


class Finish(NamedTuple):
    """End the driver, with an exit code or by a signal."""

    code: int
    signal: int


class Cause(NamedTuple):
    """Why a round ended, or the wait for one."""

    time: float
    kind: str  # Exit Lost OutOfMemory Drained NotFound DiskFull Unreachable PortTaken Gather
    message: str
    process: str = ""
    code: int = 0
    pod: str = ""
    host: str = ""
    lines: Tuple[str, ...] = ()
    replica: Optional[Replica] = None
    is_final: bool = False  # no restart follows


class Rounds:
    """The rounds of one attempt."""

    def __init__(self, description: Mapping[str, Any], now: float) -> None:
        self.description = description
        self.grace = float(description["graceSeconds"])
        self.hand = Hand(description, now)
        self.phase = GATHERING
        self.round = 1
        self.restarts = self.losses = self.drains = 0
        self.started: Optional[float] = None  # of the first process of the attempt
        self.last: Optional[Cause] = None  # of the last round that ended
        self.lost_pods: List[str] = []
        self.is_coming = False  # the autoscaler has nodes on their way
        self._cause: Optional[Cause] = None  # of the round that is ending; None if it succeeded
        self.is_stopping = False  # the attempt has to end, whatever its processes do
        self._result: Optional[Finish] = None
        self._actions: List[Any] = []
        self._seats: Tuple[Seat, ...] = ()
        self._members: Dict[str, contracts.Process] = {}
        self._counted: Set[str] = set()  # processes that success still waits for
        self._exited: Dict[str, int] = {}
        self._daemons: Set[str] = set()  # those of MPI that run
        self._met_at: Optional[float] = None  # when the policies of all roles were met
        self._lost_daemon: Optional[Cause] = None
        self._serial = 0
        self._prepared = -1
        self._preparing = 0.0
        self._failures = 0  # preparations in a row that a place has ended
        self._failure = ""
        self._launched = 0.0
        self._ending = 0.0
        self._killed: Optional[float] = None
        self._free = now  # when every process of places that were given up has ended
        self._pause = now  # before this time no round starts
        self._short = 0  # rounds in a row that ended soon after their start
        self._early: Optional[Replica] = None
        self._has_port_failed = False
        self._is_again = False  # others ran in these places before
        # Of the role that starts alone.
        self.alone: List[Cause] = []  # why processes of it have ended that others replace; the caller empties it
        self._numbers: Dict[int, float] = {}  # numbers of replicas that were given up, and when their processes have ended
        self._vacancies: List[int] = []  # for each replica that was given up, how often its processes ended early
        self._early_ends: Dict[int, int] = {}  # the same for places
        self._alone_since: Dict[str, float] = {}  # when a process started

    def begin_again(self, now: float) -> "Rounds":
        """Return the rounds of the next trial, in the places that these rounds had. Nothing of these runs any more."""
        following = Rounds(self.description, now)
        following.hand, following.round, following._serial = self.hand, self.round + 1, self._serial
        following.lost_pods, following.is_coming, following._free = self.lost_pods, self.is_coming, self._free
        following._is_again = True
        following._regather()
        following.hand.restart(now)
        return following

    # What was seen.

    def placed(self, group: int, state: str, now: float) -> None:
        """Take what Ray has of a group: "placed", "waiting", or "gone"."""
        if state == "gone":
            for place in self.hand.forget(group):
                self._drop(place, "Ray removed its placement group", now)
        else:
            self.hand.set_placed(group, state == "placed")

    def ready(self, place: int, facts: Facts, now: float) -> None:
        """Take that the agent of a place answers."""
        self.hand.set_ready(place, facts, now)

    def beat(self, place: int, left: int, now: float) -> None:
        """Take a beat of a place, in which so many processes are left, descendants included."""
        if place in self.hand.places:
            found = self.hand.places[place]
            found.beat, found.left = now, left

    def answered(self, place: int, asked: float) -> None:
        """Take that a place answered a call that was made at a time: it was not lost before."""
        if place in self.hand.places:
            found = self.hand.places[place]
            found.asked = max(found.asked, asked)

    def lost(self, place: int, message: str, now: float, is_memory: bool = False) -> None:
        """Take that a place is lost, or that its agent could not be started."""
        if place in self.hand.places:
            self._drop(place, message, now, is_memory)

    def unreachable(self, node: str, now: float) -> None:
        """Take that a node does not answer, of which Ray may not know yet."""
        self.hand.avoid(node, now)

    def began(self, place: int, process: str) -> None:
        """Take that a process was started during the round: a daemon of MPI."""
        if place in self.hand.places:
            self.hand.places[place].running.add(process)
            self._daemons.add(process)

    def joined(self, place: int, process: str, now: float) -> bool:
        """Take that a process is started that joins the round, and return whether it may be."""
        found = self.hand.places.get(place)
        if found is None or self.phase != RUNNING:
            return False
        found.is_joining = False
        if found.is_decommissioned:
            return False
        found.running.add(process)
        found.first = process
        self._alone_since[process] = now
        return True

    def ended(self, place: int, process: str, code: int, now: float, lines: Sequence[str] = (), is_memory: bool = False,
              message: str = "") -> None:
        """Take that a process ended with an exit code, which is 128 + n where signal n ended it."""
        found = self.hand.places.get(place)
        if found is None or process not in found.running:
            return
        found.running.discard(process)
        if self.phase != RUNNING:
            return
        kind, text = "Exit", message or describe_code(code)
        if is_memory:
            kind = "OutOfMemory"
        elif now - self._launched < SHORT_SECONDS and any(word in line.lower() for line in lines for word in _PORT_TAKEN):
            kind = "PortTaken"
        cause = self._blame(found, Cause(now, kind, text, process, code, lines=tuple(lines)))
        if found.role == self.hand.alone:
            self._end_alone(found, cause, now)
        elif process in self._daemons:
            self._daemons.discard(process)
            if code >= LOST_DAEMON and self._lost_daemon is None:
                self._lost_daemon = cause
            self._succeed(now)
        elif self._members[process].is_master:  # whatever its code is, all others would wait for it
            self._end_round(cause._replace(code=code or 1), now)
        elif code != 0:
            self._end_round(self._lost_daemon or cause, now)
        else:
            self._exited[process] = code
            self._counted.discard(process)
            if not self._counted and len(self._met()) == len(self.hand.roles):
                self._met_at = now
            self._succeed(now)

    def _succeed(self, now: float) -> None:
        """End the round where the policies of all roles are met.

        mpirun of Open MPI 5 ends with 0 also where it lost a daemon, so that those of MPI have to end too. One that does not
        end, and whose place is not lost in that time, is not waited for.
        """
        if self._met_at is not None and (not self._daemons or now - self._met_at >= LEASE_SECONDS + SLACK_SECONDS):
            self._end_round(self._lost_daemon, now)

    def prepared(self, serial: int) -> None:
        """Take that the round can start."""
        self._prepared = serial

    def fail(self, place: Optional[int], kind: str, message: str, now: float, process: str = "", code: int = 2) -> None:
        """Take what ends the attempt: a process that cannot start, or a place that does not reach the first one."""
        found = self.hand.places.get(-1 if place is None else place)
        # Others of its place may have been started before, and run.
        if found is not None and (process in self._daemons or self.hand.alone):
            found.running.discard(process)
        elif found is not None:
            found.running.clear()  # its agent leaves none running
        if self.phase in (PREPARING, RUNNING):
            cause = Cause(now, kind, message, process, code, is_final=True)
            self._end_round(self._blame(found, cause), now)

    def has_started(self, now: float) -> None:
        """Take that the first process of the round runs."""
        if self.started is None:
            self.started = now

    def draining(self, nodes: Iterable[str]) -> None:
        """Take which nodes drain."""
        self.hand.draining = frozenset(nodes)

    def stop(self) -> None:
        """Take that the attempt has to end."""
        self.is_stopping = True

    # What follows.

    def step(self, now: float) -> List[Any]:
        """Return what to do now. It has to be called again after anything was seen, and every second."""
        if self.phase != ENDED:
            self._watch(now)
            if self.is_stopping and self.phase in (PREPARING, RUNNING):
                self._end_round(None, now)
        if self.phase == ENDING:
            self._end(now)
        if self.phase in (GATHERING, PREPARING):
            self._gather(now)
        if self.phase == RUNNING:
            self._succeed(now)
        if self.phase == RUNNING:
            self._leave(now)
        if self.phase == RUNNING and self.hand.alone:
            self._grow(now)
        if self.phase == ENDED and self._result and now >= self._free:
            self._actions.append(self._result)
            self._result = None
        actions, self._actions = self._actions, []
        return actions

    def report(self) -> Dict[str, Any]:
        """Return the state of the gang, with times of the caller's clock."""
        state = {PREPARING: GATHERING, ENDING: RUNNING}.get(self.phase, self.phase)
        if self.phase == ENDED and self._result:  # processes of a lost place may run
            state = RUNNING if self._seats else GATHERING
        places = [self.hand.places[seat.place] for seat in self._seats if seat.place in self.hand.places]
        if state != RUNNING:
            places = [place for place in self.hand.places.values() if place.is_ready]
        return {
            "state": state,
            "round": self.round,
            "restarts": self.restarts,
            "losses": self.losses,
            "replicas": len(self._seats) if state == RUNNING and not self.hand.alone else self.hand.replicas,
            "ready": len(places),
            "started": self.started,
            "last": self._cause or self.last,
            "lost": self.lost_pods[-8:],
        }

    def wait_left(self, now: float) -> Tuple[float, str]:
        """Return how long the next round waits at least, and for what."""
        if self._free > now and self._free >= self._pause:
            return self._free - now, "processes of a lost place to end"
        return max(0.0, self._pause - now), f"a pause, as rounds end within {SHORT_SECONDS:.0f} s of their start"

    def blockers(self) -> List[str]:
        """Return the processes of the round that run."""
        places = [self.hand.places[seat.place] for seat in self._seats if seat.place in self.hand.places]
        return [name for place in places for name in sorted(place.running)]

    # Places.

    def _watch(self, now: float) -> None:
        """Give up places whose beats have stopped."""
        for place in list(self.hand.places.values()):
            if place.is_ready and now - place.beat >= LEASE_SECONDS:
                self.hand.delay(place, now)
                self._actions.append(Probe(place.facts.node))
                self._drop(place.number, f"its agent has not answered for {LEASE_SECONDS:.0f} s", now)

    def _drop(self, number: int, message: str, now: float, is_memory: bool = False) -> None:
        """Give up a place, and end the round if it needs the place."""
        place = self.hand.places[number]
        is_used = place.is_used or bool(place.running)
        if is_used and (place.running or place.left):
            self._free = max(self._free, place.beat + LEASE_SECONDS + self.grace + SLACK_SECONDS)
        self.hand.drop(number, message, now)
        self._actions.append(Close(number))
        if self.phase == PREPARING:
            self._failures += 1
            times = f"{self._failures} times in a row"
            self._failure = f"a round could not be prepared, {times}; the last time on {place.facts.pod}: {message}"
            self._regather()
        if not is_used:
            return
        if place.facts.pod and self.phase in (RUNNING, ENDING):
            self.lost_pods.append(place.facts.pod)
        names = sorted(place.running, key=lambda name: self._members[name].rank if name in self._members else 0) or [place.first]
        cause = Cause(now, "Lost", message, names[0])
        if is_memory:
            cause = cause._replace(kind="OutOfMemory", code=128 + signal.SIGKILL)
        cause = self._blame(place, cause)
        if self.phase == RUNNING and place.role == self.hand.alone:
            self._vacate(place, cause, now)
        elif self.phase == RUNNING and (place.running or self.hand.is_mpi):
            self._end_round(cause, now)
        elif self.phase == ENDING and self._cause and self._cause.kind in ("Exit", "PortTaken", "Unreachable"):
            if place.role == self.hand.alone and self._cause.kind != "Unreachable":
                return  # processes of others do without it
            if place.asked < self._cause.time or now - self._cause.time <= JUDGE_SECONDS:
                self._overrule(cause)

    def _overrule(self, cause: Cause) -> None:
        """Take a loss as the cause of what was seen to fail before."""
        if self._cause and self._cause.kind == "Unreachable":  # no process has started
            self._regather()
            return
        self._cause = cause

    def _blame(self, place: Any, cause: Cause) -> Cause:
        """Return a cause with where it was."""
        if place is None:
            return cause
        return cause._replace(pod=place.facts.pod, host=place.facts.host, replica=place.seat)

    def _regather(self) -> None:
        """Gather again before any process of the round has started."""
        self.phase, self._cause, self._seats = GATHERING, None, ()
        self._numbers, self._vacancies, self._early_ends, self._alone_since = {}, [], {}, {}
        for place in self.hand.places.values():
            place.is_used = place.is_decommissioned = place.is_joining = False

    def _leave(self, now: float) -> None:
        """End the round where one of its nodes drains."""
        for seat in self._seats if self.hand.draining else ():
            place = self.hand.places.get(seat.place)
            if place and place.facts.node in self.hand.draining and place.role == self.hand.alone:
                if not place.is_decommissioned:
                    place.is_decommissioned = True
                    self._actions += [Decommission(self.round, place.number, name) for name in sorted(place.running)]
            elif place and place.facts.node in self.hand.draining and (place.running or self.hand.is_mpi):
                cause = Cause(now, "Drained", "its node drains", place.first)
                self._end_round(self._blame(place, cause), now)
                return

    # The role that starts alone.

    def _end_alone(self, place: Any, cause: Cause, now: float) -> None:
        """Take that a process ended that starts again alone. One that ends early again and again ends the round."""
        early = self._count_early(place, cause, now)
        if place.is_decommissioned:
            return
        self._early_ends[place.number] = early
        if early >= EARLY_ENDS:
            self._end_round(self._repeated(cause, early), now)
        else:
            self.alone.append(cause)

    def _vacate(self, place: Any, cause: Cause, now: float) -> None:
        """Take that the place of such a process was lost."""
        early = self._count_early(place, cause, now) if place.running else self._early_ends.get(place.number, 0)
        self._numbers[place.seat[1]] = self._free
        self._seats = tuple(seat for seat in self._seats if seat.place != place.number)
        if place.is_decommissioned:
            return
        self._vacancies.append(early)
        if early >= EARLY_ENDS:
            self._end_round(self._repeated(cause, early), now)
        else:
            self.alone.append(cause)

    def _count_early(self, place: Any, cause: Cause, now: float) -> int:
        """Return how often in a row a process ended early, with this time."""
        is_early = now - self._alone_since.pop(cause.process, float("-inf")) < EARLY_SECONDS
        return self._early_ends.pop(place.number, 0) + 1 if is_early else 0

    def _repeated(self, cause: Cause, times: int) -> Cause:
        return cause._replace(message=f"{cause.message}, {times} times in a row within {EARLY_SECONDS:.0f} s of its start",
                              code=cause.code or 128 + signal.SIGKILL)

    def _grow(self, now: float) -> None:
        """Start what may join the round: processes that have ended in their places, and replicas in others."""
        for place in list(self.hand.places.values()):
            if place.role != self.hand.alone or not place.is_used or place.running or place.left or place.is_joining:
                continue
            if place.is_decommissioned:
                self._seats = tuple(seat for seat in self._seats if seat.place != place.number)
                self._numbers[place.seat[1]] = now
                self._actions += self.hand.give_up(place.number)
            else:
                self._join(place, place.seat[1])
        self._actions += self.hand.grow(now)
        for place in self.hand.joiners():
            self._early_ends[place.number] = self._vacancies.pop(0) if self._vacancies else 0
            self._join(place, self._next_number(now))

    def _join(self, place: Any, replica: int) -> None:
        place.seat, place.is_used, place.is_joining = (place.role, replica), True, True
        seat = Seat(place.role, replica, place.number)
        self._seats = (*(one for one in self._seats if one.place != place.number), seat)
        self._actions.append(Join(self.round, seat))

    def _next_number(self, now: float) -> int:
        """Return the lowest number of a replica that no process has that runs, or may still run."""
        taken = {seat.replica for seat in self._seats if seat.role == self.hand.alone}
        taken |= {number for number, free in self._numbers.items() if now < free}
        return next(number for number in itertools.count() if number not in taken)

    # Rounds.

    def _gather(self, now: float) -> None:
        if self.is_stopping:
            self._finish(128 + signal.SIGTERM)
            return
        if self.phase == PREPARING:
            if self._prepared == self._serial and not self.hand.has_draining():
                self._launch(now)
                return
            if not self.hand.has_draining() and now - self._preparing < PREPARE_SECONDS + self.grace:
                return
            self._regather()
        self._actions += self.hand.gather(now)
        bound = self.description["firstGatherSeconds" if self.round == 1 else "gatherSeconds"]
        is_over = bound and not self.hand.is_minimum_ready() and self.hand.wait_seconds(now) >= bound
        trouble = self.hand.trouble() or (self._failure if self._failures >= AGENT_FAILURES else "")
        if is_over or trouble:
            self.last = Cause(now, "Gather", trouble or f"{self.hand.missing_text()} after {bound} s")
            self._finish(signal_number=signal.SIGUSR2)
        elif now >= max(self._free, self._pause) and self._is_enough(now):
            self._prepare(now)

    def _is_enough(self, now: float) -> bool:
        """Report whether the round starts with the places that are ready."""
        if not self.hand.is_minimum_ready():
            return False
        if self.hand.is_all_ready():
            return True
        longest = self.description["minReplicasAfterSeconds"]
        if now - self.hand.minimum_since >= longest:
            return True
        if self.last is None and not self._is_again:
            return False
        if self.hand.is_starting():  # a place is there, and its agent will be
            return False
        if self.last is not None and self.last.kind in ("Lost", "Drained"):
            return now - self.hand.since >= SCALING_SECONDS and not self.is_coming
        return now - self.hand.since >= PLACING_SECONDS

    def _prepare(self, now: float) -> None:
        self._actions += self.hand.release_unready()
        self._seats = tuple(Seat(role, replica, place) for role, replica, place in self.hand.assign())
        self.phase = PREPARING
        self._serial += 1
        self._preparing = now
        self._actions.append(Prepare(self._serial, self.round, self._seats))

    def _launch(self, now: float) -> None:
        members = contracts.processes(
            self.description, [contracts.Place(seat.role, seat.replica, "") for seat in self._seats]
        )
        self._members = {member.name: member for member in members}
        self._counted = {member.name for member in members if member.is_counted}
        self._exited, self._daemons, self._met_at, self._lost_daemon = {}, set(), None, None
        for seat in self._seats:
            self.hand.places[seat.place].first = ""
        for member in members:
            place = self.hand.places[self._seats[member.place].place]
            place.first = place.first or member.name
            if not member.is_daemon:
                place.running.add(member.name)
            if member.role == self.hand.alone:
                self._alone_since[member.name] = now
        self.phase, self._launched, self._cause, self._failures = RUNNING, now, None, 0
        self._actions.append(Launch(self.round))

    def _met(self) -> Set[str]:
        return contracts.judge_success(list(self._members.values()), self._exited)

    def _end_round(self, cause: Optional[Cause], now: float) -> None:
        self.phase, self._cause, self._ending, self._killed = ENDING, cause, now, None
        places = tuple(seat.place for seat in self._seats if seat.place in self.hand.places)
        self._actions.append(Stop(self.round, places))

    def _end(self, now: float) -> None:
        """End what runs, then judge why the round ended."""
        places = [self.hand.places[seat.place] for seat in self._seats if seat.place in self.hand.places]
        left = [place for place in places if place.running or place.left]
        if left:
            if self._killed is None and now - self._ending >= self.grace:
                self._killed = now
                self._actions.append(Kill(self.round, tuple(place.number for place in left)))
            elif self._killed is not None and now - self._killed >= STUCK_SECONDS:
                for place in left:
                    self._drop(place.number, f"{place.first} has not ended {STUCK_SECONDS:.0f} s after SIGKILL", now)
            return
        cause = self._cause
        if self.is_stopping:
            self._finish(128 + signal.SIGTERM)
        elif cause is None:
            self._finish(0)
        elif cause.kind in ("Exit", "PortTaken", "Unreachable") and any(place.asked < cause.time for place in places):
            return  # one that has not answered since may be lost, and the cause of this
        else:
            self._conclude(cause, now)

    def _conclude(self, cause: Cause, now: float) -> None:
        """Restart, or end the attempt."""
        restart = self._restart_of(cause)
        if restart == "" and cause.kind in ("Exit", "PortTaken", "Unreachable") and now - cause.time < JUDGE_SECONDS:
            return
        # A trial may be short whatever its place does, and its losses have a bound of their own.
        is_early = cause.kind == "Lost" and cause.time - self._launched < EARLY_SECONDS and "tune" not in self.description
        self.last, self._cause = cause, None
        if is_early and cause.replica == self._early:
            text = f"{cause.message}, within {EARLY_SECONDS:.0f} s of the start, for the second time in a row"
            self.last = cause._replace(message=text, code=128 + signal.SIGKILL)
            self._finish(128 + signal.SIGKILL)
            return
        self._early = cause.replica if is_early else None
        if restart == "":
            is_loss = cause.kind in ("Lost", "Drained")
            self._finish(0 if is_loss else cause.code, signal.SIGUSR2 if is_loss else 0)
            return
        self._has_port_failed |= restart == "port"
        self.drains += restart == "drain"
        self.losses += restart == "loss"
        self.restarts += restart == "restart"
        self._short = self._short + 1 if cause.time - self._launched < SHORT_SECONDS else 0
        self._pause = now + (min(LONGEST_PAUSE, 2.0 ** (self._short - 2)) if self._short > 1 else 0)
        self.round += 1
        self._regather()
        self.hand.restart(now)

    def _restart_of(self, cause: Cause) -> str:
        """Return what a restart after a cause counts as, or "" if none may follow."""
        if cause.is_final:
            return ""
        if cause.kind == "PortTaken" and not self._has_port_failed:
            return "port"
        if cause.kind == "Drained" and self.drains < FREE_DRAINS:
            return "drain"
        if cause.kind in ("Lost", "Drained"):
            return "loss" if self.losses < self.description["lossesLeft"] else ""
        codes = self.description["retryOnExitCodes"]
        is_allowed = cause.code in codes["in"] if codes["in"] else cause.code not in codes["notIn"]
        return "restart" if is_allowed and self.restarts < self.description["maxRestarts"] else ""

    def _finish(self, code: int = 0, signal_number: int = 0) -> None:
        self.phase, self._result = ENDED, Finish(code, int(signal_number))


def describe_code(code: int) -> str:
    """Return what an exit code means, where n over 128 is a signal."""
    if 128 < code <= 128 + 64:
        try:
            return f"ended by {signal.Signals(code - 128).name}"
        except ValueError:
            return f"ended by signal {code - 128}"
    return f"ended with exit code {code}"
