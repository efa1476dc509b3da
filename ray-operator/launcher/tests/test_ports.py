"""Tests of ports: who has one, and whether one place reaches another."""

import contextlib
import errno
import os
import pathlib
import random
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
        self.first = free_range(5)
        for name, value in (("DIRECTORY", os.path.join(self.folder, "ports")), ("FIRST", self.first), ("LAST", self.first + 4)):
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
        base = self.first
        with socket.create_server(("127.0.0.1", base + 3)):
            first = self.reserve(2, [base])
            second = self.reserve(1, [base])
            self.assertEqual({*first, *second}, {base + 1, base + 2, base + 4})
            with self.assertRaisesRegex(OSError, f"reserve 2 ports: 1 of {base} to {base + 4} are free"):
                ports.reserve(2)
            self.assertEqual(list(self.reserve(1)), [base])

    def test_leaves_other_files_alone(self):
        """They are no ports."""
        os.mkdir(ports.DIRECTORY)
        for name in ("notes", "70000"):
            pathlib.Path(ports.DIRECTORY, name).touch()
        self.assertEqual(len(self.reserve(5)), 5)

    def test_takes_the_one_that_was_unused_for_longest(self):
        """One that others had at the last look is newer than one that was released before."""
        everything = ports.reserve(5)
        order = [self.first + offset for offset in (2, 0, 4, 1, 3)]
        ports.release({port: everything[port] for port in order})
        self.assertEqual(list(self.reserve(2)), order[:2])
        self.assertEqual(list(self.reserve(2)), order[2:4])

    def test_a_full_disk_leaves_no_port_taken(self):
        """Neither where a file cannot be made, nor where its time cannot be set."""
        makes = os.open

        def make(path, *given):
            if len(os.listdir(ports.DIRECTORY)) == 2:
                raise OSError(errno.ENOSPC, "No space left on device", path)
            return makes(path, *given)

        for name, failure in (("open", make), ("utime", OSError(errno.ENOSPC, "No space left on device"))):
            with self.subTest(name):
                before = os.listdir("/proc/self/fd")
                with mock.patch.object(ports.os, name, side_effect=failure), self.assertRaisesRegex(OSError, "No space left"):
                    ports.reserve(4)
                self.assertEqual(os.listdir("/proc/self/fd"), before)
        self.assertEqual(len(self.reserve(5)), 5)

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

    def test_a_reservation_replaces_the_one_before(self):
        """No process has taken those ports, and a round that is prepared again and again would hold all."""
        made = self.agent()
        for _ in range(4):
            self.assertEqual(len(made.reserve(3)), 3)
        self.assertEqual(len(made.reserved), 3)

    def test_a_guard_holds_no_more_ports_than_it_can_get(self):
        """The kernel passes few descriptors in a message. The agent holds the rest."""
        with mock.patch.object(ports, "LAST", self.first + 299), mock.patch.object(ports, "_is_free", return_value=True):
            made = self.agent()
            made.reserve(300)
            self.assertEqual(made.start(1, [self.shell("w/0", "echo started", stream=True)]), [None])
            self.assertEqual(collect(made)[1], {"w/0": b"started\n"})

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
            found = [self.try_once(port) for _ in answers]
            thread.join()
        found.append(self.try_once(port))
        reasons = ["the connection was closed", "something else answered", "Connection refused"]
        advice = "allow traffic between pods of the cluster on ports 20000 to 29999"
        self.assertEqual(found, [f"{reason}; {advice}" for reason in reasons])

    def try_once(self, port):
        """Return what is found at a port at the first try, however long that takes."""
        clock = mock.Mock(monotonic=mock.Mock(side_effect=[0, 0, 0, 1000]))
        with mock.patch.object(reach, "time", clock):
            return reach.reach("127.0.0.1", port, self.uid, 100)


def free_range(count):
    """Return the first of so many free ports in a row, which other tests on this machine hardly choose."""
    while True:
        first = random.randrange(10003, ports.FIRST - count)
        if all(map(ports._is_free, range(first, first + count))):
            return first


def serve(server, answers):
    """Answer connections, each with a text."""
    for answer in answers:
        connection, _ = server.accept()
        with connection:
            connection.sendall(answer)


if __name__ == "__main__":
    unittest.main()
