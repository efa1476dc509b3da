"""A child gang: a gang that runs one trial after another in its places, on a cluster that it shares with others.

In: what the tuner wants, and a part of the cluster. Out: output with the number of the trial, the values of the metric, and how each
trial ends.
"""

from typing import Any, Callable, Dict, Mapping, Optional, Protocol, Sequence, Tuple

from . import contracts, metric, parameters, rounds, trials
from .driver import Driver, Failure, Posted, now
from .groups import SPAN


class Share:
    """The part of a cluster that one child gang has: its numbers of groups and places are its own."""

    def __init__(self, cluster: Any, number: int) -> None:
        """Take a cluster, and the number of a child gang."""
        self._cluster = cluster
        self._first = number * SPAN
        self.is_gathering = False

    def gather(self, is_gathering: bool) -> None:
        """Note whether the child gang gathers."""
        self.is_gathering = is_gathering

    def ask(self, group: int, *arguments: Any) -> None:
        """Create a placement group."""
        self._cluster.ask(self._first + group, *arguments)

    def release(self, group: int) -> None:
        """Remove a placement group."""
        self._cluster.release(self._first + group)

    def open(self, place: int, group: int, bundle: int, resources: Mapping[str, float], then: Callable[..., None]) -> None:
        """Start an agent."""
        self._cluster.open(self._first + place, self._first + group, bundle, resources, self._own(then))

    def close(self, place: int) -> None:
        """End an agent."""
        self._cluster.close(self._first + place)

    def call(self, place: int, method: str, arguments: Tuple[Any, ...], then: Callable[..., None]) -> None:
        """Call an agent."""
        self._cluster.call(self._first + place, method, arguments, self._own(then))

    def probe(self, node: str, then: Callable[..., None]) -> None:
        """Look whether a node answers."""
        self._cluster.probe(node, then)

    @staticmethod
    def _own(then: Callable[..., None]) -> Callable[..., None]:
        return lambda place, *rest: then(place % SPAN, *rest)


class Tuner(Protocol):
    """What a child gang wants of the tuner. Each of these is called in the deciding thread."""

    def begin(self, number: int) -> Optional[Tuple[int, Mapping[str, str]]]:
        """Return a trial with its values for a child gang that has its places, or nothing where there is none now."""

    def take_step(self, number: int, step: int, value: float) -> None:
        """Take a value of the metric."""


class Output:
    """The console of a child gang: what its processes write goes to the job's own output, with the trial in front, and to a reader."""

    def __init__(self, console: Any, is_all: bool, take: Callable[[bytes], None], end: Callable[[], None]) -> None:
        """Write to a console. take gets the output of the first process."""
        self._console = console
        self._is_all = is_all
        self._take, self._end = take, end
        self.trial: Optional[int] = None
        self.first = ""  # the process that is read

    def write(self, process: str, data: bytes) -> None:
        """Write a piece of the output of a process."""
        self._console.write(self._name(process), data)
        if process == self.first:
            self._take(data)

    def end(self, process: str) -> None:
        """Write what a process that has ended left without the end of a line."""
        self._console.end(self._name(process))
        if process == self.first:
            self._end()

    def note(self, text: str) -> None:
        """Write a line of the launcher."""
        self._console.note(text if self.trial is None else f"trial {self.trial}: {text}")

    def is_full(self) -> bool:
        """Report whether so much waits that processes have to."""
        return self._console.is_full()

    def _name(self, process: str) -> str:
        return f"{self.trial} {process}" if self._is_all else f"{self.trial}"


class Child(Driver):
    """Runs trials of one attempt, one after another."""

    def __init__(
        self, number: int, description: Mapping[str, Any], share: Share, output: Tuple[Any, Posted], tuner: Tuner
    ) -> None:
        """Take a number, the description, a part of the cluster, a console with the queue of the tuner, and the tuner."""
        console, posted = output
        tune = description["tune"]
        self.number = number
        self.tuner = tuner
        # The tuner bounds the first wait for places: this gang may wait for as long as others run. Losses use up nothing of the job's retry.
        self.base = {**description, "child": number, "firstGatherSeconds": 0, "lossesLeft": trials.LOSSES}
        self.reader = metric.Reader(tune["metric"], tune["direction"], tune["value"])
        self.last: Optional[float] = None  # the value of the last line that has one
        self.lines: Tuple[str, ...] = ()  # the last ones of the first process
        self.has_begun = False  # a trial has its values
        self.asked: Optional[Tuple[int, int, Tuple[rounds.Seat, ...]]] = None  # the preparation that waits for values
        self.began_at = 0.0
        self.is_started = False  # the tuner knows that its first process runs
        is_all = description["output"] == "All"
        super().__init__(self.base, lambda *_: share, Output(console, is_all, self.take_output, self.end_output), posted)

    def prepare(self, serial: int, number: int, seats: Tuple[rounds.Seat, ...]) -> None:
        """Prepare a round. The first one of a trial needs values."""
        if not self.has_begun:
            self.serial, self.seats, self.asked = serial, seats, (serial, number, seats)
            begun = self.tuner.begin(self.number)
            if begun is None:  # there is none left, and this gang will be closed; or its values are being drawn
                return
            self.has_begun, self.asked = True, None
            trial, values = begun
            self.console.trial, self.last, self.lines = trial, None, ()
            self.console.note(parameters.show(values))
            try:
                self.description = parameters.describe(self.base, trial, values)
            except parameters.ParameterError as error:
                self.rounds.fail(None, "Exit", str(error), now())
                return
        super().prepare(serial, number, seats)

    def begin_drawn(self) -> None:
        """Prepare the round that waits for values, unless its places have changed since."""
        if self.asked is not None and self.asked[0] == self.serial and self.rounds.phase == rounds.PREPARING:
            self.prepare(*self.asked)

    def launch(self, number: int) -> None:
        """Start the processes of a round. The metric is read from its beginning."""
        self.reader.restart()
        processes = contracts.processes(self.description, self.contract_places())
        self.console.first = processes[0].name
        super().launch(number)

    def log_prefix(self) -> str:
        """Return what the names of logs have before the process: the trial."""
        return f"t{self.console.trial}-"

    def take_exchange(self, place: int, reply: Optional[Dict[str, Any]], failure: Optional[Failure]) -> None:
        """Take a beat. The last lines of the first process explain a metric that is missing."""
        for event in reply["events"] if reply else ():
            if event["process"] == self.console.first:
                self.lines = tuple(event["lines"])
        super().take_exchange(place, reply, failure)

    def take_output(self, data: bytes) -> None:
        """Read a piece of the output of the first process."""
        self.take_values(self.reader.read(data))

    def end_output(self) -> None:
        """Read a last line without an end."""
        self.take_values(self.reader.close())

    def take_values(self, values: Sequence[float]) -> None:
        """Give the values of lines to the tuner."""
        first = self.reader.steps - len(values) + 1
        for step, value in enumerate(values, first):
            self.last = value
            self.tuner.take_step(self.number, step, value)

    def follow(self) -> None:
        """Begin the next trial, in the places of the one that has ended."""
        self.result, self.has_begun, self.is_started, self.noted, self.asked = None, False, False, None, None
        self.description = self.base
        self.console.trial = None
        self.rounds = self.rounds.begin_again(now())

    def is_waiting(self) -> bool:
        """Report whether the gang waits for places: for its next trial, or for one that has lost some."""
        return not self.has_begun or self.rounds.phase in (rounds.GATHERING, rounds.PREPARING)

    def end(self) -> trials.End:
        """Return how the trial that has ended did."""
        result = self.result or rounds.Finish(0, 0)
        is_stopped = self.rounds.is_stopping or result == rounds.Finish(0, 0)
        return trials.End(result, None if is_stopped else self.rounds.last, self.reader.value, self.last, self.console.first, self.lines)

    def give_up(self) -> None:
        """Give back all places."""
        for action in self.rounds.hand.release_all():
            getattr(self, type(action).__name__.lower())(*action)

    def write_report(self) -> None:
        """Do nothing: the tuner writes one report for all."""
