"""Tests of how mpirun starts its daemons, with a program that calls the agent program as mpirun does."""

import errno
import os
import pathlib
import queue
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from heliostat_gang import mpi, ranks  # noqa: E402  the path above is where it is
from test_contracts import describe, places_of, role, start  # noqa: E402

SECONDS = 10


class Case(unittest.TestCase):
    """A test with a relay."""

    def setUp(self):
        self.requests = queue.Queue()
        self.relay = mpi.Relay({"10.0.0.1": 2, "fd00::2": 4}, self.requests.put)
        self.addCleanup(self.relay.close)

    def call(self, *words, **env):
        """Start the agent program as mpirun does."""
        environ = {"PATH": os.environ["PATH"], **env}
        command = [self.relay.files.agent, *words]
        process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process


class Relay(Case):
    """The place where the command runs."""

    def test_a_line_ends_with_the_exit_code_that_is_answered(self):
        given = "orted", "-mca", "agent", f'"{self.relay.files.agent}"'
        first, second = self.call("10.0.0.1", *given), self.call("10.0.0.2", "true")
        requests = {}
        for _ in range(2):
            request = self.requests.get(timeout=SECONDS)
            requests[request["host"]] = request
        self.assertEqual(requests["10.0.0.1"]["line"], 'orted -mca agent "/bin/sh"')
        names = [pathlib.Path(f"/proc/{one.pid}/comm").read_text().strip() for one in (first, second)]
        self.assertEqual(names, [ranks.LAUNCH_AGENT_NAME] * 2)
        self.relay.answer(requests["10.0.0.2"]["number"], 0)
        self.assertEqual((second.wait(SECONDS), second.stderr.read()), (0, ""))
        self.relay.answer(requests["10.0.0.1"]["number"], 127, "orted: not found")
        self.assertEqual((first.wait(SECONDS), first.stderr.read()), (127, "10.0.0.1: orted: not found\n"))

    def test_options_of_ssh_are_passed_over(self):
        for words in (["-x", "host", "a"], ["-o", "X=1", "-q", "-p", "22", "host", "a"], ["-oX=1", "[host]", "a"]):
            self.call(*words)
            request = self.requests.get(timeout=SECONDS)
            self.assertEqual((request["host"], request["line"]), ("host", "a"), words)

    def test_the_search_paths_go_along_alone(self):
        self.call("host", "a", LD_LIBRARY_PATH="/lib/mpi", OTHER="x")
        env = self.requests.get(timeout=SECONDS)["env"]
        self.assertEqual(env, {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/lib/mpi"})

    def test_hostfiles_have_a_line_for_each_host(self):
        slots, counts = (pathlib.Path(name).read_text() for name in (self.relay.files.slots, self.relay.files.counts))
        self.assertEqual(slots, "10.0.0.1 slots=2\nfd00::2 slots=4\n")
        self.assertEqual(counts, "10.0.0.1:2\nfd00::2:4\n")

    def test_nobody_else_can_enter_the_directory(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.relay.directory).st_mode), 0o700)

    def test_the_end_of_the_round_ends_lines_and_leaves_nothing(self):
        process = self.call("host", "a")
        number = self.requests.get(timeout=SECONDS)["number"]
        self.relay.close()
        self.assertEqual((process.wait(SECONDS), process.stderr.read()), (255, "host: the round has ended\n"))
        self.assertFalse(os.path.exists(self.relay.directory))
        self.relay.answer(number, 0)

    def test_a_full_disk_leaves_no_directory(self):
        full = OSError(errno.ENOSPC, "No space left on device")
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, mock.patch.object(mpi.tempfile, "mkdtemp", return_value=folder + "/x"):
            os.mkdir(folder + "/x")
            with mock.patch.object(mpi.shutil, "copyfile", side_effect=full), self.assertRaisesRegex(OSError, "No space left"):
                mpi.Relay({}, self.requests.put)
            self.assertEqual(os.listdir(folder), [])

    def test_an_agent_program_that_was_killed_disturbs_no_other(self):
        killed, other = self.call("a", "x"), self.call("b", "x")
        numbers = {}
        for _ in range(2):
            request = self.requests.get(timeout=SECONDS)
            numbers[request["host"]] = request["number"]
        killed.kill()
        killed.wait(SECONDS)
        self.relay.answer(numbers["a"], 0)
        self.relay.answer(numbers["b"], 3)
        self.assertEqual(other.wait(SECONDS), 3)


class Daemons(unittest.TestCase):
    """Where lines run."""

    def daemons(self, *roles, hosts=None):
        gang = describe("MPI", *roles)
        places = places_of(gang)
        for at, host in enumerate(hosts or ()):
            places[at] = places[at]._replace(host=host)
        return mpi.Daemons(places, list(start(gang, places).values()))

    def request(self, host):
        return {"number": 1, "host": host, "line": "orted -x", "env": {"PATH": "/mpi"}}

    def test_a_line_runs_in_the_place_of_its_host(self):
        found = self.daemons(role("launcher", 1), role("worker", 2))
        name, one = found.start(self.request("10.0.0.3"))
        self.assertEqual((name, one.process.place), ("worker/1", 2))
        self.assertEqual(one.argv, ["sh", "-c", "orted -x"])
        self.assertEqual((one.env["PATH"], one.env["ROLE"]), ("/mpi", "worker"))

    def test_each_line_has_a_name_of_its_own(self):
        found = self.daemons(role("worker", 2))
        names = [found.start(self.request(host))[0] for host in ("10.0.0.2", "10.0.0.2", "10.0.0.1", "10.0.0.1")]
        self.assertEqual(names, ["worker/1", "worker/1-2", "worker/0-2", "worker/0-3"])

    def test_a_host_with_several_places_has_its_lines_in_the_first(self):
        found = self.daemons(role("worker", 3), hosts=["10.0.0.1", "10.0.0.2", "10.0.0.2"])
        self.assertEqual(found.start(self.request("10.0.0.2"))[0], "worker/1")

    def test_another_host_is_refused(self):
        with self.assertRaises(KeyError):
            self.daemons(role("worker", 2)).start(self.request("10.0.0.9"))

    def test_the_last_output_says_why_a_line_failed(self):
        self.assertEqual(mpi.describe_failure(["x", "a", "b", "c"], 1), "a; b; c")
        self.assertEqual(mpi.describe_failure([], 1), "the daemon ended with exit code 1")
        self.assertEqual(mpi.describe_failure(["noise"], 0), "")


if __name__ == "__main__":
    unittest.main()
