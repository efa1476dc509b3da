"""Tests of which processes of an MPI gang get SIGTERM."""

import pathlib
import subprocess
import sys
import typing
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from heliostat_gang import ranks  # noqa: E402  the path above is where it is


class Process(typing.NamedTuple):
    """What is known of a descendant."""

    pid: int
    parent: int
    name: str = "python"


class Receivers(unittest.TestCase):
    """SIGTERM of a program that has to end."""

    def run_with(self, **env):
        """Start a process with an environment, and return its number."""
        process = subprocess.Popen(["/bin/sleep", "60"], env=env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def setUp(self):
        self.program = self.run_with(OMPI_COMM_WORLD_RANKS="no rank")

    def find(self, *below):
        return [process.pid for process in ranks.find_receivers(self.program, below)]

    def test_ranks_get_it_and_not_what_they_started(self):
        for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
            first, child = self.run_with(**{name: "0"}), self.run_with(**{name: "0"})
            below = Process(self.program, 1, "mpirun"), Process(first, self.program), Process(child, first)
            self.assertEqual(self.find(*below), [first])

    def test_a_program_without_ranks_gets_it(self):
        self.assertEqual(self.find(Process(self.program, 1), Process(self.run_with(), self.program)), [self.program])

    def test_nobody_gets_it_where_all_ranks_are_elsewhere(self):
        waits = Process(self.run_with(), self.program, ranks.LAUNCH_AGENT_NAME)
        self.assertEqual(self.find(Process(self.program, 1), waits), [])

    def test_one_that_has_ended_is_no_rank(self):
        self.assertEqual(self.find(Process(self.program, 1), Process(2**22 + 1, self.program)), [self.program])


if __name__ == "__main__":
    unittest.main()
