"""A study that needs no Optuna, with its disk, and descriptions of jobs that tune."""

import random

from heliostat_gang import parameters
from heliostat_gang.trials import FAILED, RUNNING, Trial
from histories import description, role


def tune(**more):
    """Return the object tune of a description."""
    found = {
        "metric": "loss", "direction": "Minimize", "value": "Last", "goal": "", "algorithm": "Random", "earlyStopping": "None", "seed": 7,
        "storage": "", "maxTrials": 4, "parallelTrials": 2, "maxFailedTrials": 1, "trialDeadlineSeconds": 0, "fits": 0,
        "parameters": [parameter("x", "Float", "0", "1")],
    }
    return {**found, **more}


def parameter(name, kind="Float", least="", most="", **more):
    """Return a parameter."""
    return {"name": name, "type": kind, "min": least, "max": most, "step": "", "scale": "Linear", "values": [], **more}


def job(*roles, tuned=None, **more):
    """Return the description of a job that tunes."""
    roles = roles or (role("worker", 1),)
    return description(*roles, tune=tuned or tune(), **{"lossesLeft": 3, "maxRestarts": 0, **more})


class Disk:
    """What is left of studies when their drivers end, by path."""

    def __init__(self):
        """Have nothing."""
        self.trials = {}
        self.has_failed = False  # nothing can be written
        self.wait = None  # what a draw waits for in a thread of its own

    def find_optuna(self, tuned):
        """Do nothing: nothing is needed."""

    def Study(self, tuned, path, check):  # noqa: N802  it stands for a class
        """Open a study."""
        return Study(self, tuned, path, check)


class Study:
    """Draws at random, and ends a trial early whose step is above that of all that have succeeded."""

    def __init__(self, disk, tuned, path, check):
        """Open a study."""
        self.disk, self.tuned, self.check = disk, tuned, check
        self.kept = disk.trials.setdefault(path, {}) if path else {}
        self.steps = {}

    def trials(self):
        """Return all trials."""
        return [self.kept[number] for number in sorted(self.kept)]

    def propose(self, number):
        """Return what draws values, where that takes long."""
        return None if self.disk.wait is None else lambda: self.disk.wait() or {"x": f"0.{len(self.kept)}"}

    def draw(self, started, attempt, proposal=None):
        """Begin a trial with new values."""
        number = len(self.kept)
        chance = random.Random(f"{self.tuned['seed']}/{number}")
        if self.tuned["algorithm"] == "Grid":
            values = parameters.combination(self.tuned, number)
        else:
            given = {one["name"]: one["values"] for one in self.tuned["parameters"]}
            values = {name: chance.choice(texts) if texts else repr(chance.random()) for name, texts in given.items()}
            values.update(proposal or {})
        return self.write(Trial(number, RUNNING, values, started=started, attempt=attempt))

    def resume(self, number, started, attempt, proposal=None):
        """Begin a trial again."""
        assert self.kept[number].state == RUNNING
        return self.write(self.kept[number]._replace(started=started, attempt=attempt))

    def report(self, number, step, value):
        """Take a step."""
        if self.tuned["earlyStopping"] == "None":
            return False
        self.steps.setdefault(number, []).append(value)
        return value > max((trial.value for trial in self.kept.values() if trial.state == "Succeeded"), default=float("inf"))

    def tell(self, number, state, value, message, seconds):
        """Write an end."""
        assert self.kept[number].state == RUNNING, f"trial {number} ends twice"
        assert (value is None) == (state == FAILED) or state == "Pruned"
        self.write(self.kept[number]._replace(state=state, value=value, message=message, seconds=seconds))

    def write(self, trial):
        """Write a trial."""
        self.check()
        if self.disk.has_failed:
            raise OSError(28, "No space left on device")
        self.kept[trial.number] = trial
        return trial
