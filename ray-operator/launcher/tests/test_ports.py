"""Tests of ports: who has one, and whether one place reaches another."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import unittest
from unittest import mock

from processes import Case, collect, wait_for

from heliostat_gang import ports, reach


class PortsCase(Case):
    """Has a directory of ports of its own, with few of them."""

    def setUp(self):
        """Take other ports than those of gangs that run here."""
        super().setUp()
        base = os.path.join(self.folder, "ports")
        for name, value in (("DIRECTORY", base), ("FIRST", 19990), ("LAST", 19994)):
            patch = mock.patch.object(ports, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def reserve(self, *arguments):
        """Reserve ports, and release them at last."""
        taken = ports.reserve(*arguments)
        self.addCleanup(ports.release, taken)
        return taken


class TestReserve(PortsCase):
    """Ports of a pod."""

    def test_gives_no_port_twice(self):
        """Nor one that the caller avoids, or that a program has."""
        with socket.create_server(("127.0.0.1", 19993)):
            first = self.reserve(2, [19990])
            second = self.reserve(1, [19990])
            self.assertEqual({*first, *second}, {19991, 19992, 19994})
            with self.assertRaisesRegex(OSError, "reserve 2 ports: 1 of 19990 to 19994 are free"):
                ports.reserve(2)
            self.assertEqual(list(self.reserve(1)), [19990])

    def test_leaves_other_files_alone(self):
        """They are no ports."""
        os.mkdir(ports.DIRECTORY)
        for name in ("notes", "70000"):
            pathlib.Path(ports.DIRECTORY, name).touch()
        self.assertEqual(len(self.reserve(5)), 5)

    def test_takes_the_one_that_was_unused_for_longest(self):
        """One that others had at the last look is newer than one that was released before."""
        everything = ports.reserve(5)
        order = [19992, 19990, 19994, 19991, 19993]
        ports.release({port: everything[port] for port in order})
        self.assertEqual(list(self.reserve(2)), order[:2])
        self.assertEqual(list(self.reserve(2)), order[2:4])

    def test_a_port_goes_with_its_last_holder(self):
        """A process that got the descriptor holds it when the first holder has closed it."""
        taken = ports.reserve(5)
        holder = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=taken.values())
        ports.release(taken)
        with self.assertRaises(OSError):
            ports.reserve(1)
        holder.communicate()
        self.assertEqual(len(self.reserve(5)), 5)


class TestHolders(PortsCase):
    """Ports of an agent."""

    def test_guards_hold_ports_when_the_agent_is_gone(self):
        """Until the last process of the round has ended."""
        made = self.agent()
        self.assertEqual(len(made.reserve(5)), 5)
        made.start(1, [self.shell("w/0", "read line < {}".format(self.fifo())), self.shell("w/1", "true")])
        ports.release(made.used)  # as the kernel does when the agent ends
        with self.assertRaises(OSError):
            ports.reserve(4)
        pathlib.Path(self.fifo()).write_text("end\n")
        collect(made)
        wait_for(lambda: self.is_free(5), "all ports are free")

    def is_free(self, count):
        """Report whether so many ports are free."""
        with contextlib.suppress(OSError):
            ports.release(ports.reserve(count))
            return True
        return False

    def fifo(self):
        """Return the path of a pipe."""
        path = os.path.join(self.folder, "fifo")
        if not os.path.exists(path):
            os.mkfifo(path)
        return path


class TestReach(Case):
    """The test that a place reaches another."""

    def test_finds_an_agent_of_the_job(self):
        """The port is free at once when processes start."""
        made = self.agent()
        port = made.reserve(1)[0]
        made.listen(port, 30)
        for host in ("127.0.0.1", socket.gethostname()):
            self.assertIsNone(made.reach(host, port, 5))
        program = f"import socket; s = socket.socket(); s.bind(('', {port})); s.listen()"
        made.start(1, [{"name": "w/0", "argv": [sys.executable, "-c", program], "env": {}}])
        self.assertEqual(collect(made)[0][0]["code"], 0)

    def test_names_what_failed(self):
        """Nobody, another program, and a proxy that closes."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            answers = [b"", b"HTTP/1.1 400 Bad Request\r\n"]
            thread = threading.Thread(target=serve, args=(server, answers))
            thread.start()
            found = [reach.reach("127.0.0.1", port, self.uid, 0.1) for _ in answers]
            thread.join()
        found.append(reach.reach("127.0.0.1", port, self.uid, 0.1))
        reasons = ["the connection was closed", "something else answered", "Connection refused"]
        advice = "allow traffic between pods of the cluster on ports 20000 to 29999"
        self.assertEqual(found, [f"{reason}; {advice}" for reason in reasons])


def serve(server, answers):
    """Answer connections, each with a text."""
    for answer in answers:
        connection, _ = server.accept()
        with connection:
            connection.sendall(answer)


if __name__ == "__main__":
    unittest.main()
