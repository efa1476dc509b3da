"""What the trials of a study do next: which child gangs there are, what each runs, what a trial has come to, and when all is done.

In: the object tune of the description, the trials that the study has, what was seen of child gangs, and the time in seconds of a clock
that never goes back. Out: actions, which the tuner carries out.

It never runs a trial twice at once, never more at once than it may, and never gives a trial that ended another state. Nothing here reads
a clock, imports Optuna, or waits.
"""

import math
import signal
from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import metric, parameters
from .rounds import Cause, Finish

RUNNING, SUCCEEDED, PRUNED, FAILED = "Running", "Succeeded", "Pruned", "Failed"
# Kinds of causes for which an attempt ends.
TRIALS, MISSING, STUDY = "Trials", "MetricMissing", "Study"
# Losses of places that a trial may have.
LOSSES = 3
# How long after a child gang could not get its places another one tries.
PAUSE_SECONDS = 30.0


class Trial(NamedTuple):
    """A trial, as the table has it."""

    number: int
    state: str
    values: Mapping[str, str]
    value: Optional[float] = None
    started: float = 0.0  # Unix time
    seconds: float = 0.0
    attempt: int = 0
    message: str = ""


class End(NamedTuple):
    """How the gang of a trial ended."""

    result: Finish
    cause: Optional[Cause]
    value: Optional[float]
    last: Optional[float]  # the value of the last line that has one
    first: str = ""  # the process whose output was read
    lines: Tuple[str, ...] = ()  # its last ones


class Open(NamedTuple):
    """Have a child gang gather its places."""

    child: int


class Close(NamedTuple):
    """Give up a child gang that runs nothing, with its places."""

    child: int


class Stop(NamedTuple):
    """End the trial of a child gang: SIGTERM, the grace, SIGKILL."""

    child: int


class Next(NamedTuple):
    """Have a child gang, whose trial has ended, begin another one in its places."""

    child: int


class Tell(NamedTuple):
    """Write what a trial has come to."""

    number: int
    state: str
    value: Optional[float]
    message: str
    seconds: float


class _Child:
    def __init__(self) -> None:
        self.trial: Optional[int] = None
        self.started: Optional[float] = None  # when the first process of its trial started
        self.verdict: Optional[Tuple[str, str]] = None  # the state that its trial gets, and why
        self.is_stopped = False


class Trials:
    """The trials of one attempt."""

    def __init__(self, description: Mapping[str, Any], known: Sequence[Trial], now: float) -> None:
        """Take what the study has. Trials there that run belong to drivers that are gone."""
        self.tune = description["tune"]
        self._bounds = description["firstGatherSeconds"], description["gatherSeconds"]
        self.trials: Dict[int, Trial] = {}
        self.counts: Counter[str] = Counter()
        self.best: Optional[Trial] = None  # of those that have succeeded
        self._sign = -1 if self.tune["direction"] == "Maximize" else 1
        self._has_reached = False  # the goal
        for trial in known:
            self._put(trial)
        self.left = sorted(trial.number for trial in known if trial.state == RUNNING)
        self.most = self.tune["maxTrials"]
        if self.tune["algorithm"] == "Grid":
            self.most = min(self.most, parameters.combinations(self.tune))
        self.children: Dict[int, _Child] = {}
        self._made = 0
        self.last: Optional[Cause] = None
        self.is_stopping = False
        self._idle: Optional[float] = now  # since when no trial runs
        self._has_begun = False
        self._not_before = now
        self._result: Optional[Finish] = None
        self._actions: List[Any] = []
        self._judge(now)

    # What was seen.

    def begin(self, child: int) -> Optional[int]:
        """Return the trial for a child gang that has its places: a number, -1 for one that has to be drawn, None for none."""
        if self._result is not None or self.is_stopping or child not in self.children:
            return None
        if self.left:
            return self.left[0]
        return -1 if self._missing() > 0 else None

    def began(self, child: int, trial: Trial, now: float) -> None:
        """Take that a child gang begins a trial."""
        if trial.number in self.left:
            self.left.remove(trial.number)
        self._put(trial)
        self.children[child].trial = trial.number
        self._idle, self._has_begun = None, True

    def drawing(self, now: float) -> None:
        """Take that the values of a trial are being drawn: its places are there, so that no time without any passes."""
        if self._idle is not None:
            self._idle = now

    def started(self, child: int, now: float) -> None:
        """Take that the first process of a trial runs."""
        if self.children[child].started is None:
            self.children[child].started = now

    def is_watched(self, child: int) -> bool:
        """Report whether steps of the trial of a child gang may still end it."""
        found = self.children.get(child)
        return found is not None and found.trial is not None and found.verdict is None and not found.is_stopped and self._result is None

    def prune(self, child: int, step: int) -> None:
        """Take that early stopping ends a trial."""
        self._rule(self.children[child], PRUNED, f"ended early, at step {step}")

    def ended(self, child: int, end: End, now: float, seconds: float = 0.0) -> None:
        """Take that nothing is left of the trial of a child gang, which took so many seconds."""
        found = self.children[child]
        if end.cause is not None and self._result is None:
            self.last = end.cause
        number = found.trial
        found.trial, found.started = None, None
        verdict = found.verdict
        is_troubled = end.result.signal == signal.SIGUSR2 and (end.cause is None or end.cause.kind == "Gather")
        is_interrupted = self._is_void or (verdict is None and (found.is_stopped or is_troubled))
        found.verdict, found.is_stopped = None, False
        if number is not None and is_interrupted:
            self.left = sorted([*self.left, number])
        elif number is not None:
            self._conclude(number, *(verdict or self._state_of(end)), (end, now, seconds))
        if all(child.trial is None for child in self.children.values()):
            self._idle = now
        if is_troubled:
            self._trouble(child, now)
        elif self._result is None and not self.is_stopping and len(self.children) <= self.wanted():
            self._actions.append(Next(child))
        else:
            self._close(child)

    def stop(self) -> None:
        """Take that the attempt has to end. Its trials go on in another one."""
        self.is_stopping = True

    def fail(self, message: str, now: float, signal_number: int = 0) -> None:
        """Take that the study cannot go on: the storage fails, or by SIGUSR2 it was lost. Nothing more is written to it."""
        if self._result is None or not self._is_void:
            self.last = Cause(now, STUDY, message, code=0 if signal_number else 2)
            self._result = Finish(0 if signal_number else 2, int(signal_number))

    # What follows.

    def step(self, now: float) -> List[Any]:
        """Return what to do now. It has to be called again after anything was seen, and every second."""
        self._watch(now)
        is_ending = self._result is not None or self.is_stopping
        if is_ending:
            for number, child in list(self.children.items()):
                if child.trial is None:
                    self._close(number)
                elif not child.is_stopped:
                    if self._has_reached and child.verdict is None:
                        child.verdict = PRUNED, "ended, as another trial has reached the goal"
                    self._stop(number)
            if not self.children:
                self._actions.append(self._result or Finish(128 + signal.SIGTERM, 0))
        else:
            self._resize(now)
        actions, self._actions = self._actions, []
        return actions

    def wanted(self) -> int:
        """Return how many child gangs there have to be."""
        running = sum(child.trial is not None for child in self.children.values())
        fits = self.tune["fits"] or self.tune["parallelTrials"]
        return min(self.tune["parallelTrials"], fits, running + self._missing() + len(self.left))

    def report(self) -> Dict[str, Any]:
        """Return the counts, and the best trial."""
        best = self.best
        return {
            "trials": len(self.trials),
            "running": sum(child.trial is not None for child in self.children.values()),
            "succeeded": self.counts[SUCCEEDED],
            "failed": self.counts[FAILED],
            "pruned": self.counts[PRUNED],
            "waiting": sum(child.trial is None for child in self.children.values()),
            "best": None if best is None else {
                "trial": best.number, "value": number_text(best.value), "parameters": dict(parameters.order(self.tune, best.values)),
            },
        }

    # Internals.

    @property
    def _is_void(self) -> bool:
        """Report whether the storage takes nothing more."""
        return self.last is not None and self.last.kind == STUDY and self._result is not None

    def _put(self, trial: Trial) -> None:
        """Take a trial in the place of the one with its number."""
        former = self.trials.get(trial.number)
        if former is not None:
            self.counts[former.state] -= 1
        self.trials[trial.number] = trial
        self.counts[trial.state] += 1
        if trial.state != SUCCEEDED or trial.value is None:
            return
        if self.best is None or (self._sign * trial.value, trial.number) < (self._sign * self.best.value, self.best.number):
            self.best = trial
            goal = self.tune["goal"]
            self._has_reached = bool(goal) and self._sign * trial.value <= self._sign * float(goal)

    def _missing(self) -> int:
        """Return how many trials still have to be drawn."""
        return max(0, self.most - len(self.trials))

    def _state_of(self, end: End) -> Tuple[str, str]:
        """Return what a trial that nothing stopped has come to, and why."""
        name = self.tune["metric"]
        if end.result != Finish(0, 0):
            cause = end.cause
            if cause is None:
                return FAILED, f"ended with exit code {end.result.code}"
            where = f"{cause.process} on {cause.pod}: " if cause.process and cause.pod else ""
            return FAILED, where + cause.message
        if end.value is None:
            return FAILED, f"{end.first} ended with exit code 0, and wrote no value of {name}; print {metric.describe(name)}"
        if not math.isfinite(end.value):
            return FAILED, f"the value of {name} is {end.value}, and no number"
        return SUCCEEDED, ""

    def _conclude(self, number: int, state: str, message: str, ended: Tuple[End, float, float]) -> None:
        end, now, seconds = ended
        value = end.value if state == SUCCEEDED else end.last if state == PRUNED else None
        if value is not None and not math.isfinite(value):
            value = None
        self._put(self.trials[number]._replace(state=state, value=value, message=message, seconds=seconds))
        self._actions.append(Tell(number, state, value, message, seconds))
        if state == FAILED and self._result is None:
            is_missing = end.result == Finish(0, 0) and end.value is None
            cause = end.cause or Cause(now, TRIALS, message, end.first, lines=end.lines)
            self.last = cause._replace(kind=MISSING if is_missing else TRIALS, message=f"trial {number}: {message}")
        self._judge(now)

    def _judge(self, now: float) -> None:
        """Look whether the attempt has a result."""
        if self._result is not None:
            return
        failed, most = self.counts[FAILED], self.tune["maxFailedTrials"]
        done = len(self.trials) - self.counts[RUNNING]
        if self._has_reached:
            self._result = Finish(0, 0)
        elif failed > most:
            self._fail(f"{failed} trials failed, and maxFailedTrials is {most}", now)
        elif done >= self.most:
            if self.counts[SUCCEEDED]:
                self._result = Finish(0, 0)
            else:
                self._fail(f"none of {done} trials succeeded", now)

    def _fail(self, message: str, now: float) -> None:
        last = self.last if self.last is not None and self.last.kind in (TRIALS, MISSING) else Cause(now, TRIALS, "")
        text = f"{message}; the last was {last.message}" if last.message else message
        self.last = last._replace(message=text, code=1)
        self._result = Finish(1, 0)

    def _watch(self, now: float) -> None:
        """End trials that take too long, and the attempt where no place comes in time."""
        longest = self.tune["trialDeadlineSeconds"]
        for number, child in self.children.items():
            if longest and child.started is not None and now - child.started >= longest and not child.is_stopped:
                self._rule(child, FAILED, f"has not ended {longest} s after its start (trialDeadlineSeconds)")
        bound = self._bounds[self._has_begun]
        if self._result is None and not self.is_stopping and bound and self._idle is not None and now - self._idle >= bound:
            self.last = Cause(now, "Gather", f"no trial has its places after {bound} s")
            self._result = Finish(0, int(signal.SIGUSR2))
        for number, child in self.children.items():
            if child.verdict is not None and not child.is_stopped:
                self._stop(number)

    def _resize(self, now: float) -> None:
        wanted = self.wanted()
        for number in sorted((number for number, child in self.children.items() if child.trial is None), reverse=True):
            if len(self.children) > wanted:
                self._close(number)
        while len(self.children) < wanted and now >= self._not_before:
            self._made += 1  # no number twice, as the rounds of each begin with 1
            self.children[self._made] = _Child()
            self._actions.append(Open(self._made))

    def _trouble(self, child: int, now: float) -> None:
        """Give up a child gang that cannot get places. The attempt ends if no other one has any."""
        self._close(child)
        self._not_before = now + PAUSE_SECONDS
        if self._result is None and not self.is_stopping and not any(child.trial is not None for child in self.children.values()):
            self._result = Finish(0, int(signal.SIGUSR2))

    def _rule(self, child: _Child, state: str, message: str) -> None:
        if child.verdict is None and child.trial is not None:
            child.verdict = state, message

    def _stop(self, number: int) -> None:
        self.children[number].is_stopped = True
        self._actions.append(Stop(number))

    def _close(self, number: int) -> None:
        del self.children[number]
        self._actions.append(Close(number))


def number_text(value: float) -> str:
    """Return a value of the metric as people and other programs read it."""
    return f"{value:.15g}" if float(f"{value:.15g}") == value else repr(value)
