"""Tests of a study: the contract that Optuna and its stand-in of other tests both keep, and what Optuna alone has.

Those of Optuna run where it is installed, as `make accept` does.
"""

import importlib.util
import os
import pathlib
import statistics
import sys
import tempfile
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import studies  # noqa: E402  the paths above are where these are
from heliostat_gang import storage, study  # noqa: E402
from heliostat_gang.trials import FAILED, PRUNED, RUNNING, SUCCEEDED  # noqa: E402
from studies import parameter, tune  # noqa: E402

HAS_OPTUNA = importlib.util.find_spec("optuna") is not None
PARAMETERS = [
    parameter("x", "Float", "-5", "5"), parameter("lr", "Float", "1e-5", "0.1", scale="Log"),
    parameter("q", "Float", "0", "1", step="0.25"),
    parameter("n", "Int", "1", "9", step="2"), parameter("m", "Int", "1", "64", scale="Log"),
    parameter("size", "Int", values=["16", "32"]), parameter("o", "Categorical", values=["0.10", "b"]),
]


def ignore():
    """Let everything be written."""


class Case(unittest.TestCase):
    """Has a directory."""

    def setUp(self):
        found = tempfile.TemporaryDirectory()
        self.addCleanup(found.cleanup)
        self.path = os.path.join(found.name, "journal.log")
        synced = mock.patch("os.fsync")  # no test ends the machine
        synced.start()
        self.addCleanup(synced.stop)


class Contract:
    """What every study does."""

    def open(self, check=ignore, path="", **more):
        """Open a study."""
        return self.library.Study(tune(**more), self.path if path == "" else path, check)

    def test_a_trial_has_a_value_for_each_parameter(self):
        found = self.open(parameters=PARAMETERS)
        for number in range(5):
            trial = found.draw(1.5, 2)
            self.assertEqual((trial.number, trial.state, trial.started, trial.attempt), (number, RUNNING, 1.5, 2))
            self.assertEqual(list(trial.values), [one["name"] for one in PARAMETERS])
            self.assertIn(trial.values["o"], ("0.10", "b"))

    def test_ends_are_kept(self):
        found = self.open()
        for state, value, message in (
            (SUCCEEDED, 0.5, ""), (FAILED, None, "ended with exit code 1"), (PRUNED, 0.75, "early"), (PRUNED, None, ""),
        ):
            found.tell(found.draw(1.0, 1).number, state, value, message, 2.5)
        found.draw(9.0, 1)
        trials = self.open().trials()
        self.assertEqual([(trial.state, trial.value, trial.message, trial.seconds) for trial in trials], [
            (SUCCEEDED, 0.5, "", 2.5), (FAILED, None, "ended with exit code 1", 2.5), (PRUNED, 0.75, "early", 2.5), (PRUNED, None, "", 2.5),
            (RUNNING, None, "", 0.0),
        ])

    def test_a_trial_that_runs_again_has_its_values(self):
        found = self.open(earlyStopping="Median")
        trial = found.draw(1.0, 1)
        found.report(trial.number, 1, 0.5)
        found = self.open(earlyStopping="Median")
        again = found.resume(trial.number, 7.0, 2)
        self.assertEqual(again, trial._replace(started=7.0, attempt=2))
        self.assertFalse(found.report(again.number, 1, 0.25))
        found.tell(again.number, SUCCEEDED, 0.5, "", 1.0)
        self.assertEqual([(one.state, one.attempt) for one in self.open(earlyStopping="Median").trials()], [(SUCCEEDED, 2)])

    def test_the_same_seed_draws_the_same_also_over_drivers(self):
        def run(path, is_new):
            found, values = None, []
            for number in range(8):
                if found is None or is_new(number):
                    found = self.open(path=path)
                trial = found.draw(1.0, 1)
                values.append(trial.values)
                found.tell(number, SUCCEEDED, float(trial.values["x"]), "", 1.0)
            return values

        self.assertEqual(run(f"{self.path}1", lambda _: False), run(f"{self.path}2", lambda number: number % 3 == 0))

    def test_a_grid_has_each_combination_once(self):
        given = [parameter("n", "Int", "1", "2"), parameter("o", "Categorical", values=["a", "b"])]
        found = self.open(algorithm="Grid", parameters=given)
        values = [tuple(found.draw(1.0, 1).values.values()) for _ in range(4)]
        self.assertEqual(values, [("1", "a"), ("1", "b"), ("2", "a"), ("2", "b")])

    def test_a_grid_has_the_numbers_of_a_range(self):
        found = self.open(algorithm="Grid", parameters=[parameter("n", "Int", "1", "64", step="9", scale="Log")])
        values = []
        for number in range(8):
            trial = found.draw(1.0, 1)
            found.tell(trial.number, SUCCEEDED, 1.0, "", 1.0)
            values.append(trial.values["n"])
        self.assertEqual(values, ["1", "10", "19", "28", "37", "46", "55", "64"])

    def test_a_bad_step_ends_a_trial_early(self):
        found = self.open(earlyStopping="Median")
        for _ in range(6):
            trial = found.draw(1.0, 1)
            self.assertFalse(found.report(trial.number, 1, 0.5))
            found.tell(trial.number, SUCCEEDED, 0.5, "", 1.0)
        trial = found.draw(1.0, 1)
        self.assertTrue(found.report(trial.number, 1, 0.75))

    def test_nothing_is_written_without_the_lock(self):
        def check():
            if is_lost:
                raise storage.LostError("lost")

        is_lost = False
        found = self.open(check=check)
        trial = found.draw(1.0, 1)
        is_lost = True
        for do in (lambda: found.draw(1.0, 1), lambda: found.tell(trial.number, SUCCEEDED, 1.0, "", 1.0)):
            self.assertRaises(storage.LostError, do)
        is_lost = False
        self.assertEqual([one.state for one in self.open().trials()], [RUNNING])

    def test_one_in_memory_keeps_nothing(self):
        self.open(path=None).draw(1.0, 1)
        self.assertEqual(self.open(path=None).trials(), [])


class Fake(Contract, Case):
    """The stand-in of other tests."""

    def setUp(self):
        super().setUp()
        self.library = studies.Disk()


@unittest.skipUnless(HAS_OPTUNA, "Optuna is not installed")
class Optuna(Contract, Case):
    """Optuna itself."""

    library = study

    def loss(self, values):
        """Return the value of a function whose least value is 0, at x = 1 and m = 8."""
        return (float(values["x"]) - 1) ** 2 + abs(int(values["m"]) - 8) / 8 + (values["o"] == "b")

    def search(self, trials=40, is_new=lambda _: False, **more):
        """Run a study, and return all values."""
        path = tempfile.mktemp(dir=os.path.dirname(self.path))
        found, values = None, []
        for number in range(trials):
            if found is None or is_new(number):
                storage.mend_journal(path)
                found = self.open(path=path, parameters=PARAMETERS, **more)
            if is_new(number):  # the driver before has begun it
                found.draw(1.0, 1)
                found = self.open(path=path, parameters=PARAMETERS, **more)
                trial = found.resume(number, 2.0, 2)
            else:
                trial = found.draw(1.0, 1)
            values.append(trial.values)
            found.tell(number, SUCCEEDED, self.loss(trial.values), "", 1.0)
        self.assertEqual([one.number for one in found.trials()], list(range(trials)))
        return values

    def test_each_algorithm_repeats_itself_though_drivers_end_at_each_tenth(self):
        for algorithm, trials in (("TPE", 40), ("Random", 40), ("CMAES", 40), ("QMC", 40), ("GaussianProcess", 16)):
            if all(importlib.util.find_spec(module) for module in study.MODULES.get(algorithm, ())):
                once = self.search(trials, algorithm=algorithm)
                self.assertEqual(once, self.search(trials, algorithm=algorithm, is_new=lambda number: number % 4 == 3), algorithm)

    def test_what_a_thread_draws_is_what_a_draw_has(self):
        def run(path, slow):
            found, values = self.open(path=path, algorithm="TPE", parameters=PARAMETERS), []
            with mock.patch.object(study, "SLOW", slow):
                for _ in range(20):
                    draw = found.propose(-1)
                    self.assertEqual(draw is None, not slow)
                    trial = found.draw(1.0, 1, draw() if draw else None)
                    values.append(trial.values)
                    found.tell(trial.number, SUCCEEDED, self.loss(trial.values), "", 1.0)
            return values

        self.assertEqual(run(f"{self.path}1", ()), run(f"{self.path}2", ("TPE",)))

    def test_a_trial_that_runs_again_needs_no_draw(self):
        found = self.open(algorithm="TPE", parameters=PARAMETERS)
        with mock.patch.object(study, "SLOW", ("TPE",)):
            found.draw(1.0, 1)
            self.assertIsNone(found.propose(0))

    def test_what_an_algorithm_keeps_with_a_trial_is_kept(self):
        found = self.open()
        found.draw(1.0, 1, study.Proposal({"x": 0.25}, {"gp:0": "{}"}))
        frozen = self.open()._study.trials[0]
        self.assertEqual((frozen.params, frozen.system_attrs), ({"x": 0.25}, {"gp:0": "{}"}))

    def test_tpe_beats_random(self):
        best = {
            algorithm: statistics.median(
                min(map(self.loss, self.search(algorithm=algorithm, seed=seed, trials=60))) for seed in range(10)
            )
            for algorithm in ("TPE", "Random")
        }
        print(f"the best of 60 trials, median of 10 seeds: {best}", file=sys.stderr)
        self.assertLess(best["TPE"], best["Random"])

    def test_a_crash_at_any_byte_loses_no_trial_and_has_none_twice(self):
        found = self.open(earlyStopping="Median", parameters=PARAMETERS)
        for number in range(3):
            trial = found.draw(1.0, 1)
            found.report(number, 1, 0.5)
            if number < 2:
                found.tell(number, (SUCCEEDED, FAILED)[number], (0.5, None)[number], "why", 1.0)
        expected = {trial.number: trial for trial in found.trials()}
        whole = pathlib.Path(self.path).read_bytes()
        for size in [*range(0, len(whole), 37), len(whole)]:
            pathlib.Path(self.path).write_bytes(whole[:size])
            storage.mend_journal(self.path)
            found = self.open(earlyStopping="Median", parameters=PARAMETERS)
            for trial in found.trials():
                if trial.state == RUNNING:
                    again = found.resume(trial.number, 1.0, 1)
                    self.assertEqual(list(again.values), [one["name"] for one in PARAMETERS])
                    self.assertLessEqual(set(trial.values.items()), set(again.values.items()))
                    found.tell(trial.number, SUCCEEDED, 0.5, "", 1.0)
                else:
                    self.assertEqual(trial, expected[trial.number])
            while len(found.trials()) < 3:
                found.tell(found.draw(1.0, 1).number, SUCCEEDED, 0.5, "", 1.0)
            storage.mend_journal(self.path)
            self.assertEqual([one.number for one in self.open(earlyStopping="Median", parameters=PARAMETERS).trials()], [0, 1, 2])

    def test_another_study_is_refused_with_the_difference(self):
        self.open().draw(1.0, 1)
        for more, expected in (
            ({"metric": "acc"}, 'metric is "loss" there, and "acc" here'),
            ({"direction": "Maximize"}, 'direction is "Minimize" there, and "Maximize" here'),
            ({"parameters": PARAMETERS}, 'min of parameter x is "0" there, and "-5" here'),
        ):
            with self.assertRaisesRegex(study.StudyError, expected):
                self.open(**more)

    def test_a_journal_of_another_program_is_refused(self):
        import optuna

        journal = optuna.storages.journal.JournalFileBackend(self.path)
        optuna.create_study(storage=optuna.storages.JournalStorage(journal), study_name="mine")
        with self.assertRaisesRegex(study.StudyError, r"has the studies of another program \(mine\)"):
            self.open()
        pathlib.Path(self.path).write_text('{"op_code": 99, "worker_id": "w"}\n')
        with self.assertRaisesRegex(study.StudyError, "cannot read"):
            self.open()

    def test_a_seed_that_is_drawn_is_kept(self):
        first = self.open(seed=None)._seed
        self.assertEqual(self.open(seed=None)._seed, first)
        self.assertNotEqual(self.open(seed=None, path=f"{self.path}2")._seed, first)

    def test_the_lock_of_optuna_that_another_program_left_is_waited_for_by_no_one(self):
        os.symlink(self.path, f"{self.path}.lock")
        self.open().draw(1.0, 1)

    def test_steps_of_a_second_are_written_at_once(self):
        found = self.open(earlyStopping="Median")
        trial = found.draw(1.0, 1)
        with mock.patch("os.fsync") as written:
            for step in range(1, 201):
                found.report(trial.number, step, 0.5)
            self.assertLessEqual(written.call_count, 1)
            found.tell(trial.number, SUCCEEDED, 0.5, "", 1.0)
            self.assertLessEqual(written.call_count, 2)
        self.assertEqual(len(self.open(earlyStopping="Median")._study.trials[0].intermediate_values), 200)

    def test_after_a_write_that_failed_nothing_is_written_again(self):
        found = self.open()
        first, second = found.draw(1.0, 1), found.draw(1.0, 1)
        with mock.patch("os.fsync", side_effect=OSError(28, "No space left on device")):
            self.assertRaises(OSError, found.tell, first.number, SUCCEEDED, 0.5, "", 1.0)
        written = pathlib.Path(self.path).read_bytes()
        self.assertRaises(OSError, found.tell, second.number, SUCCEEDED, 0.25, "", 1.0)  # the disk takes it now
        self.assertEqual(pathlib.Path(self.path).read_bytes(), written)
        lines = written.splitlines()
        self.assertEqual(len(set(lines)), len(lines))
        storage.mend_journal(self.path)
        self.assertEqual([trial.state for trial in self.open().trials()], [SUCCEEDED, RUNNING])

    def test_a_trial_is_drawn_and_ended_by_one_write_each(self):
        found = self.open(parameters=PARAMETERS)
        with mock.patch("os.fsync") as written:
            found.tell(found.draw(1.0, 1).number, SUCCEEDED, 0.5, "", 1.0)
        self.assertEqual(written.call_count, 2)

    def test_a_trial_of_a_large_grid_needs_no_more_of_the_journal(self):
        sizes = []
        for most in ("10", "10000"):
            path = f"{self.path}{most}"
            found = self.open(path=path, algorithm="Grid", parameters=[parameter("n", "Int", "1", most)])
            before = os.path.getsize(path)
            found.tell(found.draw(1.0, 1).number, SUCCEEDED, 0.5, "", 1.0)
            sizes.append(os.path.getsize(path) - before)
        self.assertLess(sizes[1], sizes[0] + 50)

    def test_hyperband_ends_trials(self):
        found = self.open(earlyStopping="Hyperband")
        ended = 0
        for number in range(30):
            trial = found.draw(1.0, 1)
            for step in range(1, 28):
                if found.report(trial.number, step, float(number)):
                    found.tell(number, PRUNED, float(number), "", 1.0)
                    ended += 1
                    break
            else:
                found.tell(number, SUCCEEDED, float(number), "", 1.0)
        self.assertGreater(ended, 5)

    def test_modules_that_are_missing_are_named(self):
        for algorithm, module in (("CMAES", "cmaes"), ("QMC", "scipy"), ("GaussianProcess", "scipy")):
            expected = f"{algorithm} needs the Python module {module}"
            with mock.patch.dict(sys.modules, {module: None}), self.assertRaisesRegex(study.StudyError, expected):
                self.open(algorithm=algorithm)


if __name__ == "__main__":
    unittest.main()
