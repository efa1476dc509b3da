"""Tests of what runs a Worker of Spark, with a shell in its place."""

import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from processes import LAUNCHER, Case, collect, wait_for

from heliostat_gang import spark_worker

PROGRAM = os.path.join(LAUNCHER, "heliostat_gang", "spark_worker.py")
# Takes SIGPWR as a Worker does: its executor ends a while later, and itself runs on.
WORKER = """
sleep {mark} & child=$!
trap 'kill $child' PWR
trap 'echo stopped; kill $child; exit 143' TERM
echo up
while :; do sleep 0.1; done
"""


class Output(unittest.TestCase):
    """What executors write."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "app-1", "0")
        self.folder.mkdir(parents=True)
        self.output, self.copied = spark_worker.Output(folder.name), io.BytesIO()
        self.addCleanup(lambda: self.output.end(io.BytesIO()))

    def write(self, name, text):
        with open(self.folder / name, "a", encoding="ascii") as file:
            file.write(text)

    def lines(self):
        self.output.copy(self.copied)
        return self.copied.getvalue().decode().splitlines()

    def test_copies_whole_lines_of_all_executors(self):
        self.write("stderr", "a\nhalf")
        self.write("stdout", "b\n")
        self.assertEqual(self.lines(), ["a", "b"])
        self.write("stderr", " c\n")
        self.assertEqual(self.lines(), ["a", "b", "half c"])

    def test_copies_the_rest_at_the_end(self):
        self.write("stdout", "no end")
        self.output.end(self.copied)
        self.assertEqual(self.copied.getvalue(), b"no end\n")

    def test_goes_on_in_the_file_that_follows_a_large_one(self):
        self.write("stderr", "a\n")
        self.lines()
        self.write("stderr", "b\n")
        os.rename(self.folder / "stderr", self.folder / "stderr--2026")
        self.write("stderr", "c\n")
        self.assertEqual(self.lines(), ["a", "b", "c"])

    def test_holds_no_line_without_an_end(self):
        self.write("stdout", "x" * (spark_worker.READ_BYTES + 1))
        self.output.copy(self.copied)
        self.assertEqual(len(self.copied.getvalue()), spark_worker.READ_BYTES + 1)


class TestRun(Case):
    """The program itself."""

    def start_worker(self, text):
        command = [sys.executable, "-B", "-S", "-E", PROGRAM, self.folder, "sh", "-c", text.replace("{mark}", self.mark)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        return process

    def test_ends_with_the_code_of_the_worker(self):
        for text, code in (("exit 3", 3), ("kill -KILL $$", 137)):
            self.assertEqual(self.start_worker(text).wait(), code)

    def test_a_worker_ends_after_sigpwr_when_it_has_no_executor(self):
        process = self.start_worker(WORKER)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGPWR)
        self.assertEqual(process.wait(), 143)
        self.assert_none_left()

    def test_sigterm_goes_on_to_the_worker(self):
        process = self.start_worker(WORKER)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.terminate()
        self.assertEqual((process.wait(), process.stdout.read()), (143, "stopped\n"))
        self.assert_none_left()


class TestDecommission(Case):
    """A process that is decommissioned by its agent."""

    TRAPS = "trap 'echo moving; sleep 0.3; exit 0' PWR; trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"

    def start_process(self, text, **more):
        made = self.agent(**more)
        made.start(1, [self.shell("executor/0", text)])
        self.wait_for_text("executor/0", "up")
        return made

    def test_gets_sigpwr_and_ends_by_itself(self):
        made = self.start_process(self.TRAPS, grace=60.0)
        made.decommission(1, "executor/0")
        events, _ = collect(made)
        self.assertEqual((events[0]["code"], self.log("executor/0")), (0, "up\nmoving\n"))

    def test_is_killed_after_the_grace(self):
        made = self.start_process("trap '' PWR; echo up; while :; do sleep 0.1; done")
        made.decommission(1, "executor/0")
        self.assertEqual(collect(made)[0][0]["code"], 137)

    def test_a_stop_may_follow(self):
        made = self.start_process("trap 'echo moving' PWR; trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done", grace=60.0)
        made.decommission(1, "executor/0")
        wait_for(lambda: "moving" in self.log("executor/0"), "it moves")
        began = time.monotonic()
        made.stop(1)
        collect(made)
        self.assertEqual(self.log("executor/0"), "up\nmoving\nsaved\n")
        self.assertLess(time.monotonic() - began, 30)

    def test_others_run_on(self):
        made = self.start_process(self.TRAPS, grace=60.0)
        made.decommission(1, "executor/1")
        made.decommission(2, "executor/0")
        made.stop(1)
        collect(made)
        self.assertEqual(self.log("executor/0"), "up\nsaved\n")


if __name__ == "__main__":
    unittest.main()
