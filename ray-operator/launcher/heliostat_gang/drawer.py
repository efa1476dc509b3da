"""Draws values of trials in a thread of its own, where the algorithm takes long: the deciding thread has beats to answer meanwhile.

In: which trial wants values, and what draws them. Out: values, or nothing while they are being drawn.
"""

import threading
from typing import Any, Callable, Optional, Tuple

Draw = Callable[[], Any]


class DrawError(Exception):
    """Values that cannot be drawn. Its text is for the user."""


class Drawer:
    """Draws values of one trial at a time, so that each one follows from those before it."""

    def __init__(self, post: Callable[..., None], then: Callable[[], None]) -> None:
        """Take a function that posts, and what is posted when values are there."""
        self._post, self._then = post, then
        self._wanted: Optional[int] = None  # the trial whose values are drawn, or were
        self._outcome: Optional[Tuple[Any, Optional[Exception]]] = None

    def is_drawing(self) -> bool:
        """Report whether values are being drawn."""
        return self._wanted is not None and self._outcome is None

    def take(self, wanted: int, draw: Draw) -> Any:
        """Return the values of a trial, or None while those of any trial are being drawn. Raise DrawError where they cannot be drawn."""
        if self.is_drawing():
            return None
        former, outcome = self._wanted, self._outcome
        self._wanted = self._outcome = None
        if outcome is None or former != wanted:  # values of a trial that no longer wants them are drawn again
            self._wanted = wanted
            threading.Thread(target=self._run, args=(draw,), name="tune-draw", daemon=True).start()
            return None
        values, error = outcome
        if error is not None:
            raise DrawError(f"draw the values of a trial: {error!r}") from error
        return values

    def _run(self, draw: Draw) -> None:
        try:
            found = draw(), None
        except Exception as error:  # whatever the algorithm raises: the attempt ends with it
            found = None, error
        self._post(self._finish, found)

    def _finish(self, outcome: Tuple[Any, Optional[Exception]]) -> None:
        self._outcome = outcome
        self._then()
