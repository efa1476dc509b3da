"""Tests of how the driver carries out what mpirun wants, with a cluster that answers at once."""

import os
import pathlib
import sys
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

from heliostat_gang import driver, mpi, rounds  # noqa: E402  the paths above are where these are
from heliostat_gang.console import Console  # noqa: E402
from histories import description, role  # noqa: E402

ANSWERS = {"sweep": 0, "reserve": [20001], "listen": None, "reach": None, "stop": None, "kill": None, "finish_daemon": None}


class Cluster:
    """Has a place for each bundle, whose agents start what they are given. A call of exchange stays open."""

    def __init__(self, gang, post):
        """Note what is called."""
        self.post, self.calls, self.open_calls, self.failure = post, [], {}, None

    def ask(self, group, *_):
        self.post(self.on_group, group, "placed")

    def open(self, place, group, bundle, resources, then):
        ip = f"10.0.0.{place}"
        facts = {"node_id": ip, "ip": ip, "host": ip, "pod": ip, "loopback": False, "interface": "eth0", "gpus": []}
        self.post(then, place, facts, None)

    def call(self, place, method, arguments, then):
        self.calls.append((place, method, arguments))
        if method == "exchange":
            self.open_calls[place] = then
        elif method == "start":
            self.post(then, place, [self.failure for _ in arguments[1]], None)
        else:
            self.post(then, place, ANSWERS[method], None)

    def reply(self, place, daemons=(), events=()):
        """Have an agent return what happened."""
        reply = {"beat": 1, "running": 1, "output": [], "daemons": list(daemons), "events": list(events)}
        self.post(self.open_calls.pop(place), place, reply, None)

    def gather(self, *_):
        """Do nothing."""

    release = close = probe = put_report = gather


class MPI(unittest.TestCase):
    """A gang whose command runs in the first of two places."""

    def setUp(self):
        """Start the gang."""
        with open(os.devnull, "w", encoding="ascii") as nothing:
            self.console = Console(False, os.dup(nothing.fileno()), os.dup(nothing.fileno()))
        self.addCleanup(self.console.close)
        gang = description(role("worker", 2, processes=2), framework="MPI", maxRestarts=0)
        self.driver = driver.Driver(gang, Cluster, self.console)
        self.cluster = self.driver.cluster
        self.turn()
        self.first, self.second = (seat.place for seat in self.driver.seats)

    def turn(self):
        """Let the driver do all that is posted."""
        for _ in range(10):
            self.driver.step()
            while not self.driver.posted.empty():
                do, arguments = self.driver.posted.get()
                do(*arguments)

    def called(self, method):
        """Return the calls of a method since the last time."""
        found = [(place, arguments) for place, name, arguments in self.cluster.calls if name == method]
        self.cluster.calls = []
        return found

    def want(self, host, **more):
        """Have mpirun want a daemon."""
        request = {"round": 1, "number": 7, "host": host, "line": "orted", "env": {"PATH": "/mpi"}, **more}
        self.cluster.reply(self.first, [request])
        self.turn()

    def event(self, process, code, lines=()):
        """Return the end of a process."""
        return {"process": process, "round": 1, "code": code, "lines": list(lines), "oom": False, "message": ""}

    def test_the_command_alone_starts_with_the_round(self):
        [(place, (number, [program]))] = self.called("start")
        self.assertEqual((place, number, program["name"]), (self.first, 1, "worker/0"))
        slots = {f"10.0.0.{self.first}": 2, f"10.0.0.{self.second}": 2}
        self.assertEqual(program["mpi"], {"slots": slots, "interface": "eth0"})

    def test_a_daemon_starts_where_its_host_is_and_its_end_goes_back(self):
        self.called("start")
        self.want(f"10.0.0.{self.second}")
        [(place, (number, [program]))] = self.called("start")
        self.assertEqual((place, number, program["name"], program["mpi"]), (self.second, 1, "worker/1", {}))
        self.assertEqual((program["argv"], program["env"]["PATH"]), (["sh", "-c", "orted"], "/mpi"))
        self.assertFalse(program["stream"])
        self.cluster.reply(self.second, events=[self.event("worker/1", 3, ["no orted"])])
        self.turn()
        self.assertEqual(self.called("finish_daemon"), [(self.first, (1, 7, 3, "no orted"))])
        self.assertEqual(self.driver.rounds.phase, rounds.RUNNING)

    def test_a_daemon_that_cannot_start_is_answered(self):
        self.cluster.failure = {"kind": "NotFound", "message": "no sh"}
        self.want(f"10.0.0.{self.second}")
        self.assertEqual(self.called("finish_daemon"), [(self.first, (1, 7, mpi.REFUSED, "no sh"))])
        self.assertEqual(self.driver.rounds.phase, rounds.RUNNING)

    def test_a_full_disk_where_a_daemon_starts_ends_the_attempt(self):
        self.driver.rounds.began(self.second, "worker/1-2")
        self.cluster.failure = {"kind": "DiskFull", "message": "write /x: No space left on device"}
        self.want(f"10.0.0.{self.second}")
        self.assertEqual(self.called("finish_daemon"), [(self.first, (1, 7, mpi.REFUSED, self.cluster.failure["message"]))])
        last = self.driver.rounds.report()["last"]
        self.assertEqual((last.kind, last.process, last.pod, last.is_final), ("DiskFull", "worker/1", f"10.0.0.{self.second}", True))
        self.assertEqual(self.driver.rounds.blockers(), ["worker/0", "worker/1-2"])  # which started before

    def test_another_host_is_refused(self):
        self.want("10.9.9.9")
        answer = 1, 7, mpi.REFUSED, "no place of the gang has this address"
        self.assertEqual(self.called("finish_daemon"), [(self.first, answer)])

    def test_a_round_that_ends_starts_no_daemon(self):
        self.driver.take_stop()
        self.turn()
        self.called("start")
        self.want(f"10.0.0.{self.second}")
        calls = self.cluster.calls
        self.assertEqual(self.called("finish_daemon"), [(self.first, (1, 7, mpi.REFUSED, "the round has ended"))])
        self.assertNotIn("start", [method for _, method, _ in calls])


if __name__ == "__main__":
    unittest.main()
