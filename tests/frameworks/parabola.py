"""Descends to the least value of (x - 1)², and prints the loss of each step.

It stands for programs whose parameters are tuned. It notes when it begins and ends in a file that all runs share.
"""

import argparse
import os
import signal
import sys
import time


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--number", required=True, help="of this run")
    arguments.add_argument("--x", type=float, required=True, help="where it begins")
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=0.1, help="that a step takes")
    arguments.add_argument("--stubborn", default="", help="the run that diverges, and does not end by SIGTERM")
    options = arguments.parse_args()
    os.makedirs(os.environ["CHECKPOINT_DIR"], exist_ok=True)

    def note(what):
        with open(os.path.join(os.environ["CHECKPOINT_DIR"], "runs"), "a") as file:
            file.write(f"{what} {options.number} {options.x} {time.time()}\n")

    note("began")
    is_stubborn = options.number == options.stubborn
    if is_stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for step in range(options.steps):
        time.sleep(options.seconds)
        loss = 1000.0 + step if is_stubborn else (options.x - 1) ** 2 + options.steps - 1 - step
        print(f"step {step}: loss={loss!r}", flush=True)
    if is_stubborn:
        note("diverged")
        time.sleep(1000)
    note("ended")


if __name__ == "__main__":
    sys.exit(main())
