"""Tests of what is found of a metric in the output of a program."""

import math
import pathlib
import random
import sys
import time
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))

from heliostat_gang import metric  # noqa: E402  the path above is where it is


def reader(name="val_accuracy", direction="Maximize", kind="Last"):
    """Return a reader."""
    return metric.Reader(name, direction, kind)


def read(text, **more):
    """Return all values in a text."""
    found = reader(**more)
    return found.read(text.encode()) + found.close()


class Forms(unittest.TestCase):
    def test_forms_of_a_line(self):
        for line, expected in (
            ("val_accuracy=0.93", [0.93]),
            ("epoch 3: loss=0.2 val_accuracy = .93 lr=1", [0.93]),
            ('{"epoch": 3, "val_accuracy": 0.93}', [0.93]),
            ('{"eval": {"val_accuracy" : "9.3e-1"}}', [0.93]),
            ("val_accuracy=0.93.", [0.93]),
            ("val_accuracy=93%", [93.0]),
            ("val_accuracy=-1e+3", [-1000.0]),
            ("\x1b[1;32mval_accuracy=0.93\x1b[0m", [0.93]),
            ("val_accuracy=0.1 val_accuracy=0.2", [0.2]),
            ("val_accuracy=inf", [math.inf]),
            ("my_val_accuracy=1", []),
            ("eval/val_accuracy=1", []),
            ("val_accuracy=1.2.3", []),
            ("val_accuracy=0x10", []),
            ("val_accuracy=12abc", []),
            ("val_accuracy=information", []),
            ("val_accuracy: 0.93", []),
            ("val_accuracy2=1", []),
            ("Val_accuracy=1", []),
        ):
            with self.subTest(line):
                self.assertEqual(read(line), expected)

    def test_a_value_that_is_no_number(self):
        for line in ("loss=nan", "loss=NaN", '{"loss": NaN}'):
            self.assertTrue(math.isnan(*read(line, name="loss")), line)

    def test_a_name_is_taken_as_it_is(self):
        self.assertEqual(read("a.b=1\naxb=2", name="a.b"), [1.0])

    def test_each_line_is_a_step(self):
        found = reader()
        self.assertEqual(found.read(b"val_accuracy=1\nnothing\rval_accuracy=2\r\nval_accuracy=3"), [1.0, 2.0])
        self.assertEqual((found.close(), found.steps, found.value), ([3.0], 3, 3.0))

    def test_pieces_of_any_size_have_the_same_values(self):
        chance = random.Random(1)
        text = "".join(chance.choice(["val_accuracy=0.25\n", "x" * 99, "\r", '"val_accuracy": 7 ', "\n"]) for _ in range(400)).encode()
        whole = reader()
        expected = whole.read(text) + whole.close()
        for _ in range(20):
            found, values, position = reader(), [], 0
            while position < len(text):
                size = chance.randint(1, 40)
                values += found.read(text[position : position + size])
                position += size
            self.assertEqual(values + found.close(), expected)


class Value(unittest.TestCase):
    def test_the_last_or_the_best_one_counts(self):
        for direction, kind, expected in (
            ("Maximize", "Last", 2), ("Maximize", "Best", 3), ("Minimize", "Best", 1), ("Minimize", "Last", 2),
        ):
            found = reader("m", direction, kind)
            found.read(b"m=nan\nm=3\nm=1\nm=2\n")
            self.assertEqual(found.value, expected, (direction, kind))

    def test_a_new_round_begins_with_nothing(self):
        found = reader()
        found.read(b"val_accuracy=1\nval_accuracy=")
        found.restart()
        self.assertEqual((found.read(b"2\n"), found.value, found.steps), ([], None, 0))


class Bounds(unittest.TestCase):
    def test_only_the_beginning_of_a_line_is_read(self):
        found = reader()
        data = b"x" * 10_000
        for _ in range(1000):
            found.read(data)
        self.assertLessEqual(len(found._rest), metric.LONGEST_LINE)
        self.assertEqual(found.read(b" val_accuracy=1\nval_accuracy=2\n"), [2.0])

    def test_digits_that_are_no_number_take_no_time(self):
        begin = time.monotonic()
        self.assertEqual(read("val_accuracy=" + "1" * 60_000 + "a\n"), [])
        self.assertLess(time.monotonic() - begin, 2.0)

    def test_a_number_that_is_cut_is_none(self):
        for number, expected in (("0.9", [0.9]), ("0.93", [])):
            start = " " * (metric.LONGEST_LINE - len("val_accuracy=0.9")) + f"val_accuracy={number}\n"
            self.assertEqual(read(start), expected)


if __name__ == "__main__":
    unittest.main()
