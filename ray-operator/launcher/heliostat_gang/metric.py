"""Finds the values of a metric in the output of a program.

In: bytes, as the program wrote them, in pieces of any size. Out: values, one for each line that has the metric.

It holds at most one line of a bounded length, whatever the program writes.
"""

import math
import re
from typing import List, Optional

# How much of a line is read.
LONGEST_LINE = 64 << 10

_NUMBER = rb"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?))"
# A number ends here: not within a word, nor before a decimal point that goes on.
_BEHIND = rb"(?![A-Za-z0-9_]|\.[A-Za-z0-9])"
# What colours a line, or moves in it.
_CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
_END = re.compile(rb"[\r\n]")


class Reader:
    """Reads the output of one process."""

    def __init__(self, name: str, direction: str, kind: str) -> None:
        """Look for a metric, of which the Last or the Best value counts."""
        text = re.escape(name.encode())
        self._pattern = re.compile(
            rb"(?<![A-Za-z0-9_./-])" + text + rb"\s*=\s*(" + _NUMBER + rb")" + _BEHIND
            + rb'|"' + text + rb'"\s*:\s*"?(' + _NUMBER + rb")" + _BEHIND
        )
        self._is_maximised = direction == "Maximize"
        self._is_best = kind == "Best"
        self.restart()

    def restart(self) -> None:
        """Begin with a new round: nothing of the one before counts."""
        self._rest = b""
        self._is_cut = False  # the rest of a line is passed over
        self.value: Optional[float] = None
        self.steps = 0

    def read(self, data: bytes) -> List[float]:
        """Take a piece of output, and return the values of the lines that it ends."""
        found = []
        position = 0
        for match in _END.finditer(data):
            self._take(data[position : match.start()])
            position = match.end()
            found += self._end()
        self._take(data[position:])
        return found

    def close(self) -> List[float]:
        """Take the end of the output, and return the value of a last line without an end."""
        return self._end()

    def _take(self, data: bytes) -> None:
        if not self._is_cut:
            room = LONGEST_LINE - len(self._rest)
            self._rest += data[:room]
            self._is_cut = len(data) > room

    def _end(self) -> List[float]:
        line = self._rest + (b"x" if self._is_cut else b"")  # a number at the cut is not whole
        self._rest, self._is_cut = b"", False
        value = None
        for match in self._pattern.finditer(_CONTROL.sub(b"", line)):
            value = float(match.group(1) or match.group(2))
        if value is None:
            return []
        self.steps += 1
        if not self._is_best or self.value is None or math.isnan(self.value) or self._is_better(value):
            self.value = value
        return [value]

    def _is_better(self, value: float) -> bool:
        return value > self.value if self._is_maximised else value < self.value


def describe(name: str) -> str:
    """Return what a reader looks for, for people."""
    return f'a line with {name}=NUMBER, or with "{name}": NUMBER'
