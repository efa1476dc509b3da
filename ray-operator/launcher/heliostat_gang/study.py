"""The study of a job, which Optuna keeps in a journal: draws values, takes steps and results.

In: the object tune of the description, the path of a journal, and what raises where the journal is another driver's. Out: trials.

It is the only file that imports Optuna, which comes from the image or from the runtime environment. Each call that writes returns when
the disk has it.
"""

import hashlib
import importlib
import json
import os
import random
import time
import warnings
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from . import parameters
from .trials import FAILED, PRUNED, RUNNING, SUCCEEDED, Trial

NAME = ATTRIBUTE = "heliostat"
# What algorithms need beside Optuna.
MODULES = {"CMAES": ("cmaes",), "QMC": ("scipy",), "GaussianProcess": ("scipy", "torch")}
# Algorithms that draw the values of one trial for seconds, and longer with each trial before it.
SLOW = ("GaussianProcess",)
FIRST_MAJOR = 4
# Steps of a trial that enter the journal, and for how long they may wait for the disk: a program may print hundreds a second.
STEPS, STEP_SECONDS = 1000, 1.0


class StudyError(Exception):
    """A study that cannot begin. Its text is for the user."""


def find_optuna(tune: Mapping[str, Any]) -> Any:
    """Return Optuna, after all modules that the algorithm needs could be imported."""
    for name in ("optuna", *MODULES.get(tune["algorithm"], ())):
        try:
            importlib.import_module(name)
        except ImportError as error:
            why = "" if isinstance(error, ModuleNotFoundError) and error.name == name else f" ({error})"
            raise StudyError(
                f"algorithm {tune['algorithm']} needs the Python module {name}, which the image does not have for Ray's Python{why}; "
                "add it to the image, or to runtimeEnv.pip"
            ) from None
    optuna = importlib.import_module("optuna")
    if int(optuna.__version__.split(".")[0]) < FIRST_MAJOR:
        raise StudyError(f"Optuna {optuna.__version__} is too old; take {FIRST_MAJOR}.0 or later")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    return optuna


class Proposal(NamedTuple):
    """Values that were drawn for a trial."""

    values: Mapping[str, Any]  # as Optuna has them
    attributes: Mapping[str, Any]  # what the algorithm keeps with the trial


class Study:
    """The trials of a storage. One driver has it at a time."""

    def __init__(self, tune: Mapping[str, Any], path: Optional[str], check: Callable[[], None]) -> None:
        """Open the journal at a path, or without one a study in memory. check is called before each write, and may raise."""
        self._optuna = optuna = find_optuna(tune)
        self._tune = tune
        self._journal: Any = None  # none in memory
        if path is None:
            storage = optuna.storages.InMemoryStorage()
        else:
            storage = self._read_journal(path, check)
        names = optuna.study.get_all_study_names(storage)
        if names not in ([], [NAME]):
            raise StudyError(f"{path} has the studies of another program ({', '.join(names)}); give another storage")
        direction = tune["direction"].lower()
        self._study = optuna.create_study(storage=storage, study_name=NAME, direction=direction, load_if_exists=True, pruner=self._pruner())
        former = self._study.user_attrs.get(ATTRIBUTE)
        if former is None and self._study.trials:
            raise StudyError(f"{path} has trials of another program; give another storage")
        if former is None:
            former = parameters.common(tune)
            if former["seed"] is None:
                former["seed"] = random.SystemRandom().randrange(1 << 31)
            self._study.set_user_attr(ATTRIBUTE, former)
        problem = parameters.difference(former, tune)
        if problem:
            where = os.path.dirname(path or "")
            raise StudyError(f"storage {where} has another study: {problem}; restore that, or give another storage")
        self._seed: int = former["seed"]
        self._distributions = {one["name"]: self._distribution(one) for one in tune["parameters"]}
        self._running: Dict[int, Any] = {}
        self._flush()

    def trials(self) -> List[Trial]:
        """Return all trials, in the order of their numbers."""
        return [self._convert(trial) for trial in self._study.get_trials(deepcopy=False)]

    def propose(self, number: int) -> Optional[Callable[[], Proposal]]:
        """Return what draws the values of a trial in any thread, or None where draw and resume need no time for that.

        A negative number is a new trial. What is returned works on a copy of the trials that are there now.
        """
        known = self._study.get_trials(deepcopy=False)
        if self._tune["algorithm"] not in SLOW or 0 <= number and len(known[number].params) == len(self._distributions):
            return None
        before = known if number < 0 else known[:number]
        make = {"study_name": NAME, "direction": self._study.direction, "sampler": self._sampler(len(before)), "pruner": self._pruner()}

        def draw() -> Proposal:
            copy = self._optuna.create_study(**make)
            copy.add_trials(before)
            self._values(copy.ask())
            drawn = copy.get_trials(deepcopy=False)[-1]
            return Proposal(drawn.params, drawn.system_attrs)

        return draw

    def draw(self, started: float, attempt: int, proposal: Optional[Proposal] = None) -> Trial:
        """Begin a trial with new values: those of a proposal, if there is one."""
        self._study.sampler = self._sampler(len(self._study.get_trials(deepcopy=False)), proposal)
        return self._begin(self._study.ask(), started, attempt, proposal)

    def resume(self, number: int, started: float, attempt: int, proposal: Optional[Proposal] = None) -> Trial:
        """Begin again a trial that another driver has begun, with its values. Those that it has not are of a proposal, or are drawn."""
        self._study.sampler = self._sampler(number, proposal)
        frozen = self._study.get_trials(deepcopy=False)[number]
        return self._begin(self._optuna.trial.Trial(self._study, frozen._trial_id), started, attempt, proposal)

    def report(self, number: int, step: int, value: float) -> bool:
        """Take the value of a step, and return whether the trial has to end early. Values of former drivers stay."""
        trial = self._running[number]
        if self._tune["earlyStopping"] == "None" or step > STEPS:
            return False
        frozen = self._study.get_trials(deepcopy=False)[number]
        if step in frozen.intermediate_values:
            return False
        trial.report(value, step)
        if self._journal is not None and time.monotonic() - self._journal.written >= STEP_SECONDS:
            self._flush()
        return bool(trial.should_prune())

    def tell(self, number: int, state: str, value: Optional[float], message: str, seconds: float) -> None:
        """Write what a trial has come to."""
        trial = self._running.pop(number)
        trial.set_user_attr("end", {"seconds": round(seconds, 1), "message": message, "value": value})
        states = self._optuna.trial.TrialState
        state = {SUCCEEDED: states.COMPLETE, PRUNED: states.PRUNED, FAILED: states.FAIL}[state]
        self._study.tell(trial, value if state == states.COMPLETE else None, state=state)
        self._flush()

    def _flush(self) -> None:
        if self._journal is not None:
            self._journal.flush()

    def _read_journal(self, path: str, check: Callable[[], None]) -> Any:
        journal = importlib.import_module("optuna.storages.journal")
        try:
            self._journal = _make_journal(journal, path, check)
            return self._optuna.storages.JournalStorage(self._journal)
        except (KeyError, ValueError, TypeError, AttributeError, AssertionError) as error:
            version = self._optuna.__version__
            raise StudyError(
                f"Optuna {version} cannot read {path}: {error!r}; take the version that wrote it, or give another storage"
            ) from None

    def _begin(self, trial: Any, started: float, attempt: int, proposal: Optional[Proposal]) -> Trial:
        trial.set_user_attr("start", {"started": started, "attempt": attempt})
        for key, value in proposal.attributes.items() if proposal else ():  # with which an algorithm finds trials that run
            self._study._storage.set_trial_system_attr(trial._trial_id, key, value)
        values = self._values(trial)
        self._flush()
        self._running[trial.number] = trial
        return Trial(trial.number, RUNNING, values, started=started, attempt=attempt)

    def _values(self, trial: Any) -> Dict[str, str]:
        """Return the values of a trial. Those that it has not are drawn."""
        found: Dict[str, Any] = {}
        for name, one in self._distributions.items():
            if isinstance(one, self._optuna.distributions.CategoricalDistribution):
                found[name] = trial.suggest_categorical(name, one.choices)
            elif isinstance(one, self._optuna.distributions.IntDistribution):
                found[name] = trial.suggest_int(name, one.low, one.high, step=one.step, log=one.log)
            else:
                found[name] = trial.suggest_float(name, one.low, one.high, step=one.step, log=one.log)
        return dict(zip(found, parameters.texts(list(found.values()))))

    def _convert(self, frozen: Any) -> Trial:
        states = self._optuna.trial.TrialState
        state = {states.COMPLETE: SUCCEEDED, states.PRUNED: PRUNED, states.FAIL: FAILED}.get(frozen.state, RUNNING)
        start, end = frozen.user_attrs.get("start", {}), frozen.user_attrs.get("end", {})
        is_over = state != RUNNING
        return Trial(
            frozen.number, state, dict(zip(frozen.params, parameters.texts(list(frozen.params.values())))),
            end.get("value") if is_over else None, start.get("started", 0.0), end.get("seconds", 0.0) if is_over else 0.0,
            start.get("attempt", 0), end.get("message", "") if is_over else "",
        )

    def _distribution(self, one: Mapping[str, Any]) -> Any:
        make = self._optuna.distributions
        if one["values"]:
            return make.CategoricalDistribution(list(one["values"]))
        # Each trial has the distribution in the journal: a list of all numbers of a grid would make it grow with their square.
        is_log = one["scale"] == "Log" and self._tune["algorithm"] != "Grid"
        if one["type"] == "Int":
            return make.IntDistribution(int(one["min"]), int(one["max"]), log=is_log, step=int(one["step"] or 1))
        return make.FloatDistribution(float(one["min"]), float(one["max"]), log=is_log, step=float(one["step"]) if one["step"] else None)

    def _value(self, name: str, text: str) -> Any:
        """Return a value of a grid as Optuna has it."""
        return int(text) if isinstance(self._distributions[name], self._optuna.distributions.IntDistribution) else text

    def _sampler(self, number: int, proposal: Optional[Proposal] = None) -> Any:
        """Return what draws the values of a trial: they follow from the seed, its number, and the results before it."""
        make, algorithm = self._optuna.samplers, self._tune["algorithm"]
        digest = hashlib.sha256(f"{self._seed}/{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big") >> 1
        if proposal is not None:
            return make.PartialFixedSampler(dict(proposal.values), make.RandomSampler(seed=seed))
        if algorithm == "Grid":
            fixed = {name: self._value(name, text) for name, text in parameters.combination(self._tune, number).items()}
            return make.PartialFixedSampler(fixed, make.RandomSampler(seed=seed))
        if algorithm == "TPE":
            return make.TPESampler(seed=seed, constant_liar=True)
        if algorithm == "CMAES":
            return make.CmaEsSampler(seed=seed, warn_independent_sampling=False)
        if algorithm == "QMC":  # its points are one sequence, so that all trials have its seed
            return make.QMCSampler(
                scramble=True, seed=self._seed, independent_sampler=make.RandomSampler(seed=seed), warn_independent_sampling=False
            )
        if algorithm == "GaussianProcess":
            return make.GPSampler(seed=seed)
        return make.RandomSampler(seed=seed)

    def _pruner(self) -> Any:
        make = self._optuna.pruners
        return {"None": make.NopPruner, "Median": make.MedianPruner, "Hyperband": make.HyperbandPruner}[self._tune["earlyStopping"]]()


def _make_journal(library: Any, path: str, check: Callable[[], None]) -> Any:
    """Return a journal at a path. It writes when it is flushed, and calls check before that, which may raise.

    After a write that failed it writes nothing more: a part may be there, and no line must stand twice or behind a broken one.
    """

    class Journal(library.JournalFileBackend):  # type: ignore[misc]  # the library is imported late
        """Has one writer, which the lock of the storage ensures: so it reads the file once, and later what it was given itself."""

        def __init__(self) -> None:
            super().__init__(path)
            self.written = time.monotonic()
            self._lines: List[bytes] = []  # that wait for the disk
            self._fresh: List[Dict[str, Any]] = []  # that Optuna has not read back
            self._is_read = False
            self._failure: Optional[Exception] = None

        def read_logs(self, log_number_from: int) -> Any:
            if not self._is_read:
                self._is_read = True
                return super().read_logs(log_number_from)
            fresh, self._fresh = self._fresh, []
            return fresh

        def append_logs(self, logs: List[Dict[str, Any]]) -> None:
            for log in logs:
                line = json.dumps(log, separators=(",", ":"))
                self._lines.append(line.encode() + b"\n")
                self._fresh.append(json.loads(line))

        def flush(self) -> None:
            """Write what waits, and return when the disk has it."""
            if self._failure is not None:
                raise self._failure
            if not self._lines:
                return
            try:
                check()
                with open(path, "ab") as file:
                    file.write(b"".join(self._lines))
                    file.flush()
                    os.fsync(file.fileno())
            except Exception as error:  # of the disk, or of the lock
                self._failure = error
                raise
            self._lines, self.written = [], time.monotonic()

    return Journal()
