"""Tests of the driver of a job that tunes with Optuna itself, in processes that are killed. They run where Optuna is installed."""

import contextlib
import csv
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import studies  # noqa: E402  the paths above are where these are
from histories import role  # noqa: E402
from studies import parameter  # noqa: E402

# What a driver is without Ray: its agents are in the same process.
DRIVER = """
import json, os, sys
sys.path[:0] = [{launcher!r}, {launcher!r} + "/tests"]
import clusters
from heliostat_gang import tune
from heliostat_gang.console import Console
result = tune.Tuner(json.loads(sys.argv[1]), clusters.Local, Console(True)).run()
os._exit(result.code)
"""
PROGRAM = (
    "import os, time; x = float(os.environ['X'])\n"
    "for step in range(3): print('loss=%r' % ((x - 1) ** 2 + 3 - step), flush=True)\n"
    "time.sleep(0.1)\n"
    "open(os.environ['RUNS'], 'a').write('%s %s\\n' % (os.environ['HELIOSTAT_TRIAL'], os.environ['X']))\n"
)


@unittest.skipUnless(importlib.util.find_spec("optuna"), "Optuna is not installed")
class Kills(unittest.TestCase):
    def setUp(self):
        found = tempfile.TemporaryDirectory()
        self.addCleanup(found.cleanup)
        self.directory = found.name
        self.attempt = 0

    def start(self, most=40, **more):
        """Start a driver of another attempt."""
        self.attempt += 1
        tuned = studies.tune(
            parameters=[parameter("x", "Float", "-5", "5")], storage=os.path.join(self.directory, "s"), maxTrials=most, algorithm="TPE",
            maxFailedTrials=most, **more,
        )
        described = studies.job(
            role("worker", 1, command=[sys.executable, "-c", PROGRAM], env=[{"name": "RUNS", "value": self.path("runs")}]),
            tuned=tuned, uid=f"test-{os.getpid()}-{self.id()}", attempt=self.attempt, graceSeconds=1,
        )
        code = DRIVER.format(launcher=str(LAUNCHER))
        with open(self.path("output"), "ab") as output:
            return subprocess.Popen([sys.executable, "-B", "-c", code, json.dumps(described)], stdout=output, stderr=subprocess.STDOUT)

    def finish(self, driver):
        """Wait for a driver that succeeds."""
        self.assertEqual(driver.wait(300), 0, pathlib.Path(self.path("output")).read_text()[-4000:])

    def path(self, name):
        return os.path.join(self.directory, name)

    def table(self):
        """Return the trials of the table."""
        with open(self.path("s/trials.csv"), encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def runs(self):
        """Return the numbers and values of trials that ran, in their order."""
        with contextlib.suppress(FileNotFoundError):
            return [line.split() for line in pathlib.Path(self.path("runs")).read_text().splitlines()]
        return []

    def ran(self):
        """Return how many trials ran."""
        return len({number for number, _ in self.runs()})

    def test_a_driver_killed_at_each_tenth_has_each_trial_once(self):
        most = 40
        for tenth in range(1, 10):
            driver = self.start(most, parallelTrials=3)
            until = time.monotonic() + 120
            while self.ran() < most * tenth // 10 and driver.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            self.assertIsNone(driver.poll(), "it ends by itself")
            driver.kill()
            driver.wait()
        self.finish(self.start(most, parallelTrials=3))
        trials = self.table()
        self.assertEqual([trial["trial"] for trial in trials], [str(number) for number in range(most)])
        self.assertEqual({trial["state"] for trial in trials}, {"Succeeded"})
        ran = {}
        for number, value in self.runs():
            self.assertEqual(ran.setdefault(number, value), value, f"trial {number} ran with other values")
        self.assertEqual(sorted(ran, key=int), [trial["trial"] for trial in trials])

    def test_the_same_seed_gives_the_same_trials_twice(self):
        found = []
        for name in ("a", "b"):
            self.attempt, before = 0, self.directory
            self.directory = os.path.join(before, name)
            os.mkdir(self.directory)
            self.finish(self.start(12, parallelTrials=1, earlyStopping="Median"))
            found.append([(trial["state"], trial["loss"], trial["x"]) for trial in self.table()])
            self.directory = before
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    unittest.main()
