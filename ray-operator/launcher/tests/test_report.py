"""Tests of what the driver writes: the report, the job's output, and how many places would fit."""

import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

from heliostat_gang import capacity, report, rounds  # noqa: E402  the paths above are where these are
from heliostat_gang.console import LONGEST_LINE, Console  # noqa: E402
from histories import role  # noqa: E402

STATE = {"state": "Running", "round": 2, "restarts": 1, "losses": 0, "replicas": 4, "ready": 4, "started": 10.5, "last": None, "lost": []}


class Report(unittest.TestCase):
    def test_has_the_fields_of_the_design(self):
        cause = rounds.Cause(20.9, "Exit", "ended by SIGKILL", "worker/3", 137, "demo-gpu-1-x", "10.0.0.7", ("a",))
        found = json.loads(report.encode({**STATE, "last": cause, "lost": ["p"]}, "", 1000.0, report.Page("q", 20007)))
        self.assertEqual(found, {
            "version": 1, "state": "Running", "round": 2, "restarts": 1, "losses": 0, "replicas": 4, "ready": 4, "started": 1010,
            "waiting": "", "lost": ["p"], "page": {"pod": "q", "port": 20007},
            "last": {"time": 1020, "kind": "Exit", "process": "worker/3", "pod": "demo-gpu-1-x", "node": "10.0.0.7", "code": 137,
                     "message": "ended by SIGKILL", "lines": ["a"]},
        })

    def test_fits_whatever_programs_write(self):
        chance = random.Random(46)
        alphabet = ["a", "ä", "\u20ac", "\U0001f600", "\ud800", "\0", '"', "\n", "\\"]

        def text():
            return "".join(chance.choices(alphabet, k=chance.randint(0, 600)))

        for _ in range(300):
            lines = tuple(text() for _ in range(chance.randint(0, 30)))
            cause = rounds.Cause(1.0, "Exit", text(), text(), 1, text(), text(), lines)
            data = report.encode({**STATE, "last": cause, "lost": [text() for _ in range(8)]}, text(), 0.0)
            self.assertLessEqual(len(data), report.MAX_BYTES)
            self.assertEqual(json.loads(data)["version"], 1)

    def test_has_what_only_trials_have(self):
        tune = {"trials": 2, "running": 1, "succeeded": 1, "failed": 0, "pruned": 0, "waiting": 0, "holder": "",
                "best": {"trial": 0, "value": "0.5", "parameters": {"x": "1"}}}
        self.assertEqual(json.loads(report.encode(STATE, "", 0.0, tune=tune))["tune"], tune)

    def test_fits_with_trials_of_any_size(self):
        parameters = {f"p{number}" + "x" * 60: "\u20ac" * 256 for number in range(32)}
        for kept in (0, 1, 32):
            some = dict(list(parameters.items())[:kept])
            cause = rounds.Cause(1.0, "Trials", "m" * 400, lines=("l" * 300,) * 20)
            tune = {"trials": 1, "best": {"trial": 0, "value": "0.5", "parameters": dict(some)}}
            data = report.encode({**STATE, "last": cause, "lost": ["p" * 253] * 8}, "w" * 400, 0.0, tune=tune)
            self.assertLessEqual(len(data), report.MAX_BYTES)
            found = json.loads(data)["tune"]["best"]
            self.assertEqual(found, {"trial": 0, "value": "0.5", "parameters": some if kept < 32 else {}})

    def test_keeps_the_last_lines(self):
        lines = tuple(f"line {number} " + "x" * 250 for number in range(20))
        found = json.loads(report.encode({**STATE, "last": rounds.Cause(1.0, "Exit", "", lines=lines)}, "", 0.0))["last"]["lines"]
        self.assertEqual(found, list(lines[-len(found):]))
        self.assertGreater(len(found), 10)


class Reporter(unittest.TestCase):
    def test_writes_once_a_second_the_newest_and_the_last_at_once(self):
        written, has_written = [], threading.Event()

        def put(data):
            written.append(data)
            has_written.set()

        with mock.patch.object(report, "PERIOD_SECONDS", 3600):
            reporter = report.Reporter(put)
            reporter.write(b"first")
            has_written.wait()
            for number in range(150):
                reporter.write(b"%d" % number)
            self.assertTrue(reporter.close(b"end"))
        self.assertEqual(written, [b"first", b"end"])

    def test_writes_again_after_a_failure(self):
        written, failures = [], [OSError("away"), RuntimeError("away")]

        def put(data):
            if failures:
                raise failures.pop()
            written.append(data)

        reporter = report.Reporter(put)
        reporter.write(b"x")
        self.assertTrue(reporter.close(b"x"))
        self.assertEqual(written, [b"x"])

    def test_pauses_between_tries_of_the_last_one(self):
        tries = []

        def put(data):
            tries.append(data)
            raise OSError("away")

        with mock.patch.multiple(report, LAST_SECONDS=0.5, LAST_RETRY_SECONDS=0.1):
            self.assertFalse(report.Reporter(put).close(b"x"))
        self.assertLessEqual(len(tries), 6)

    def test_waits_for_no_head(self):
        away = threading.Event()
        self.addCleanup(away.set)
        reporter = report.Reporter(lambda data: away.wait())
        reporter.write(b"x")
        with mock.patch.object(report, "LAST_SECONDS", 0.1):
            self.assertFalse(reporter.close(b"y"))


class Output(unittest.TestCase):
    def write(self, has_prefix, do):
        """Return what a console writes."""
        with tempfile.TemporaryFile() as file:
            console = Console(has_prefix, file.fileno(), file.fileno())
            do(console)
            console.close()
            file.seek(0)
            return file.read()

    def test_no_line_is_merged_with_one_of_another_process(self):
        def do(console):
            console.write("a/0", b"one\ntw")
            console.write("b/0", b"half")
            console.write("a/0", b"o\n\n")
            console.end("b/0")
            console.write("b/0", b"x")

        self.assertEqual(self.write(True, do), b"[a/0] one\n[a/0] two\n[a/0] \n[b/0] half\n[b/0] x\n")

    def test_a_line_that_is_too_long_becomes_several(self):
        found = self.write(True, lambda console: [console.write("a/0", b"x" * LONGEST_LINE) for _ in range(3)])
        self.assertEqual([len(line) for line in found.splitlines()], [6 + 2 * LONGEST_LINE, 6 + LONGEST_LINE])

    def test_a_note_begins_a_line(self):
        def do(console):
            console.write("a/0", b"50 %")
            console.note("round 1 starts")
            console.write("a/0", b"x\n")
            console.note("ends")

        self.assertEqual(self.write(False, do), b"50 %\ngang: round 1 starts\nx\ngang: ends\n")

    def test_a_reader_that_is_gone_stops_nothing(self):
        reader, writer = os.pipe()
        os.close(reader)
        console = Console(False, writer, writer)
        console.write("a/0", b"x")
        console.close()
        os.close(writer)


class Capacity(unittest.TestCase):
    def fitting(self, nodes, *roles, placement="Pack"):
        """Return how many places of roles fit."""
        return capacity.fitting(nodes, {one["name"]: one for one in roles}, [one["name"] for one in roles for _ in range(one["replicas"])], placement)

    def test_counts_what_nodes_have_free(self):
        nodes = [capacity.Node({}, {"CPU": 8, "GPU": 1}), capacity.Node({}, {"CPU": 2, "GPU": 1}), capacity.Node({}, {"CPU": 8})]
        worker = role("worker", 4, resources={"CPU": 4, "GPU": 1})
        self.assertEqual(self.fitting(nodes, worker), {"worker": 1})
        self.assertEqual(self.fitting(nodes, worker, role("ps", 9, resources={"CPU": 2})), {"worker": 1, "ps": 7})

    def test_an_amount_of_zero_fits_where_a_node_has_no_such_resource(self):
        worker = role("worker", 3, resources={"CPU": 4, "GPU": 0})
        self.assertEqual(self.fitting([capacity.Node({}, {"CPU": 8})], worker), {"worker": 2})

    def test_placement_and_labels_bound_it(self):
        nodes = [capacity.Node({"zone": "a"}, {"CPU": 3}), capacity.Node({"zone": "b"}, {"CPU": 2})]
        worker = role("worker", 5)
        self.assertEqual(self.fitting(nodes, worker, placement="StrictPack"), {"worker": 3})
        self.assertEqual(self.fitting(nodes, worker, placement="StrictSpread"), {"worker": 2})
        self.assertEqual(self.fitting([], worker, placement="StrictPack"), {"worker": 0})
        for selector, expected in (("a", 3), ("!a", 2), ("in(b, c)", 2), ("!in(a,b)", 0)):
            with self.subTest(selector):
                self.assertEqual(self.fitting(nodes, role("worker", 5, labelSelector={"zone": selector})), {"worker": expected})


if __name__ == "__main__":
    unittest.main()
