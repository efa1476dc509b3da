"""Tests of the driver of a job that tunes, without Ray and without Optuna."""

import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import clusters  # noqa: E402  the paths above are where these are
import studies  # noqa: E402
from clusters import event  # noqa: E402
from heliostat_gang import driver, rounds, storage, tune  # noqa: E402
from heliostat_gang.console import Console  # noqa: E402
from heliostat_gang.groups import SPAN  # noqa: E402
from histories import role  # noqa: E402
from studies import job, parameter  # noqa: E402

TUNED = {"parameters": [parameter("x", "Float", "0", "1"), parameter("opt", "Categorical", values=["sgd", "adam"])]}


class Case(unittest.TestCase):
    """Has a tuner whose output goes to files."""

    def setUp(self):
        self.disk = studies.Disk()
        found = tempfile.TemporaryDirectory()
        self.addCleanup(found.cleanup)
        self.directory = found.name
        judged = mock.patch.object(rounds, "JUDGE_SECONDS", 0.0)  # no loss follows on a failure here
        judged.start()
        self.addCleanup(judged.stop)

    def make(self, described, cluster=clusters.Scripted):
        """Return a tuner."""
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.addCleanup(self.out.close)
        self.addCleanup(self.err.close)
        console = Console(True, self.out.fileno(), self.err.fileno())
        self.addCleanup(console.close)
        self.tuner = tune.Tuner(described, cluster, console, self.disk)
        self.cluster = self.tuner.cluster
        return self.tuner

    def read(self, file):
        """Return what was written to a file."""
        file.seek(0)
        return file.read().decode()

    def notes(self):
        """Return the lines of the launcher."""
        return [line[6:] for line in self.read(self.err).splitlines()]

    def report(self):
        """Return the last report."""
        return json.loads(self.tuner.encode())


class Answered(Case):
    """Has trials with agents that a test answers for."""

    def start(self, *roles, tuned=None, **more):
        """Start an attempt."""
        self.make(job(*roles, tuned=studies.tune(**TUNED, **(tuned or {})), **more))
        self.assertTrue(self.tuner.prepare())
        return self.turn()

    def turn(self):
        """Let the tuner do all that is posted."""
        for _ in range(16):
            self.tuner.step()
            while not self.tuner.posted.empty():
                do, arguments = self.tuner.posted.get()
                do(*arguments)
        return self

    def called(self, method):
        """Return the calls of a method."""
        return [(place, arguments) for place, name, arguments in self.cluster.calls if name == method]

    def programs(self):
        """Return what was started, with its place."""
        return [(place, program) for place, (_, programs) in self.called("start") for program in programs]

    def ends(self, child, code=0, output=b"", name="worker/0", lines=()):
        """End a process of a child gang, and what remains of its round."""
        found = self.tuner.children[child]
        number = found.rounds.round
        for seat in found.seats:
            place = child * SPAN + seat.place
            own = [event(name, code, number, lines)] if place == self.place(child, name) else [
                event(f"{seat.role}/{seat.replica}", 143 if code else 0, number)]
            self.cluster.reply(place, output=[(name, output)] if output and place == self.place(child, name) else [], events=own, running=0)
            self.turn()
        return self

    def place(self, child, name="worker/0"):
        """Return the place of a process."""
        wanted = name.split("/")[0], int(name.split("/")[1])
        return next(child * SPAN + seat.place for seat in self.tuner.children[child].seats if (seat.role, seat.replica) == wanted)


class Calls(Answered):
    """Trials of a study that is in memory."""

    def test_trials_run_side_by_side_with_their_own_values(self):
        self.start()
        programs = self.programs()
        self.assertEqual([place // SPAN for place, _ in programs], [1, 2])
        logs = [f"job-driver-s-t{trial}-worker-0-r1.log" for trial in (0, 1)]
        self.assertEqual([program["log"] for _, program in programs], logs)
        for trial, (_, program) in enumerate(programs):
            values = self.tuner.trials.trials[trial].values
            expected = {
                "X": values["x"], "OPT": values["opt"], "HELIOSTAT_TRIAL": str(trial), "HELIOSTAT_GANG": f"u/1/{trial + 1}/1",
            }
            self.assertEqual({name: program["env"][name] for name in expected}, expected)
        self.assertEqual(self.report()["tune"], {
            "trials": 2, "running": 2, "succeeded": 0, "failed": 0, "pruned": 0, "waiting": 0, "best": None, "holder": "",
        })
        self.assertEqual(self.report()["state"], "Running")

    def test_the_next_trial_begins_in_the_places_of_the_one_before(self):
        self.start(role("worker", 2)).ends(1, output=b"loss=0.5\n")
        self.assertEqual(self.cluster.closed, [])
        places = [place for place, program in self.programs() if program["env"]["HELIOSTAT_TRIAL"] in ("0", "2")]
        self.assertEqual(places[:2], places[2:])
        self.assertEqual([arguments[0] for place, arguments in self.called("start") if place == places[0]], [1, 2])
        self.assertEqual(len([1 for place, _ in self.called("reach") if place == places[1]]), 1)
        self.assertEqual(self.report()["tune"]["best"]["value"], "0.5")

    def test_a_trial_waits_for_a_lost_place_as_long_as_the_job_allows(self):
        self.start(tuned={"parallelTrials": 1}, gatherSeconds=600)
        place, clock = self.place(1), mock.Mock(return_value=driver.now())
        self.cluster.open = self.cluster.ask = lambda *_: None  # no place comes
        with mock.patch.object(driver, "now", clock), mock.patch.object(tune, "now", clock):
            self.tuner.children[1].lose(place % SPAN, driver.Failure("its node was lost"))
            for seconds in (60, 500):
                clock.return_value += seconds
                self.assertIsNone(self.turn().tuner.result)
            clock.return_value += 200
            self.turn()
        self.assertEqual(self.tuner.result, (0, int(signal.SIGUSR2)))
        self.assertEqual(self.report()["last"]["kind"], "Gather")

    def test_what_a_trial_waits_for_that_has_lost_its_place_is_named(self):
        self.start(tuned={"parallelTrials": 1}, graceSeconds=0)
        self.cluster.open = self.cluster.ask = lambda *_: None  # no place comes
        with mock.patch.object(rounds, "LEASE_SECONDS", 0.0), mock.patch.object(rounds, "SLACK_SECONDS", 0.0):
            self.tuner.children[1].lose(self.place(1) % SPAN, driver.Failure("its node was lost"))
        self.turn()
        self.tuner.take_group(SPAN + 1, "waiting")
        self.assertEqual(self.report()["waiting"], "trial 0: 1 of 1 × {CPU: 1} missing")

    def test_output_has_the_trial_in_front_and_the_table_at_its_end(self):
        self.start(tuned={"maxTrials": 2})
        self.ends(1, output=b"hello\nloss=0.5").ends(2, output=b"loss=0.25\n")
        self.assertEqual(self.tuner.result, (0, 0))
        self.tuner.leave()
        out = self.read(self.out).splitlines()
        self.assertEqual(out[:4], ["[0] hello", "[0] loss=0.5", "[1] loss=0.25", out[3]])
        self.assertEqual([line.split()[:3] for line in out[3:]], [
            ["trial", "state", "loss"], ["0", "Succeeded", "0.5"], ["1", "Succeeded", "0.25"],
        ])
        self.assertIn("trial 1: succeeded, loss=0.25", self.notes())
        self.assertEqual(json.loads(self.cluster.reports[-1])["state"], "Ended")

    def test_all_output_has_the_process_too(self):
        self.start(role("worker", 2), output="All").ends(1, code=1, output=b"loss=3\n", name="worker/1")
        time.sleep(0.1)
        self.assertEqual(self.read(self.out), "[0 worker/1] loss=3\n")
        self.assertIsNone(self.tuner.children[1].reader.value)

    def test_a_step_that_is_worse_ends_the_trial_within_the_grace(self):
        self.start(tuned={"earlyStopping": "Median", "maxTrials": 3, "parallelTrials": 1}).ends(1, output=b"loss=0.5\n")
        self.cluster.reply(self.place(1), output=[("worker/0", b"loss=0.9\n")])
        self.turn()
        self.assertEqual([arguments for _, arguments in self.called("stop")][-1], (2,))
        self.ends(1, code=143)
        self.assertEqual(self.tuner.trials.report()["pruned"], 1)
        self.assertEqual(self.tuner.trials.trials[1].value, 0.9)
        self.assertEqual(self.tuner.trials.children[1].trial, 2)

    def test_a_trial_that_fails_is_named_with_its_last_lines(self):
        self.start(tuned={"maxFailedTrials": 0, "parallelTrials": 1}).ends(1, code=3, lines=["Traceback", "bad"])
        self.assertEqual(self.tuner.result, (1, 0))
        self.tuner.leave()
        last = self.report()["last"]
        self.assertEqual({name: last[name] for name in ("kind", "process", "pod", "code", "lines")}, {
            "kind": "Trials", "process": "worker/0", "pod": "pod-2", "code": 1, "lines": ["Traceback", "bad"],
        })
        self.assertIn("trial 0: worker/0: bad", self.notes())

    def test_a_missing_metric_has_the_last_lines(self):
        self.start(tuned={"maxFailedTrials": 0, "parallelTrials": 1}).ends(1, output=b"accuracy=3\n", lines=["accuracy=3"])
        last = self.report()["last"]
        self.assertEqual((last["kind"], last["process"], last["lines"]), ("MetricMissing", "worker/0", ["accuracy=3"]))

    def test_a_restart_within_a_trial_reads_the_metric_from_its_beginning(self):
        self.start(tuned={"maxTrials": 1}, maxRestarts=1).ends(1, code=3, output=b"loss=0.1\n")
        self.assertEqual([program["env"]["HELIOSTAT_ROUND"] for _, program in self.programs()], ["100001", "100002"])
        self.ends(1)
        self.assertEqual(self.tuner.trials.counts["Failed"], 1)
        self.assertEqual((self.report()["round"], self.report()["restarts"]), (2, 1))

    def test_a_lost_place_runs_the_trial_again(self):
        self.start(tuned={"maxTrials": 1}, graceSeconds=0)
        place = self.place(1)
        with mock.patch.object(rounds, "LEASE_SECONDS", 0.0), mock.patch.object(rounds, "SLACK_SECONDS", 0.0):
            self.tuner.children[1].lose(place % SPAN, driver.Failure("its node was lost"))
        self.turn()
        self.assertEqual([program["env"]["HELIOSTAT_TRIAL"] for _, program in self.programs()], ["0", "0"])
        self.assertEqual((self.report()["lost"], self.report()["losses"]), (["pod-2"], 0))

    def test_a_trial_may_lose_its_place_three_times_whatever_is_left_of_retry(self):
        self.start(tuned={"maxTrials": 1, "maxFailedTrials": 0}, graceSeconds=0, lossesLeft=0)
        for runs in range(1, 5):
            self.assertEqual([program["env"]["HELIOSTAT_TRIAL"] for _, program in self.programs()], ["0"] * runs)
            with mock.patch.object(rounds, "LEASE_SECONDS", 0.0), mock.patch.object(rounds, "SLACK_SECONDS", 0.0):
                self.tuner.children[1].lose(self.place(1) % SPAN, driver.Failure("its node was lost"))
            with mock.patch.object(rounds, "LONGEST_PAUSE", 0.0):
                self.turn()
        self.assertEqual((len(self.programs()), self.tuner.result, self.report()["tune"]["failed"]), (4, (1, 0), 1))
        self.assertIn("trial 0: worker/0 on pod-5: its node was lost", self.report()["last"]["message"])

    def test_the_job_runs_between_two_trials(self):
        self.start(tuned={"maxTrials": 3, "parallelTrials": 1})
        states = []
        self.tuner.reporter.write = lambda data: states.append(json.loads(data)["state"])
        self.ends(1, output=b"loss=0.5\n").ends(1, output=b"loss=0.5\n")
        self.assertEqual(set(states), {"Running"})

    def test_numbers_of_a_report_have_bounds(self):
        self.start(role("worker", 600))
        self.tuner.past = {"rounds": 10**6, "restarts": 10**6}
        found = self.report()
        self.assertEqual([found[name] for name in ("round", "restarts", "replicas", "ready")], [99_999, 99_998, 1024, 1024])

    def test_a_reference_to_no_parameter_fails_the_trial(self):
        self.start(role("worker", 1, command=["$(tune.y)"]), tuned={"maxFailedTrials": 0, "parallelTrials": 1})
        self.assertEqual((self.called("start"), self.tuner.result), ([], (1, 0)))
        self.assertIn("$(tune.y) names no parameter (opt, trial, x)", self.report()["last"]["message"])

    def test_a_refusal_of_ray_ends_the_attempt(self):
        self.make(job(tuned=studies.tune()))
        self.cluster.ask = lambda *_: self.tuner.post(self.cluster.on_refused, "Ray refuses a place: no such label")
        self.assertTrue(self.tuner.prepare())
        self.turn()
        self.assertEqual(self.tuner.result, (0, int(signal.SIGUSR2)))
        self.assertEqual(self.report()["last"]["message"], "Ray refuses a place: no such label")

    def test_a_drain_is_known_to_gangs_that_start_later(self):
        self.make(job(tuned=studies.tune()))
        self.tuner.take_drain(["node-9"])
        self.assertTrue(self.tuner.prepare())
        self.turn()
        self.assertEqual(self.tuner.children[1].rounds.hand.draining, {"node-9"})

    def test_places_that_are_missing_are_named(self):
        self.make(job(tuned=studies.tune()))
        self.cluster.ask = lambda *_: None
        self.assertTrue(self.tuner.prepare())
        self.turn()
        report = self.report()
        self.assertEqual((report["state"], report["waiting"], report["tune"]["waiting"]), ("Gathering", "1 of 1 × {CPU: 1} missing", 2))


class Slow(Answered):
    """Trials whose values take long to draw."""

    def setUp(self):
        super().setUp()
        self.drawn = threading.Semaphore(0)
        self.addCleanup(self.drawn.release, 9)
        self.disk.wait = lambda: self.drawn.acquire(timeout=30) and None

    def draw(self):
        """Let the values of a trial be drawn."""
        self.drawn.release()
        do, arguments = self.tuner.posted.get(timeout=30)
        do(*arguments)
        return self.turn()

    def values(self):
        """Return the trials that have started, with x."""
        return [(program["env"]["HELIOSTAT_TRIAL"], program["env"]["X"]) for _, program in self.programs()]

    def test_beats_are_answered_while_values_are_drawn(self):
        self.start().draw()
        self.assertEqual(self.values(), [("0", "0.0")])
        beats = len(self.called("exchange"))
        self.cluster.reply(self.place(1))
        self.turn()
        self.assertEqual(len(self.called("exchange")), beats + 1)
        self.assertEqual(self.report()["waiting"], "Random draws the values of a trial")
        self.assertEqual(self.draw().values(), [("0", "0.0"), ("1", "0.1")])

    def test_a_place_that_is_lost_meanwhile_loses_no_values(self):
        self.start(tuned={"parallelTrials": 1}, graceSeconds=0)
        self.tuner.children[1].lose(self.tuner.children[1].seats[0].place, driver.Failure("its node was lost"))
        self.turn()
        self.assertEqual(self.draw().values(), [("0", "0.0")])

    def test_values_may_take_longer_than_a_wait_for_places(self):
        self.start(tuned={"parallelTrials": 1}, firstGatherSeconds=60)
        clock = mock.Mock(return_value=driver.now())
        with mock.patch.object(driver, "now", clock), mock.patch.object(tune, "now", clock):
            for _ in range(20):
                clock.return_value += 10
                self.cluster.open_calls.clear()
                for place in list(self.tuner.children[1].places):
                    self.tuner.children[1].rounds.beat(place, 0, clock.return_value)
                self.turn()
            self.assertIsNone(self.tuner.result)
            self.assertEqual(self.draw().values(), [("0", "0.0")])

    def test_what_cannot_be_drawn_ends_the_attempt(self):
        self.disk.wait = lambda: 1 / 0
        self.start(tuned={"parallelTrials": 1})
        deadline = time.monotonic() + 10
        while self.tuner.result is None and time.monotonic() < deadline:
            self.turn()
        self.assertEqual(self.tuner.result, (2, 0))
        self.assertIn("draw the values of a trial: ZeroDivisionError", self.report()["last"]["message"])


class Storage(Answered):
    """Attempts that have a storage."""

    def start(self, **more):
        return super().start(tuned={"storage": self.directory, **more.pop("tuned", {})}, **more)

    def test_another_attempt_continues(self):
        self.start().ends(1, output=b"loss=0.5\n")
        self.assertEqual(self.tuner.trials.report()["running"], 2)
        self.start(attempt=2)  # the first one was killed
        self.assertEqual([(program["env"]["HELIOSTAT_TRIAL"], program["env"]["HELIOSTAT_GANG"]) for _, program in self.programs()],
                         [("1", "u/2/1/1"), ("2", "u/2/2/1")])
        for child in (1, 2, 1):
            self.ends(child, output=b"loss=0.25\n")
        self.assertEqual((self.tuner.result, self.tuner.trials.report()["succeeded"]), ((0, 0), 4))
        self.tuner.leave()
        with open(os.path.join(self.directory, "trials.csv"), encoding="utf-8") as file:
            self.assertEqual([line.split(",")[1] for line in file], ["state"] + ["Succeeded"] * 4)

    def test_the_lock_is_renewed_while_a_journal_is_read(self):
        def read(path):
            with open(os.path.join(self.directory, "lock.1"), "rb") as file:
                before = json.load(file)["count"]
            time.sleep(0.3)
            with open(os.path.join(self.directory, "lock.1"), "rb") as file:
                self.counts = before, json.load(file)["count"]
            return False

        with mock.patch.object(storage, "BEAT_SECONDS", 0.05), mock.patch.object(storage, "mend_journal", read):
            self.start()
        self.assertGreater(self.counts[1], self.counts[0] + 2)

    def test_a_disk_that_is_full_ends_all(self):
        self.start()
        self.disk.has_failed = True
        self.ends(1, output=b"loss=0.5\n").ends(2, code=143)
        self.assertEqual(self.tuner.result, (2, 0))
        last = self.report()["last"]
        self.assertEqual((last["kind"], last["message"]), ("Study", f"write to the journal of {self.directory}: No space left on device"))

    def test_a_storage_that_another_driver_took_ends_all(self):
        self.start()
        open(os.path.join(self.directory, "lock.9"), "w").close()
        self.tuner.lock._written -= storage.BEAT_SECONDS
        self.turn()
        self.assertEqual(len(self.called("stop")), 2)
        self.ends(1, code=143).ends(2, code=143)
        self.assertEqual(self.tuner.result, (0, int(signal.SIGUSR2)))
        self.assertEqual(self.report()["last"]["message"], "another driver has taken the storage")
        self.assertEqual([trial.state for trial in self.disk.trials[os.path.join(self.directory, "journal.log")].values()], ["Running"] * 2)


class Waits(Case):
    """Attempts whose study cannot begin yet, or ever."""

    def run_with(self, tuned=None, **more):
        """Run an attempt to its end."""
        return self.make(job(tuned=studies.tune(storage=self.directory, **(tuned or {})), **more)).run()

    def test_one_that_waits_for_the_storage_says_for_which_job(self):
        other = storage.Lock(self.directory, {"job": "other", "uid": "o", "attempt": 3})
        other.take(driver.now())
        with mock.patch.object(storage, "LOOK_SECONDS", 0.2):
            self.assertEqual(self.run_with(firstGatherSeconds=1), (0, int(signal.SIGUSR2)))
        report = json.loads(self.cluster.reports[0])
        self.assertEqual((report["state"], report["tune"]["holder"], report["waiting"]),
                         ("Gathering", "job other (attempt 3)", f"job other (attempt 3) has storage {self.directory}"))
        self.assertEqual(self.report()["last"]["kind"], "Gather")

    def test_a_grid_that_is_too_large_leaves_the_storage_alone(self):
        tuned = {"algorithm": "Grid", "parameters": [studies.parameter("n", "Int", "0", "1000000000")]}
        self.assertEqual(self.run_with(tuned), (2, 0))
        self.assertEqual((os.listdir(self.directory), self.disk.trials), ([], {}))

    def test_a_lock_that_is_lost_while_the_study_opens_is_a_loss(self):
        with mock.patch.object(self.disk, "Study", side_effect=storage.LostError("another driver has taken the storage")):
            self.assertEqual(self.run_with(), (0, int(signal.SIGUSR2)))
        self.assertEqual(self.report()["last"]["kind"], "Gather")

    def test_a_stop_ends_the_wait(self):
        storage.Lock(self.directory, {"job": "other", "uid": "o", "attempt": 3}).take(driver.now())
        threading.Timer(0.5, lambda: self.tuner.post(self.tuner.take_stop)).start()
        self.assertEqual(self.run_with(), (143, 0))

    def test_one_that_is_released_is_taken(self):
        other = storage.Lock(self.directory, {"job": "other", "uid": "o", "attempt": 3})
        other.take(driver.now())
        self.disk.trials[os.path.join(self.directory, "journal.log")] = {
            number: studies.Trial(number, "Succeeded", {"x": "1"}, 1.0) for number in range(4)}
        threading.Timer(0.3, lambda: other.release(driver.now())).start()
        with mock.patch.object(storage, "LOOK_SECONDS", 0.1):
            self.assertEqual(self.run_with(), (0, 0))
        self.assertEqual(self.notes()[1:], ["continues with 4 trials"])
        self.assertEqual(storage.Lock(self.directory, {"job": "third", "uid": "t", "attempt": 1}).take(0), None)

    def test_a_storage_that_is_a_file_is_named(self):
        self.directory = os.path.join(self.directory, "file")
        open(self.directory, "w").close()
        self.assertEqual(self.run_with(), (2, 0))
        self.assertEqual(self.report()["last"]["kind"], "Study")
        self.assertIn("cannot be written", self.report()["last"]["message"])

    def test_a_grid_that_is_too_large_is_named(self):
        self.assertEqual(self.run_with({"algorithm": "Grid", "parameters": [parameter("n", "Int", "0", "99999")]}), (2, 0))
        self.assertIn("the grid has more than 10000 values of n", self.report()["last"]["message"])

    def test_a_study_that_cannot_be_opened_is_named(self):
        self.disk.Study = lambda *_: 1 / 0
        self.assertEqual(self.run_with(), (2, 0))
        self.assertIn("open the study: ZeroDivisionError", self.report()["last"]["message"])

    def test_optuna_that_is_missing_is_named(self):
        from heliostat_gang import study

        with mock.patch.dict(sys.modules, {"optuna": None}):
            self.disk = study
            self.assertEqual(self.run_with(), (2, 0))
        self.assertIn("algorithm Random needs the Python module optuna", self.report()["last"]["message"])


class Programs(Case):
    """Trials whose programs run on this machine."""

    CODE = "import os; x = float(os.environ['X']); print('loss=%r' % x, flush=True)"

    def run_trials(self, code=CODE, tuned=None, cluster=clusters.Local, **more):
        """Run trials of Python programs, and return how the driver ended."""
        command = [sys.executable, "-c", code]
        uid = f"test-{os.getpid()}-{self.id()}"
        described = job(role("worker", 1, command=command), tuned=studies.tune(**(tuned or {})), uid=uid, **more)
        self.make(described, cluster)
        self.addCleanup(self.cluster.shut_down)
        return self.tuner.run()

    def test_all_trials_run(self):
        self.assertEqual(self.run_trials(), (0, 0))
        found = self.tuner.trials.trials
        self.assertEqual([trial.value for trial in found.values()], [float(trial.values["x"]) for trial in found.values()])
        self.assertEqual(self.tuner.trials.best.value, min(trial.value for trial in found.values()))

    def test_a_trial_in_a_warm_place_begins_within_a_second(self):
        code = "import os, time; print('loss=1'); print('at', time.time())"
        self.run_trials(code, {"maxTrials": 6, "parallelTrials": 1})
        starts = [float(line.split()[-1]) for line in self.read(self.out).splitlines() if " at " in line]
        gaps = sorted(after - before for before, after in zip(starts, starts[1:]))
        self.assertLess(gaps[len(gaps) // 2], 1.0)
        print(f"a trial takes {gaps[len(gaps) // 2]:.2f} s with its program", file=sys.stderr)

    def test_a_pruned_trial_is_gone_within_its_grace(self):
        code = (
            "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
            "print('loss=%d' % (0 if os.environ['HELIOSTAT_TRIAL'] == '0' else 9), flush=True)\n"
            "time.sleep(0 if os.environ['HELIOSTAT_TRIAL'] == '0' else 60)"
        )
        begin = time.monotonic()
        self.assertEqual(self.run_trials(code, {"earlyStopping": "Median", "maxTrials": 2, "parallelTrials": 1}, graceSeconds=2), (0, 0))
        self.assertLess(time.monotonic() - begin, 2 + 5 + 5)
        self.assertEqual(self.tuner.trials.trials[1].state, "Pruned")

    def test_a_stop_leaves_trials_for_the_next_attempt(self):
        threading.Timer(2.0, lambda: self.tuner.post(self.tuner.take_stop)).start()
        tuned = {"storage": self.directory, "maxTrials": 2}
        self.assertEqual(self.run_trials("import time; print('up', flush=True); time.sleep(60)", tuned), (143, 0))
        self.assertEqual(self.run_trials(self.CODE, tuned, attempt=2), (0, 0))
        self.assertEqual([trial.attempt for trial in self.tuner.trials.trials.values()], [2, 2])


if __name__ == "__main__":
    unittest.main()
