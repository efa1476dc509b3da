"""Tests of what ends processes when a part of the gang is killed or stopped, with real processes and signals."""

import os
import pathlib
import signal
import subprocess
import time
import unittest
from unittest import mock

from processes import LEAVES_DAEMONS, PATIENCE, Case, collect, end_process, name_of, send, wait_for

from heliostat_gang import agent, sweep

IGNORES = "trap '' TERM; echo started; while :; do sleep {mark}; done"


class TestKilled(Case):
    """A part is killed, and nothing is left after the grace."""

    def programs(self):
        """Return a program that leaves daemons, and one that ignores SIGTERM."""
        return [self.shell("w/0", LEAVES_DAEMONS), self.shell("w/1", IGNORES)]

    def run_agent(self, **more):
        """Return an agent in a process of its own and the numbers of its guards, with both programs running."""
        process, guards = self.spawn(*self.programs(), **more)
        self.wait_for_text("w/0", "started")
        self.wait_for_text("w/1", "started")
        return process, guards

    def test_agent_killed(self):
        """Programs save, and all ends."""
        process, _ = self.run_agent()
        process.kill()
        self.assert_none_left()
        self.assertIn("saved", self.log("w/0"))

    def test_agent_stopped(self):
        """The lease ends, as no beat is sent."""
        process, _ = self.run_agent(lease=5.0)
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: set(map(name_of, self.left())) <= {"python3", "python", sweep.KEEPER_NAME}, "guards and programs end")
        self.assertIn("saved", self.log("w/0"))

    def test_driver_that_answers_runs_on_past_a_lease(self):
        """Answered beats renew the lease of a guard, and a beat that was sent long ago does not."""
        made = self.agent(lease=3.0, beat=0.3)
        made.start(1, [self.shell("w/0", "sleep {mark}")])
        events, beat, answers = [], 0, 0
        first = last = None
        while not events:
            reply = made.exchange(beat if answers < 12 else 0)
            first, last = first or reply["sent"], reply["sent"]
            events, beat, answers = reply["events"], reply["beat"], answers + 1
        self.assertGreater(last - first, 4.0)
        self.assertEqual((events[0]["code"], events[0]["message"]), (143, "the driver answered no beat for 3 s"))
        collect(made)
        with self.assertRaisesRegex(RuntimeError, "the driver has answered no beat"):
            made.lease_end = 0.0
            made.start(2, [self.shell("w/0", "sleep {mark}")])

    def test_start_that_comes_after_the_first_lease_starts_nothing(self):
        """It was on its way for so long that the driver has given up the place."""
        made = self.agent(lease=0.01)
        made.describe()
        time.sleep(0.02)
        with self.assertRaisesRegex(RuntimeError, "the driver has answered no beat"):
            made.start(1, [self.shell("w/0", "sleep {mark}")])

    def test_guard_killed(self):
        """Its program ends at once and is reported, and its daemons end after the grace."""
        made = self.agent()
        made.start(1, self.programs())
        self.wait_for_text("w/0", "started")
        send(made.processes[0].guard, signal.SIGKILL)
        events, _ = collect(made, lambda event: made.stop(1))
        first = events[0]
        self.assertEqual((first["process"], first["code"], first["message"], first["lines"]), ("w/0", 137, "its guard was killed", ["started"]))
        made.close()
        self.assert_none_left()

    def test_guard_and_agent_killed(self):
        """The keeper ends what is left, and goes."""
        process, guards = self.run_agent()
        for pid in (process.pid, *guards):
            send(pid, signal.SIGKILL)
        self.assert_none_left()

    def test_guard_and_keeper_killed(self):
        """The agent finds what is left by its environment, and waits for its end."""
        made = self.agent()
        made.start(1, self.programs())
        self.wait_for_text("w/0", "started")
        self.wait_for_text("w/1", "started")
        for pid in (self.keeper(), *(process.guard for process in made.processes)):
            send(pid, signal.SIGKILL)
        self.assertEqual([event["code"] for event in collect(made)[0]], [137, 137])
        self.assertEqual(self.left(), [])

    def test_guard_stopped(self):
        """The agent ends it with all its descendants when it should have ended."""
        made = self.agent()
        made.start(1, self.programs())
        self.wait_for_text("w/0", "started")
        send(made.processes[0].guard, signal.SIGSTOP)
        made.stop(1)
        events, _ = collect(made)
        self.assertEqual({event["process"]: event["code"] for event in events}, {"w/0": 137, "w/1": 137})
        made.close()
        self.assert_none_left()

    def test_keeper_killed(self):
        """Guards go on, and the next round has another keeper."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "echo started; sleep {mark}")])
        self.wait_for_text("w/0", "started")
        keeper = self.keeper()
        send(keeper, signal.SIGKILL)
        wait_for(lambda: name_of(keeper) != sweep.KEEPER_NAME or keeper not in self.left(), "the keeper ends")
        made.stop(1)
        self.assertEqual([event["code"] for event in collect(made)[0]], [143])
        made.start(2, [self.shell("w/0", "exit 5")])
        self.assertEqual([event["code"] for event in collect(made)[0]], [5])
        made.close()
        self.assert_none_left()

    def test_guards_are_reaped(self):
        """Rounds leave no entries of processes that have ended."""
        made = self.agent()
        made.start(1, [self.shell("w/0", "exit 0")])
        collect(made)
        keeper = self.keeper()
        for number in range(2, 10):
            made.start(number, [self.shell("w/0", "(setsid sleep 0 &) ; exit 0"), self.shell("w/1", "exit 0")])
            collect(made)
        wait_for(lambda: not children(keeper), "all guards are reaped")


class TestSweep(Case):
    """What an agent ends that others have left, and what it must not."""

    def test_ends_what_a_former_attempt_left(self):
        """Also where agent, guards and keeper were killed, and guards live that nobody asked to end."""
        process, guards = self.spawn(self.shell("w/0", LEAVES_DAEMONS))
        self.wait_for_text("w/0", "started")
        process.send_signal(signal.SIGSTOP)
        other, others = self.spawn(self.shell("w/1", LEAVES_DAEMONS))
        self.wait_for_text("w/1", "started")
        for pid in (self.keeper(), self.keeper_of(others[0]), other.pid, others[0]):
            send(pid, signal.SIGKILL)
        made = self.agent(gang={"uid": self.uid, "attempt": 2, "child": 0})
        self.assertGreater(made.sweep(1), 4)
        self.assertIn("saved", self.log("w/0"))
        end_process(process)
        self.assert_none_left()

    def test_reads_marks_of_launchers_before_child_gangs(self):
        """An upgrade of the operator may find their processes on a node. They count as of gang 0."""
        orphan = subprocess.Popen(["sleep", self.mark], env={sweep.VARIABLE: f"{self.uid}/1/9"})
        sweepers = [self.agent(gang={"uid": self.uid, "attempt": 2, "child": child}) for child in (0, 5)]
        self.assertEqual((sweepers[0].sweep(1), orphan.wait(PATIENCE)), (1, -signal.SIGTERM))
        older = self.agent(gang={"uid": self.uid, "attempt": 2, "child": 0})
        older._mark = lambda number: f"{self.uid}/2/{number}"
        older.start(3, [self.shell("w/0", "exec sleep {mark}")])
        self.assertEqual([sweeper.sweep(number) for sweeper, number in zip(sweepers, (3, 9))], [0, 0])
        self.assertGreater(sweepers[0].sweep(4), 0)

    def test_signals_where_python_has_no_descriptors_of_processes(self):
        """It compares the start of the process then, and the number alone is not enough."""
        with mock.patch.object(os, "pidfd_open", create=True):
            del os.pidfd_open
            program = subprocess.Popen(["sleep", self.mark])
            found = sweep.read_processes()[program.pid]
            sweep.send(found._replace(start=found.start + 1), signal.SIGKILL)
            sweep.send(found, signal.SIGTERM)
            self.assertEqual(program.wait(PATIENCE), -signal.SIGTERM)

    def keeper_of(self, pid):
        """Return the parent of a guard."""
        return sweep.read_processes()[pid].parent

    def test_leaves_alone_what_is_not_older(self):
        """The same round, later ones, other child gangs, a later attempt and another job go on; a lower round and a lower attempt end."""
        running = {}
        for name, uid, attempt, child, number in (
            ("same", self.uid, 2, 5, 3),
            ("later", self.uid, 2, 5, 4),
            ("other gang", self.uid, 2, 4, 9),
            ("lower round of another gang", self.uid, 2, 6, 1),
            ("attempt", self.uid, 3, 1, 1),
            ("job", "other-" + self.uid, 1, 1, 1),
            ("longer", self.uid + "0", 1, 1, 1),
            ("lower", self.uid, 2, 5, 2),
            ("lower attempt", self.uid, 1, 6, 9),
        ):
            made = self.agent(gang={"uid": uid, "attempt": attempt, "child": child})
            made.start(number, [self.shell("w/0", "exec sleep {mark}")])
            running[name] = made
        running["same"].sweep(3)
        events = {name: [] for name in running}

        def have_ended():
            for name, made in running.items():
                events[name] += made.exchange(0)["events"]
            return events["lower"] and events["lower attempt"]

        wait_for(have_ended, "the lower ones end")
        self.assertEqual([name for name, found in events.items() if found], ["lower", "lower attempt"])


def children(pid):
    """Return the children of a process, those too that have ended and are not reaped."""
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


if __name__ == "__main__":
    unittest.main()
