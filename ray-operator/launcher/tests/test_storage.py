"""Tests of the directory of a study: its lock, its journal and its table."""

import csv
import errno
import io
import json
import os
import pathlib
import random
import sys
import tempfile
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

from heliostat_gang import storage  # noqa: E402  the paths above are where these are
from heliostat_gang.trials import FAILED, RUNNING, SUCCEEDED, Trial  # noqa: E402
from studies import parameter, tune  # noqa: E402


class Case(unittest.TestCase):
    """Has a directory."""

    def setUp(self):
        found = tempfile.TemporaryDirectory()
        self.addCleanup(found.cleanup)
        self.directory = found.name
        synced = mock.patch("os.fsync")  # no test ends the machine
        synced.start()
        self.addCleanup(synced.stop)

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        return pathlib.Path(self.path(name)).read_bytes()

    def write(self, name, data):
        pathlib.Path(self.path(name)).write_bytes(data)

    def lock(self, uid="u", attempt=1):
        return storage.Lock(self.directory, {"job": "train", "uid": uid, "attempt": attempt})


class Locks(Case):
    def locks(self):
        return sorted(name for name in os.listdir(self.directory) if name.startswith("lock."))

    def test_one_has_it_and_another_one_learns_who(self):
        first, second = self.lock(), self.lock("other")
        self.assertIsNone(first.take(0))
        holder = second.take(1)
        self.assertEqual({name: holder[name] for name in ("job", "uid", "attempt", "released")},
                         {"job": "train", "uid": "u", "attempt": 1, "released": False})

    def test_one_that_writes_its_counter_keeps_it(self):
        first, second = self.lock(), self.lock("other")
        first.take(0)
        for moment in range(0, 300, 2):
            first.beat(moment)
            self.assertIsNotNone(second.take(moment))

    def test_one_that_does_not_loses_it_after_the_lease(self):
        first, second = self.lock(), self.lock("other")
        first.take(0)
        self.assertIsNotNone(second.take(1000))  # by its own clock it begins to look now
        self.assertIsNotNone(second.take(1000 + storage.LEASE_SECONDS - 1))
        self.assertIsNone(second.take(1000 + storage.LEASE_SECONDS))
        self.assertEqual(self.locks(), ["lock.2"])
        with self.assertRaisesRegex(storage.LostError, "another driver has taken the storage"):
            first.check(1)

    def test_a_released_one_is_taken_at_once(self):
        first, second = self.lock(), self.lock("other")
        first.take(0)
        first.release(1)
        self.assertIsNone(second.take(2))
        first.release(3)  # it is no longer its own
        second.check(4)

    def test_a_former_attempt_of_the_same_job_has_ended(self):
        self.lock(attempt=1).take(0)
        self.assertIsNone(self.lock(attempt=2).take(1))
        self.assertIsNotNone(self.lock(attempt=1).take(2))

    def test_one_that_could_not_write_for_long_has_lost_it(self):
        first = self.lock()
        first.take(0)
        first.check(storage.HELD_SECONDS - 1)
        with self.assertRaisesRegex(storage.LostError, "could not be renewed"):
            first.check(storage.HELD_SECONDS)
        self.assertLess(storage.HELD_SECONDS, storage.LEASE_SECONDS)

    def test_one_whose_directory_is_gone_has_lost_it_too(self):
        lock = self.lock()
        lock.take(0)
        with mock.patch("os.listdir", side_effect=OSError(errno.ESTALE, "stale")), self.assertRaisesRegex(storage.LostError, "could not be renewed"):
            lock.beat(storage.HELD_SECONDS)

    def test_a_lock_that_a_crash_left_at_any_byte_expires(self):
        self.lock().take(0)
        whole = self.read("lock.1")
        for size in range(0, len(whole), 7):
            with self.subTest(size):
                for name in self.locks():
                    os.unlink(self.path(name))
                self.write("lock.9", whole[:size])
                other = self.lock("other")
                self.assertIsNotNone(other.take(0))
                self.assertIsNone(other.take(storage.LEASE_SECONDS))
                self.assertEqual(self.locks(), ["lock.10"])

    def test_nobody_has_it_beside_another_one(self):
        chance = random.Random(1)
        for _ in range(25):
            for name in self.locks():
                os.unlink(self.path(name))
            drivers = [self.lock(f"u{number}") for number in range(4)]
            held, now = set(), 0.0
            for _ in range(40):
                now += chance.uniform(0, 20)
                driver = chance.choice(drivers)
                if driver in held:
                    try:
                        driver.check(now)
                        driver.beat(now)
                    except storage.LostError:
                        held.discard(driver)
                elif driver.take(now) is None:
                    for other in held:
                        with self.assertRaises(storage.LostError):
                            other.check(now)
                    held = {driver}

    def test_one_that_creates_a_lower_lock_late_does_not_have_it(self):
        first, second = self.lock(), self.lock("other")
        first.take(0)
        first.release(0)
        number, content = second._highest()
        self.assertIsNone(self.lock("third").take(1))  # lock.2
        self.lock("third").release(1)
        self.write("lock.3", json.dumps({"uid": "third", "attempt": 1}).encode())
        os.unlink(self.path("lock.2"))
        real, calls = second._highest, []

        def highest():
            calls.append(1)
            return (number, content) if len(calls) == 1 else real()

        second._highest = highest
        self.assertIsNotNone(second.take(2))
        self.assertEqual(self.locks(), ["lock.3"])


class Journals(Case):
    LINES = [json.dumps({"op_code": number, "text": "é" * number}).encode() + b"\n" for number in range(6)]

    def test_a_crash_at_any_byte_leaves_whole_operations(self):
        whole = b"".join(self.LINES)
        ends = {sum(map(len, self.LINES[:count])) for count in range(len(self.LINES) + 1)}
        for size in range(len(whole) + 1):
            self.write("j", whole[:size])
            self.assertEqual(storage.mend_journal(self.path("j")), size not in ends)
            self.assertEqual(self.read("j"), whole[: max(end for end in ends if end <= size)])

    def test_what_a_disk_left_of_a_block_is_cut_off(self):
        for rest in (b"\0" * 512, b"{\n", b"\n", b"12\n", b"\xff\xfe\n"):
            self.write("j", self.LINES[1] + rest)
            self.assertTrue(storage.mend_journal(self.path("j")))
            self.assertEqual(self.read("j"), self.LINES[1])

    def test_a_broken_line_before_the_last_one_is_refused(self):
        self.write("j", self.LINES[1] + b"{\n" + self.LINES[2])
        with self.assertRaisesRegex(storage.StorageError, "line 2 of .* is broken"):
            storage.mend_journal(self.path("j"))

    def test_one_that_is_not_there_is_left_alone(self):
        self.assertFalse(storage.mend_journal(self.path("j")))


class Directories(Case):
    def test_one_is_made(self):
        storage.make_directory(self.path("a/b"))
        self.assertEqual(os.listdir(self.path("a/b")), [])

    def test_a_path_that_cannot_be_written_is_named(self):
        self.write("file", b"")
        with self.assertRaisesRegex(storage.StorageError, "storage .*/file/x cannot be written: Not a directory"):
            storage.make_directory(self.path("file/x"))


class Tables(Case):
    TUNE = tune(parameters=[parameter("x"), parameter("o", "Categorical", values=["a", "b"])])
    TRIALS = [
        Trial(0, SUCCEEDED, {"o": "a", "x": "0.5"}, 0.25, 1000.0, 41.23, 1),
        Trial(1, FAILED, {"x": "1", "o": "b"}, None, 1000.0, 3, 1, 'worker/0: said "no",\nand ended'),
        Trial(2, RUNNING, {"x": "2"}, None, 1000.0, 0, 2),
    ]

    def rows(self):
        return storage.table(self.TUNE, self.TRIALS, lambda seconds: f"@{seconds:.0f}")

    def test_a_line_a_trial(self):
        self.assertEqual(storage.print_csv(self.rows()), """trial,state,loss,x,o,started,seconds,attempt,message
0,Succeeded,0.25,0.5,a,@1000,41.2,1,
1,Failed,,1,b,@1000,3.0,1,"worker/0: said ""no"",
and ended"
2,Running,,2,,@1000,,2,
""")
        self.assertEqual(list(csv.reader(io.StringIO(storage.print_csv(self.rows())))), self.rows())

    def test_columns_for_people(self):
        self.assertEqual(storage.print_lines(self.rows())[:3], [
            "trial  state      loss  x    o  started  seconds  attempt  message",
            "0      Succeeded  0.25  0.5  a  @1000    41.2     1        -",
            '1      Failed     -     1    b  @1000    3.0      1        worker/0: said "no", and ended',
        ])

    def test_a_crash_leaves_the_former_table(self):
        storage.write_table(self.directory, "old\n")
        self.write("trials.csv.new", b"ne")
        self.assertEqual(self.read("trials.csv"), b"old\n")
        storage.write_table(self.directory, "new\n")
        self.assertEqual((self.read("trials.csv"), os.listdir(self.directory)), (b"new\n", ["trials.csv"]))

    def test_of_many_the_best_and_the_last_are_shown(self):
        many = [Trial(number, SUCCEEDED, {}, float(number)) for number in range(1000)]
        for direction, expected in (("Minimize", [*range(100), *range(900, 1000)]), ("Maximize", [*range(900, 1000)])):
            self.assertEqual([trial.number for trial in storage.choose(many, direction)], expected)


if __name__ == "__main__":
    unittest.main()
