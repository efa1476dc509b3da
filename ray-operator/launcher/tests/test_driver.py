"""Tests of what the driver calls, writes and reports, without Ray.

HELIOSTAT_AGENTS is how many agents the driver has in the test of what it costs; `make accept` has 1,024.
"""

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
from clusters import event  # noqa: E402
from heliostat_gang import driver, rounds  # noqa: E402
from heliostat_gang.console import Console  # noqa: E402
from histories import description, role  # noqa: E402

AGENTS = int(os.environ.get("HELIOSTAT_AGENTS", "128"))
LOST = int(signal.SIGUSR2)


class Case(unittest.TestCase):
    """Has a driver whose output goes to files."""

    def make(self, gang, cluster=clusters.Scripted):
        """Return a driver."""
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.addCleanup(self.out.close)
        self.addCleanup(self.err.close)
        console = Console(gang["output"] == "All", self.out.fileno(), self.err.fileno())
        self.addCleanup(console.close)  # before the files, whose descriptors the next test may get
        self.driver = driver.Driver(gang, cluster, console)
        self.cluster = self.driver.cluster
        return self.driver

    def read(self, file):
        """Return what was written to a file."""
        file.seek(0)
        return file.read().decode()


class Calls(Case):
    """A gang of two with agents that a test answers for."""

    def start(self, *roles, **more):
        """Start a gang."""
        self.make(description(*(roles or [role("worker", 2)]), **more))
        self.turn()
        self.first, self.second = (seat.place for seat in self.driver.seats[:2])

    def turn(self):
        """Let the driver do all that is posted."""
        for _ in range(12):
            self.driver.step()
            while not self.driver.posted.empty():
                do, arguments = self.driver.posted.get()
                do(*arguments)

    def end(self):
        """Let the driver end, and return the last report."""
        self.driver.leave()
        return json.loads(self.cluster.reports[-1])

    def called(self, method):
        """Return the calls of a method."""
        return [(place, arguments) for place, name, arguments in self.cluster.calls if name == method]

    def test_a_round_is_prepared_before_it_starts(self):
        self.start()
        order = [method for _, method, _ in self.cluster.calls if method != "exchange"]
        self.assertEqual(order, ["sweep", "sweep", "reserve", "listen", "reach", "start", "start"])
        self.assertEqual(self.called("reach"), [(self.second, (f"10.0.0.{self.first}", 20000, driver.REACH_SECONDS))])
        [(_, (number, [program])), _] = self.called("start")
        self.assertEqual((number, program["name"], program["stream"]), (1, "worker/0", True))
        self.assertEqual(program["log"], "job-driver-s-worker-0-r1.log")
        self.assertEqual([programs[0]["stream"] for _, (_, programs) in self.called("start")], [True, False])

    def test_a_restart_uses_other_ports_and_checks_no_place_twice(self):
        self.start(maxRestarts=1)
        self.cluster.reply(self.second, events=[event("worker/1", 3)], running=0)
        self.turn()
        self.cluster.reply(self.first, events=[event("worker/0", 143)], running=0)
        self.turn()
        self.assertEqual([arguments for _, arguments in self.called("reserve")], [(1, []), (1, [20000])])
        self.assertEqual((len(self.called("reach")), len(self.called("start"))), (1, 4))

    def test_beats_are_answered_by_number(self):
        self.start()
        self.cluster.reply(self.first)
        self.turn()
        self.cluster.reply(self.first)
        self.turn()
        self.assertEqual([arguments for place, arguments in self.called("exchange") if place == self.first], [(0, True), (1, True), (2, True)])

    def test_a_place_that_was_given_up_is_called_no_more(self):
        self.start(lossesLeft=0, graceSeconds=0)
        self.cluster.reply(self.second)
        self.driver.lose(self.second, driver.Failure("gone"))
        self.turn()
        count = len([1 for place, _, _ in self.cluster.calls if place == self.second])
        self.turn()
        self.assertEqual(len([1 for place, _, _ in self.cluster.calls if place == self.second]), count)
        self.assertIn(self.second, self.cluster.closed)

    def test_a_first_place_that_is_lost_ends_the_preparation(self):
        self.make(description(role("worker", 2)))
        del self.cluster.answers["sweep"]
        self.turn()
        first, second = (seat.place for seat in self.driver.seats)
        self.driver.post(self.cluster.open_calls.pop((first, "sweep")), first, 0, None)
        self.turn()
        self.cluster.open = lambda *_: None  # its successor takes long to start
        self.driver.lose(first, driver.Failure("gone"))
        self.turn()
        self.driver.post(self.cluster.open_calls.pop((second, "sweep")), second, 0, None)
        self.turn()
        self.assertEqual((self.called("reach"), self.called("start")), ([], []))

    def test_stop_waits_for_start_to_come_back(self):
        self.make(description(role("worker", 2)))
        del self.cluster.answers["start"]
        self.turn()
        self.driver.take_stop()
        self.turn()
        self.assertEqual(self.called("stop"), [])
        for place, method in list(self.cluster.open_calls):
            if method == "start":
                self.driver.post(self.cluster.open_calls.pop((place, "start")), place, [None], None)
        self.turn()
        self.assertEqual(len(self.called("stop")), 2)

    def test_a_call_that_does_not_come_back_loses_the_place(self):
        self.make(description(role("worker", 2), lossesLeft=0))
        del self.cluster.answers["start"]
        self.turn()
        before, driver.now = driver.now, lambda: time.clock_gettime(time.CLOCK_BOOTTIME) + 60
        self.addCleanup(setattr, driver, "now", before)
        for place in self.driver.places:
            self.cluster.reply(place)
        self.driver.step()
        self.assertEqual(self.driver.rounds.report()["last"].message, "its agent has not answered start for 50 s")

    def test_a_program_that_is_not_there_is_named(self):
        self.make(description(role("worker", 1)))
        self.cluster.answers["start"] = lambda *_: [{"kind": "NotFound", "message": "program train is not in pod-2"}]
        self.turn()
        self.cluster.reply(next(iter(self.driver.places)), running=0)
        self.turn()
        self.assertEqual(self.driver.result, (2, 0))
        last = self.end()["last"]
        self.assertEqual((last["kind"], last["process"], last["message"]), ("NotFound", "worker/0", "program train is not in pod-2"))

    def test_a_full_disk_is_named_with_its_pod(self):
        for method in ("start", "reserve"):
            with self.subTest(method):
                self.make(description(role("worker", 2), lossesLeft=5, maxRestarts=5))
                if method == "start":
                    self.cluster.answers["start"] = lambda *_: [{"kind": "DiskFull", "message": "write /x: No space left on device"}]
                else:
                    del self.cluster.answers["reserve"]
                self.turn()
                place = min(self.driver.places)
                if method == "reserve":
                    self.cluster.fail(place, "reserve", "write /x: No space left on device", is_disk_full=True)
                    self.turn()
                for number in self.driver.places:
                    self.cluster.reply(number, running=0)
                self.turn()
                self.assertEqual(self.driver.result, (2, 0))
                last = self.end()["last"]
                self.assertEqual((last["kind"], last["pod"]), ("DiskFull", f"pod-{place}"))
                self.assertEqual(last["message"], "write /x: No space left on device")

    def test_a_place_that_does_not_reach_the_first_one_is_named(self):
        self.make(description(role("worker", 2)))
        self.cluster.answers["reach"] = lambda *_: "timed out"
        self.turn()
        self.assertEqual(self.called("start"), [])
        last = self.driver.rounds.report()["last"]
        self.assertEqual((last.kind, last.pod), ("Unreachable", "pod-3"))
        self.assertIn("does not reach 10.0.0.2:20000 of the first place: timed out", last.message)

    def test_a_command_that_names_no_process_ends_the_attempt(self):
        self.start(role("worker", 2, command=["x", "$(worker.5.host)"]))
        self.assertEqual(self.called("start"), [])
        self.assertIn("$(worker.5.host) names a process that is not there", self.driver.rounds.report()["last"].message)

    def test_the_one_that_was_first_is_in_the_report_and_in_the_last_lines(self):
        self.start(maxRestarts=0)
        self.cluster.reply(self.second, events=[event("worker/1", 139, lines=["step 9", "Segmentation fault"])], running=0)
        self.turn()
        self.cluster.reply(self.first, events=[event("worker/0", 1, lines=["peer closed"])], running=0)
        self.turn()
        time.sleep(rounds.JUDGE_SECONDS)
        self.turn()
        self.assertEqual(self.driver.result, (139, 0))
        report = self.end()
        self.assertEqual(report["state"], "Ended")
        self.assertEqual({name: report["last"][name] for name in ("kind", "process", "pod", "node", "code", "lines")}, {
            "kind": "Exit", "process": "worker/1", "pod": "pod-3", "node": "10.0.0.3", "code": 139, "lines": ["step 9", "Segmentation fault"],
        })
        self.assertEqual(self.read(self.err).splitlines(), [
            "gang: round 1 starts in 2 places", "gang: worker/1: step 9", "gang: worker/1: Segmentation fault",
            "gang: worker/1 on pod-3: ended by SIGSEGV",
        ])

    def test_out_of_memory_has_the_figures_of_ray(self):
        self.start()
        self.cluster.fail(self.second, "exchange", "node running low on memory: 9.5 of 10 GB", is_memory=True)
        self.turn()
        last = self.driver.rounds.report()["last"]
        self.assertEqual((last.kind, last.code, last.message), ("OutOfMemory", 137, "node running low on memory: 9.5 of 10 GB"))

    def test_beats_are_late_while_output_waits_to_be_written(self):
        self.start()
        self.driver.console.is_full = lambda: True
        self.cluster.reply(self.first, output=[("worker/0", b"x\n")])
        self.turn()
        self.assertEqual(len(self.called("exchange")), 2)
        self.driver.console.is_full = lambda: False
        self.turn()
        self.assertEqual(self.called("exchange")[2:], [(self.first, (1, True))])

    def test_no_more_output_is_taken_while_much_waits_to_be_written(self):
        self.start()
        self.driver.console.is_full = lambda: True
        with mock.patch.object(driver, "FULL_SECONDS", 0):
            self.cluster.reply(self.first, output=[("worker/0", b"x\n")])
            self.turn()
        self.assertEqual(self.called("exchange")[2:], [(self.first, (1, False))])


class Programs(Case):
    """Gangs whose programs run on this machine."""

    def run_gang(self, code, replicas=2, **more):
        """Run a gang of Python programs, and return how it ended."""
        command = [sys.executable, "-c", code]
        self.make(description(role("worker", replicas, command=command), uid=f"test-{os.getpid()}-{self.id()}", **more), clusters.Local)
        self.addCleanup(self.cluster.shut_down)
        return self.driver.run()

    def test_all_output_comes_with_the_names_of_processes(self):
        result = self.run_gang("import os; print(*['rank ' + os.environ['RANK']] * 2000, sep=chr(10)); print('end', end='')", output="All")
        self.assertEqual(result, (0, 0))
        lines = self.read(self.out).splitlines()
        for rank in ("0", "1"):
            own = [line for line in lines if line.startswith(f"[worker/{rank}] ")]
            self.assertEqual(own, [f"[worker/{rank}] rank {rank}"] * 2000 + [f"[worker/{rank}] end"])
        self.assertEqual(len(lines), 4002)

    def test_the_output_of_the_first_one_is_as_it_wrote_it(self):
        self.assertEqual(self.run_gang("import os; os.write(1, bytes(range(256)) * 4000)"), (0, 0))
        self.out.seek(0)
        self.assertEqual(self.out.read(), bytes(range(256)) * 4000)

    def test_a_failure_restarts_all_and_then_ends_with_its_code(self):
        code = "import os,sys,time; rank = os.environ['RANK']\n" \
               "print('round', os.environ['HELIOSTAT_ROUND']) if rank == '1' else time.sleep(60)\nsys.exit(7)"
        self.assertEqual(self.run_gang(code, maxRestarts=1, output="All"), (7, 0))
        self.assertEqual(self.read(self.out), "[worker/1] round 100001\n[worker/1] round 100002\n")

    def test_a_stop_lets_programs_save(self):
        code = "import signal,sys,time; signal.signal(15, lambda *_: (print('saved'), sys.exit(0))); print('up', flush=True); time.sleep(60)"
        write = Console.write

        def stop(console, process, data):
            write(console, process, data)
            if b"up" in data:  # from now on it saves
                self.driver.take_stop()

        with mock.patch.object(Console, "write", stop):
            self.assertEqual(self.run_gang(code, replicas=1), (143, 0))
        self.assertEqual(self.read(self.out), "up\nsaved\n")


class Cost(Case):
    def test_many_agents_cost_less_than_half_a_core(self):
        self.make(description(role("worker", AGENTS)), clusters.Calm)
        used = []

        def run():
            start = time.thread_time()
            self.driver.run()
            used.append(time.thread_time() - start)

        thread = threading.Thread(target=run)
        begin = time.monotonic()
        thread.start()
        while self.driver.rounds.phase != rounds.RUNNING:
            time.sleep(0.1)
        time.sleep(20 if AGENTS > 1000 else 3)
        self.assertEqual(self.driver.rounds.report()["ready"], AGENTS)
        seconds = time.monotonic() - begin
        self.driver.post(setattr, self.driver, "result", rounds.Finish(0, 0))
        thread.join()
        self.assertLess(used[0] / seconds, 0.5)
        print(f"{AGENTS} agents cost {100 * used[0] / seconds:.1f} % of a core", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
