"""The report: what the gang does, for the operator.

In: the state of the rounds. Out: at most 4,096 bytes of JSON, which a writer takes at most once a second.

Writing never makes the driver wait, as the head may be away for long.
"""

import json
import threading
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from .rounds import Cause

MAX_BYTES = 4096
# How many characters the texts may have, and how many lines there are at most.
TEXT, NAME, LINE, LINES = 400, 253, 300, 20
# The largest numbers that a report may have: of rounds and restarts, and of places.
MOST_ROUNDS, MOST_PLACES = 99_999, 1024
PERIOD_SECONDS = 1.0
RETRY_SECONDS = 2.0
# How long the last report is tried, and the pause between two tries.
LAST_SECONDS, LAST_RETRY_SECONDS = 3.0, 0.3


class Page(NamedTuple):
    """Where the program serves a page of its own."""

    pod: str
    port: int


def encode(state: Mapping[str, Any], waiting: str, offset: float, page: Optional[Page] = None, tune: Optional[Dict[str, Any]] = None) -> bytes:
    """Return the report of a state as JSON. offset is what its times lack of Unix time. tune is what only trials have."""
    started, cause = state["started"], state["last"]
    report = {
        "version": 1,
        **{name: state[name] for name in ("state", "round", "restarts", "losses", "replicas", "ready")},
        "started": 0 if started is None else int(started + offset),
        "waiting": _cut(waiting, TEXT),
        "last": None if cause is None else _end(cause, offset),
        "lost": [_cut(pod, NAME) for pod in state["lost"]],
        "page": None if page is None else {"pod": _cut(page.pod, NAME), "port": page.port},
    }
    best: Dict[str, Any] = {}
    if tune is not None:
        report["tune"] = tune
        best = tune["best"] or {}
    end = report["last"] or {"lines": [], "message": ""}
    while True:
        data = json.dumps(report, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        if len(data) <= MAX_BYTES:
            return data
        if end["lines"]:
            del end["lines"][0]
        elif report["lost"]:
            del report["lost"][0]
        elif best.get("parameters"):
            best["parameters"] = {}
        else:
            report["waiting"], end["message"] = _cut(report["waiting"], 100), _cut(end["message"], len(end["message"]) // 2)


def _end(cause: Cause, offset: float) -> Dict[str, Any]:
    return {
        "time": int(cause.time + offset),
        "kind": cause.kind,
        "process": _cut(cause.process, NAME),
        "pod": _cut(cause.pod, NAME),
        "node": _cut(cause.host, NAME),
        "code": cause.code,
        "message": _cut(cause.message, TEXT),
        "lines": [_cut(line, LINE) for line in cause.lines[-LINES:]],
    }


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(0, length - 1)] + "…"


class Reporter:
    """Writes the newest report in a thread of its own."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        """Take what writes a report. It may wait, and raise any error: then the report is written again."""
        self._put = put
        self._changed = threading.Condition()
        self._wanted: Optional[bytes] = None
        self._written: Optional[bytes] = None
        self._is_last = False
        threading.Thread(target=self._run, name="gang-report", daemon=True).start()

    def write(self, report: bytes) -> None:
        """Write a report, unless a newer one comes before."""
        with self._changed:
            if report != self._wanted:
                self._wanted = report
                self._changed.notify_all()

    def close(self, report: bytes) -> bool:
        """Write the last report, and return whether it was written in time."""
        with self._changed:
            self._wanted, self._is_last = report, True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._written == report, LAST_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted != self._written)
                report = self._wanted
            is_written = True
            try:
                self._put(report or b"")
            except Exception:  # whatever Ray raises while its head is away
                is_written = False
            with self._changed:
                if is_written:
                    self._written = report
                    self._changed.notify_all()
                elif self._is_last:
                    self._changed.wait(LAST_RETRY_SECONDS)
                self._changed.wait_for(lambda: self._is_last, PERIOD_SECONDS if is_written else RETRY_SECONDS)
