"""Tests of what the trials of a study do next.

HELIOSTAT_HISTORIES is how many random histories are played.
"""

import os
import pathlib
import random
import signal
import sys
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import studies  # noqa: E402  the paths above are where these are
from heliostat_gang import trials  # noqa: E402
from heliostat_gang.rounds import Cause, Finish  # noqa: E402
from heliostat_gang.trials import FAILED, PRUNED, RUNNING, SUCCEEDED, End, Trial  # noqa: E402
from studies import parameter, tune  # noqa: E402

HISTORIES = int(os.environ.get("HELIOSTAT_HISTORIES", "500"))
OK, LOST, TERM = Finish(0, 0), Finish(0, int(signal.SIGUSR2)), Finish(143, 0)


class Job:
    """A job on a cluster that has places for all its child gangs, and what its trials wanted."""

    def __init__(self, tuned, known=(), now=0.0, places=99, **more):
        """Take the object tune, and what the study has."""
        self.now, self.places = now, places
        self.trials = trials.Trials(studies.job(tuned=tuned, **more), known, now)
        self.running, self.waiting, self.stopped, self.told, self.end = {}, set(), [], {}, None
        self.step()

    def step(self, seconds=0.0):
        """Let time pass, and carry out what follows."""
        self.now += seconds
        for _ in range(3):
            for action in self.trials.step(self.now):
                getattr(self, type(action).__name__.lower())(*action)
            for child in sorted(self.waiting):
                if len(self.running) < self.places:
                    self.begin(child)
        return self

    def begin(self, child):
        number = self.trials.begin(child)
        if number is None:
            return
        if number < 0:
            number = len(self.trials.trials)
        assert number not in self.running.values(), f"trial {number} runs twice"
        self.waiting.discard(child)
        self.running[child] = number
        self.trials.began(child, Trial(number, RUNNING, {"x": str(number)}), self.now)
        self.trials.started(child, self.now)

    def open(self, child):
        self.waiting.add(child)

    def close(self, child):
        assert child not in self.running, "a child gang that runs is closed"
        self.waiting.discard(child)

    def next(self, child):
        self.waiting.add(child)

    def stop(self, child):
        self.stopped.append(child)

    def tell(self, number, state, value, message, seconds):
        assert number not in self.told, f"trial {number} is told twice"
        self.told[number] = (state, value, message)

    def finish(self, code, signal_number):
        self.end = (code, signal_number)

    def ends(self, number, value=None, result=OK, last=None, cause=None):
        """End the trial with a number."""
        child = next(child for child, trial in self.running.items() if trial == number)
        del self.running[child]
        self.trials.ended(child, End(result, cause, value, last if last is not None else value, "worker/0", ("bye",)), self.now, 2.0)
        return self.step()

    def fails(self, number, code=1):
        """Fail the trial with a number."""
        cause = Cause(self.now, "Exit", f"ended with exit code {code}", "worker/0", code, "pod-1")
        return self.ends(number, result=Finish(code, 0), cause=cause)

    def all_end(self):
        """End those that were stopped."""
        for number in list(self.running.values()):
            self.ends(number, result=TERM)
        return self

    @property
    def last(self):
        return self.trials.last


def done(number, state=SUCCEEDED, value=1.0):
    """Return a trial that has ended."""
    return Trial(number, state, {"x": "0"}, value if state == SUCCEEDED else None)


class Ends(unittest.TestCase):
    def test_all_trials_run_and_the_best_is_reported(self):
        job = Job(tune())
        self.assertEqual(job.running, {1: 0, 2: 1})
        for number, value in enumerate((0.5, 0.25, 0.25, 0.75)):
            job.ends(number, value)
        self.assertEqual((job.end, job.told[3]), ((0, 0), (SUCCEEDED, 0.75, "")))
        self.assertEqual(job.trials.report(), {
            "trials": 4, "running": 0, "succeeded": 4, "failed": 0, "pruned": 0, "waiting": 0,
            "best": {"trial": 1, "value": "0.25", "parameters": {"x": "1"}},
        })

    def test_the_direction_decides_what_is_best(self):
        job = Job(tune(direction="Maximize", maxTrials=2)).ends(0, 1.0).ends(1, 2.0)
        self.assertEqual(job.trials.best.number, 1)

    def test_a_goal_ends_the_rest(self):
        for direction, goal, value in (("Maximize", "0.95", 0.95), ("Minimize", "0.1", 0.05)):
            job = Job(tune(direction=direction, goal=goal)).ends(0, value)
            self.assertEqual((job.stopped, job.end), ([2], None))
            job.ends(1, last=0.5, result=TERM)
            self.assertEqual((job.end, job.told[1]), ((0, 0), (PRUNED, 0.5, "ended, as another trial has reached the goal")))

    def test_a_goal_that_the_study_has_reached_ends_at_once(self):
        self.assertEqual(Job(tune(goal="1"), [done(0)]).end, (0, 0))

    def test_a_trial_that_stops_early_is_pruned(self):
        job = Job(tune())
        job.trials.prune(1, 3)
        job.step()
        self.assertFalse(job.trials.is_watched(1))
        self.assertEqual(job.stopped, [1])
        job.ends(0, result=TERM, last=0.9)
        self.assertEqual((job.told[0], job.running[1]), ((PRUNED, 0.9, "ended early, at step 3"), 2))

    def test_a_trial_that_takes_too_long_fails(self):
        job = Job(tune(trialDeadlineSeconds=60)).step(59)
        self.assertEqual(job.stopped, [])
        job.step(1)
        self.assertEqual(job.stopped, [1, 2])
        job.ends(0, result=TERM, value=0.5)
        self.assertEqual(job.told[0], (FAILED, None, "has not ended 60 s after its start (trialDeadlineSeconds)"))

    def test_a_value_that_is_no_number_fails(self):
        job = Job(tune()).ends(0, float("nan")).ends(1, float("inf"))
        self.assertEqual([job.told[number][0] for number in (0, 1)], [FAILED, FAILED])

    def test_a_metric_that_is_missing_is_named(self):
        job = Job(tune(maxFailedTrials=0, parallelTrials=1)).ends(0)
        self.assertEqual((job.end, job.last.kind, job.last.lines, job.last.code), ((1, 0), "MetricMissing", ("bye",), 1))
        self.assertIn('print a line with loss=NUMBER, or with "loss": NUMBER', job.last.message)

    def test_more_failures_than_allowed_end_the_attempt(self):
        job = Job(tune(parallelTrials=3)).fails(0).fails(1)
        self.assertEqual((job.end, job.stopped), (None, [1, 3]))
        job.all_end()
        self.assertEqual((job.end, job.last.kind, job.last.pod), ((1, 0), "Trials", "pod-1"))
        self.assertEqual(job.last.message, "2 trials failed, and maxFailedTrials is 1; "
                         "the last was trial 1: worker/0 on pod-1: ended with exit code 1")
        self.assertNotIn(2, job.told)

    def test_a_trial_that_fails_later_does_not_hide_why_the_attempt_failed(self):
        job = Job(tune(parallelTrials=3)).fails(0)
        for child, code in [(2, 3), (3, 7)]:  # in one step
            job.running.pop(child)
            job.trials.ended(child, End(Finish(code, 0), Cause(0.0, "Exit", f"code {code}", code=code), None, None, "worker/0"), job.now)
        self.assertEqual((job.step().all_end().end, job.last.code), ((1, 0), 1))
        self.assertIn("2 trials failed, and maxFailedTrials is 1; the last was trial 1: code 3", job.last.message)

    def test_no_success_is_a_failure(self):
        job = Job(tune(maxTrials=1, parallelTrials=1)).fails(0)
        self.assertEqual((job.end, job.last.message[:28]), ((1, 0), "none of 1 trials succeeded; "))

    def test_a_fourth_loss_fails_the_trial(self):
        job = Job(tune()).ends(0, result=LOST, cause=Cause(0, "Lost", "its node was lost", "worker/0", pod="pod-1"))
        self.assertEqual((job.told[0], job.running[1]), ((FAILED, None, "worker/0 on pod-1: its node was lost"), 2))

    def test_a_grid_ends_with_its_last_combination(self):
        job = Job(tune(algorithm="Grid", parameters=[parameter("o", "Categorical", values=["a", "b"])])).ends(0, 1.0).ends(1, 2.0)
        self.assertEqual(job.end, (0, 0))


class Continues(unittest.TestCase):
    def test_trials_of_a_driver_that_is_gone_run_again_first(self):
        job = Job(tune(), [done(0), Trial(1, RUNNING, {"x": "1"}), done(2, FAILED)])
        self.assertEqual(job.running, {1: 1, 2: 3})
        job.ends(1, 0.5).ends(3, 0.25)
        self.assertEqual((job.end, sorted(job.told)), ((0, 0), [1, 3]))

    def test_failures_of_former_attempts_count(self):
        self.assertEqual(Job(tune(), [done(0, FAILED), done(1, FAILED)]).end, (1, 0))

    def test_a_stop_writes_nothing(self):
        job = Job(tune())
        job.trials.stop()
        job.step()
        self.assertEqual(sorted(job.stopped), [1, 2])
        job.all_end()
        self.assertEqual((job.end, job.told), ((143, 0), {}))

    def test_a_storage_that_was_lost_is_written_no_more(self):
        job = Job(tune())
        job.trials.fail("another driver has taken the storage", 1.0, signal.SIGUSR2)
        job.step().ends(0, 0.5).ends(1, 0.5)
        self.assertEqual((job.end, job.told, job.last.kind), (tuple(LOST), {}, "Study"))

    def test_a_disk_that_is_full_ends_the_attempt_whatever_was_reached(self):
        job = Job(tune(goal="9")).ends(0, 0.5)
        job.trials.fail("No space left on device", 1.0)
        job.step().all_end()
        self.assertEqual((job.end, job.last.message), ((2, 0), "No space left on device"))


class Places(unittest.TestCase):
    def test_as_many_as_fit(self):
        self.assertEqual(len(Job(tune(parallelTrials=4, fits=3)).running), 3)

    def test_one_that_has_no_places_waits_while_others_run(self):
        job = Job(tune(), places=1, firstGatherSeconds=100, gatherSeconds=100).step(1000)
        self.assertEqual((job.trials.report()["waiting"], job.end), (1, None))
        for number in range(4):
            job.ends(number, 0.5)
        self.assertEqual(job.end, (0, 0))

    def test_no_more_child_gangs_than_trials_are_left(self):
        job = Job(tune(maxTrials=3), places=2).ends(0, 0.5)
        self.assertEqual((sorted(job.running.values()), job.waiting), ([1, 2], set()))
        job.ends(1, 0.5)
        self.assertEqual((job.waiting, job.trials.wanted()), (set(), 1))

    def test_the_wait_for_the_first_places_has_its_own_bound(self):
        job = Job(tune(), places=0, firstGatherSeconds=60, gatherSeconds=600).step(60).step()
        self.assertEqual((job.end, job.last.kind), (tuple(LOST), "Gather"))
        self.assertIsNone(Job(tune(), places=0, firstGatherSeconds=0, gatherSeconds=600).step(10_000).end)

    def test_a_later_wait_is_bounded_too(self):
        job = Job(tune(parallelTrials=1), firstGatherSeconds=0, gatherSeconds=600)
        job.places = 0
        job.ends(0, 0.5).step(599)
        self.assertIsNone(job.end)
        self.assertEqual(job.step(1).step().end, tuple(LOST))

    def test_a_child_gang_that_cannot_start_is_tried_again_while_others_run(self):
        job = Job(tune())
        job.ends(0, result=LOST, cause=Cause(0, "Gather", "the agent has not started"))
        self.assertEqual((job.end, job.running, job.told), (None, {2: 1}, {}))
        self.assertEqual(job.step(trials.PAUSE_SECONDS).running, {2: 1, 3: 0})

    def test_the_last_child_gang_that_cannot_start_ends_the_attempt(self):
        job = Job(tune(parallelTrials=1)).ends(0, result=LOST, cause=Cause(0, "Gather", "Ray refuses a place"))
        self.assertEqual((job.end, job.last.message), (tuple(LOST), "Ray refuses a place"))


class Histories(unittest.TestCase):
    def test_every_trial_has_one_end_whatever_happens(self):
        for seed in range(HISTORIES):
            with self.subTest(seed):
                self.play(random.Random(seed))

    def play(self, chance):
        """Run a study by one driver after another, which end at any time."""
        tuned = tune(
            maxTrials=chance.randint(1, 12), parallelTrials=chance.randint(1, 5), maxFailedTrials=chance.randint(0, 6),
            fits=chance.choice([0, 0, 2]), goal=chance.choice(["", "0.02"]), trialDeadlineSeconds=chance.choice([0, 50]),
        )
        known, most = {}, min(tuned["parallelTrials"], tuned["fits"] or 99)
        for attempt in range(60):
            job = Job(tuned, [known[number] for number in sorted(known)], chance.uniform(0, 1e6), chance.randint(0, 4), gatherSeconds=0)
            is_last = attempt > 20
            for _ in range(chance.randint(0, 60)):
                self.disturb(job, chance, is_last)
                self.assertLessEqual(len(job.running), most)
                self.assertLessEqual(len(job.trials.trials), max(tuned["maxTrials"], len(known)))
                if job.end is not None:
                    break
            for number, trial in job.trials.trials.items():
                if number in known and known[number].state != RUNNING:
                    self.assertEqual(trial.state, known[number].state)
                    self.assertNotIn(number, job.told)
                elif number not in job.told:
                    self.assertEqual(trial.state, RUNNING, "a state that is not on the disk")
                known[number] = trial if number in job.told or number not in known else known[number]
            if job.end is not None and job.end in ((0, 0), (1, 0)):
                break
        else:
            self.fail("no end")
        states = [trial.state for trial in known.values()]
        self.assertEqual(sorted(known), list(range(len(known))))
        if job.end == (0, 0):
            self.assertIn(SUCCEEDED, states)
            self.assertTrue(tuned["goal"] or len(states) - states.count(RUNNING) == tuned["maxTrials"])

    @staticmethod
    def disturb(job, chance, is_last):
        """Let something happen."""
        job.step(chance.uniform(0, 20))
        if is_last:
            job.places = 9
        if not job.running or chance.random() < 0.3:
            return
        number = chance.choice(list(job.running.values()))
        child = next(child for child, trial in job.running.items() if trial == number)
        kind = chance.random()
        if child in job.stopped[-9:] and job.trials.children[child].is_stopped:
            job.ends(number, result=TERM, last=chance.choice([None, 0.5]))
        elif kind < 0.6:
            job.ends(number, chance.random())
        elif kind < 0.7:
            job.fails(number)
        elif kind < 0.8:
            job.trials.prune(child, 1)
        elif kind < 0.9:
            job.ends(number, result=LOST, cause=Cause(job.now, chance.choice(["Lost", "Gather", "Drained"]), "gone"))
        else:
            job.places = chance.randint(0, 4)


if __name__ == "__main__":
    unittest.main()
