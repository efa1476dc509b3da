"""Tests of the agent with real processes."""

import errno
import itertools
import os
import pathlib
import socket
import threading
import unittest
from unittest import mock

import zombies
from processes import LAUNCHER, LEAVES_DAEMONS, Case, collect, wait_for

from heliostat_gang import agent, guard, output


class TestStart(Case):
    """What starts, and how."""

    def test_reports_exit_codes_and_signals(self):
        """A process that ended by signal n has code 128 + n."""
        made = self.agent()
        codes = {"exit 0": (0, None), "exit 3": (3, None), "kill -SEGV $$": (139, 11), "kill -KILL $$": (137, 9)}
        made.start(1, [self.shell(f"w/{text}", text, log=f"{number}.log") for number, text in enumerate(codes)])
        events, _ = collect(made)
        found = {event["process"][2:]: (event["code"], event["signal"]) for event in events}
        self.assertEqual(found, codes)
        self.assertEqual({(event["round"], event["oom"], event["message"]) for event in events}, {(1, False, "")})

    def test_reports_the_last_lines(self):
        """The last 20 lines of both streams, each of a bounded length."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "seq 1 50; printf '%02000d' 7 >&2; exit 1")])
        events, _ = collect(made)
        self.assertEqual(events[0]["lines"], [str(number) for number in range(32, 51)] + ["0" * 400])
        self.assertEqual(len(self.log("w/0").splitlines()), 51)

    def test_gives_the_environment_of_the_place(self):
        """Variables of Ray and the launcher's path stay behind; what the user sets wins, and defaults do not."""
        made = self.agent()
        given = {"RAY_X": "1", "PYTHONPATH": f"/mine:{LAUNCHER}", "A": "image", "B": "image"}
        with mock.patch.dict(os.environ, given):
            program = self.shell("w/0", "env", stream=True)
            made.start(2, [{**program, "env": {"B": "user", "D": "\udcff ö"}, "defaults": {"A": "default", "C": "default"}}])
        _, written = collect(made)
        lines = written["w/0"].decode(errors="surrogateescape").splitlines()
        self.assertFalse([line for line in lines if line.startswith("RAY_")])
        for line in ("PYTHONPATH=/mine", "A=image", "B=user", "C=default", "D=\udcff ö", f"HELIOSTAT_GANG={self.uid}/1/0/2"):
            self.assertIn(line, lines)

    def test_starts_programs_as_a_shell_would(self):
        """Working directory, nice, standard input, signals and descriptors are plain."""
        made = self.agent()
        text = "pwd; nice; cat; grep -E 'SigIgn|SigBlk' /proc/self/status; exec ls /proc/self/fd"
        made.start(1, [self.shell("w/0", text, cwd=self.folder)])
        collect(made)
        folder, nice, blocked, ignored, *descriptors = self.log("w/0").splitlines()
        self.assertEqual([folder, nice, blocked, *descriptors], [self.folder, str(os.nice(0)), "SigBlk:\t" + "0" * 16, *"0123"])
        of_the_c_library = 1 << 31 | 1 << 32  # signals 32 and 33, which no program can set: they are as this test inherited them
        self.assertEqual(int(ignored.split()[1], 16) & ~of_the_c_library, 0)

    def test_starts_nothing_when_a_program_is_missing(self):
        """Whatever is wrong with a program is named, and the others do not run."""
        scripts = {"interpreter": "#!/no/such/shell\n", "env": "#!/usr/bin/env no-such-shell\n", "format": "no program\n", "right": ""}
        for name, text in scripts.items():
            path = pathlib.Path(self.folder, name)
            path.write_text(text)
            path.chmod(0o600 if name == "right" else 0o700)
        cases = {
            "no-such-program": "program no-such-program is not in the image, or not executable",
            "./missing": "program ./missing is not in the image",
            "./right": "program ./right is not in the image",
            "./interpreter": "needs /no/such/shell, which is not in the image",
            "./env": "needs no-such-shell, which is not in the image",
            "./format": "/format: Exec format error",
        }
        made = self.agent()
        for number, (name, message) in enumerate(cases.items(), 1):
            with self.subTest(name):
                sleeping = self.shell("w/0", "sleep {mark}")
                answers = made.start(number, [sleeping, {"name": "w/1", "argv": [name], "env": {}, "cwd": self.folder}])
                self.assertIsNone(answers[0])
                self.assertEqual(answers[1]["kind"], "NotFound")
                self.assertIn(message, answers[1]["message"])
        made.close()
        self.assert_none_left()

    def test_a_full_disk_is_no_program_that_is_missing(self):
        """Neither where the guard opens a log, nor where the agent writes files for mpirun."""
        full = OSError(errno.ENOSPC, "No space left on device", "/x")
        expected = {"kind": "DiskFull", "message": "write /x: No space left on device"}
        ours, theirs = socket.socketpair()
        with theirs, mock.patch.object(output, "Log", side_effect=full), mock.patch.object(guard, "wake_on"), mock.patch("signal.signal"):
            self.assertFalse(guard.Guard(theirs, {"lease": 0, "log": "/x", "bytes": 1}, None).start())
        self.assertEqual(agent._await_start(agent.Process("w/0", 1, "/x", ours, None)), expected)
        with mock.patch.object(agent.mpi, "Relay", side_effect=full):
            program = {**self.shell("w/0", "exit 0"), "defaults": {}, "mpi": {"slots": {}, "interface": ""}}
            self.assertEqual(self.agent().start(1, [program]), [expected])

    def test_what_has_not_started_leaves_no_directory(self):
        """Neither where a guard cannot be made, nor where a disk is full before."""
        full = OSError(errno.ENOSPC, "No space left on device", "/x")
        for failing, error, says in (("_begin", RuntimeError("no guard"), "no guard"), ("_order", full, "")):
            made = self.agent()
            folders = [os.path.join(self.folder, failing + number) for number in "01"]
            orders = [made._order(1, {**self.shell("w/0", "exit 0"), "directory": folder}) for folder in folders]
            for folder in folders:
                os.mkdir(folder)
            results = [orders[0], full] if failing == "_order" else orders
            with mock.patch.object(made, "_order", side_effect=results), mock.patch.object(made, "_begin", side_effect=error):
                programs = [self.shell("w/0", "exit 0"), self.shell("w/1", "exit 0")]
                if says:
                    with self.assertRaisesRegex(RuntimeError, says):
                        made.start(1, programs)
                else:
                    self.assertEqual({answer["kind"] for answer in made.start(1, programs)}, {"DiskFull"})
            left = [os.path.exists(folder) for folder in folders]
            self.assertEqual(left, [False, failing == "_order"])  # the second order was not made

    def test_refuses_a_round_that_is_over(self):
        """A call that comes late starts nothing."""
        made = self.agent()
        made.start(2, [self.shell("w/0", "sleep {mark}")])
        made.start(2, [self.shell("w/1", "sleep {mark}")])
        with self.assertRaisesRegex(RuntimeError, "round 2 has begun"):
            made.start(1, [self.shell("w/0", "sleep {mark}")])
        made.stop(2)
        with self.assertRaisesRegex(RuntimeError, "round 2 has begun or ended"):
            made.start(2, [self.shell("w/2", "sleep {mark}")])
        self.assertEqual(len(collect(made)[0]), 2)

    def test_waits_for_the_round_before(self):
        """No process of two rounds runs at once, descendants included."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "setsid sh -c 'trap \"\" TERM; echo ready; sleep {mark}' & sleep 0.2; exit 1")])
        self.wait_for_text("w/0", "ready")
        made.start(2, [self.shell("w/0", f"pgrep -fx 'sleep {self.mark}'; echo started")])
        events, _ = collect(made)
        self.assertEqual([event["code"] for event in events], [1, 0])
        self.assertEqual(self.log("w/0", 2), "started\n")


class TestEnd(Case):
    """How processes end."""

    def test_stop_lets_programs_save_and_ends_all_descendants(self):
        """SIGTERM to the program; what it leaves goes at the end of the grace at the latest."""
        made = self.agent()
        made.start(1, [self.shell("w/0", LEAVES_DAEMONS), self.shell("w/1", "trap '' TERM; echo started; while :; do sleep {mark}; done")])
        self.wait_for_text("w/0", "started")
        self.wait_for_text("w/1", "started")
        made.stop(1)
        events, _ = collect(made)
        self.assertEqual({event["process"]: event["code"] for event in events}, {"w/0": 0, "w/1": 137})
        self.assertIn("saved", self.log("w/0"))
        made.close()
        self.assert_none_left()

    def test_a_shell_that_ends_at_once_leaves_its_child_the_grace(self):
        """The child of a shell gets SIGTERM too, and saves."""
        made = self.agent()
        child = "sh -c 'trap \"sleep 0.2; echo saved; exit\" TERM; echo started; sleep {mark} & wait'; true"
        made.start(1, [self.shell("w/0", child)])
        self.wait_for_text("w/0", "started")
        made.stop(1)
        events, _ = collect(made)
        self.assertEqual(events[0]["code"], 143)
        self.assertIn("saved", self.log("w/0"))

    def test_kill_waits_for_nothing(self):
        """SIGKILL to all, while a stop with a long grace is under way."""
        made = self.agent(grace=3600)
        made.start(1, [self.shell("w/0", LEAVES_DAEMONS.replace("exit 0", "sleep {mark}"))])
        self.wait_for_text("w/0", "started")
        made.stop(1)
        made.kill(1)
        events, _ = collect(made)
        self.assertEqual(events[0]["code"], 137)

    def test_close_ends_everything(self):
        """Without a reader, a program whose output waits can still save."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "trap 'echo saved; exit' TERM; echo started; while :; do sleep 0.1; done", stream=True)])
        self.wait_for_text("w/0", "started")
        made.close()
        self.assert_none_left()
        self.assertIn("saved", self.log("w/0"))

    def test_out_of_memory_is_named(self):
        """A SIGKILL that nobody sent, while the kernel's count grew."""
        made = self.agent()
        with mock.patch.object(agent.host, "memory_kills", side_effect=itertools.chain([1, 1], itertools.repeat(2))):
            made.start(1, [self.shell("w/0", "kill -KILL $$"), self.shell("w/1", "exit 9")])
            events, _ = collect(made)
        self.assertEqual({event["process"]: event["oom"] for event in events}, {"w/0": True, "w/1": False})


class TestZombies(unittest.TestCase):
    """The program that counts zombies, without a process 1 of its own."""

    def test_plays_rounds(self):
        """It counts once all are played."""
        with mock.patch.object(zombies, "count") as count:
            zombies.play(2)
        count.assert_called_once_with(2, "with the agent")


class TestExchange(Case):
    """What the driver gets."""

    def test_returns_a_beat_when_nothing_happens(self):
        """Beats are numbered, and their times grow."""
        made = self.agent()
        first = made.exchange(0)
        second = made.exchange(first["beat"])
        self.assertEqual((first["beat"], second["beat"], second["events"], second["running"]), (1, 2, [], 0))
        self.assertGreaterEqual(second["sent"], first["sent"] + 0.2)

    def test_fails_when_nothing_is_watched_any_more(self):
        """A place that would report nothing is lost."""
        made = self.agent()
        with mock.patch.object(made, "_forget", side_effect=ValueError("broken")), mock.patch.object(threading, "excepthook"):
            made.start(1, [self.shell("w/0", "exec sleep {mark}")])
            with self.assertRaisesRegex(RuntimeError, "watch processes: ValueError"):
                collect(made)
        self.assert_programs_end()

    def test_a_newer_call_ends_an_older_one(self):
        """The older one takes nothing with it."""
        made = self.agent(beat=PATIENT)
        replies = []
        older = threading.Thread(target=lambda: replies.append(made.exchange(0)))
        older.start()
        wait_for(lambda: made.turn == 1, "the older call is open")
        made.start(1, [self.shell("w/0", "sleep 0.3; exit 4")])
        events, _ = collect(made)
        older.join()
        self.assertEqual((replies[0]["beat"], replies[0]["events"], events[0]["code"]), (0, [], 4))

    def test_output_arrives_whole_and_in_order(self):
        """More than what may wait, while the reader is slow; the event comes behind all of it."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "seq 1 2000000; seq 1 10 >&2", stream=True), self.shell("w/1", "echo other")])
        wait_for(lambda: made.buffer.is_full(), "output waits")
        self.assertLess(made.buffer.size, agent.WAITING_BYTES + agent.PIECE_BYTES)
        self.assertFalse([event for event in made.events if event["process"] == "w/0"])
        before = {}
        events, written = collect(made, lambda event: before.setdefault(event["process"]))
        expected = "".join(f"{number}\n" for number in (*range(1, 2000001), *range(1, 11))).encode()
        self.assertTrue(written["w/0"] == expected)
        self.assertEqual(set(written), {"w/0"})
        self.assertEqual({event["process"]: event["code"] for event in events}, {"w/0": 0, "w/1": 0})
        self.assertTrue(self.log("w/0").encode() == expected)

    def test_output_stays_while_the_driver_has_no_room(self):
        """So do the events behind it, and beats go on."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "echo x; exit 3", stream=True)])
        wait_for(lambda: made.events and made.buffer.size, "the process ends")
        held = made.exchange(0, False)
        self.assertEqual((held["beat"], held["events"], held["output"]), (1, [], []))
        events, written = collect(made)
        self.assertEqual((events[0]["code"], written["w/0"]), (3, b"x\n"))


class TestLog(Case):
    """Files of a bounded size."""

    def test_rotates_at_line_ends(self):
        """Both files together are not larger than the limit, and lines go on from one to the other."""
        path = os.path.join(self.folder, "a.log")
        log = output.Log(path, 2000)
        for number in range(0, 900, 3):
            log.write(memoryview(b"".join(b"line %d\n" % line for line in range(number, number + 3))))
        former, current = (pathlib.Path(name).read_bytes() for name in (path + ".1", path))
        self.assertLessEqual(max(len(former), len(current)), 1000)
        lines = (former + current).decode().splitlines()
        self.assertEqual(lines, [f"line {number}" for number in range(900 - len(lines), 900)])
        self.assertEqual(former[-1:] + current[-1:], b"\n\n")
        self.assertEqual(output.last_lines(path), lines[-20:])

    def test_goes_on_when_the_disk_is_full(self):
        """What the disk does not take is lost, and nothing else."""
        log = output.Log("/dev/full", 2000)
        log.write(memoryview(b"lost\n"))
        self.assertEqual(log.size, 0)


PATIENT = 30.0

if __name__ == "__main__":
    unittest.main()
