"""python -m heliostat_gang: runs the gang, or the trials, of the description that is in this package."""

import json
import os
import signal
import sys
import threading
from typing import Any, Dict

from .console import Console
from .driver import Driver
from .tune import Tuner

VERSION = 1
UNREADABLE = 2
# How long the driver takes at most to leave the cluster.
LEAVE_SECONDS = 5.0


def main() -> None:
    """Run the gang or the trials, and end as they end."""
    description = read_description()
    from .places import Cluster  # it imports Ray, which takes a second

    has_trials = "tune" in description
    console = Console(has_prefix=has_trials or description["output"] == "All")
    driver = (Tuner if has_trials else Driver)(description, Cluster, console)
    # Ray has taken these signals when it was connected.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.post(driver.take_stop))
    result = driver.run()
    leaving = threading.Thread(target=driver.cluster.shut_down, daemon=True)
    leaving.start()
    leaving.join(LEAVE_SECONDS)  # without a head it would wait for one
    sys.stdout.flush()
    sys.stderr.flush()
    if result.signal:
        signal.signal(result.signal, signal.SIG_DFL)
        os.kill(os.getpid(), result.signal)
    os._exit(result.code)


def read_description() -> Dict[str, Any]:
    """Return the description, or end with one line that says why there is none."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "description.json")
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
        if description["version"] != VERSION:
            raise ValueError(f"it has version {description['version']}, and this launcher reads {VERSION}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"gang: read {path}: {error}", file=sys.stderr)
        sys.exit(UNREADABLE)
    return description


if __name__ == "__main__":
    main()
