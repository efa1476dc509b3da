"""Counts steps for ever, saves its count, and goes on from what was saved when it is started again.

It stands for programs that are slow to end: with --save-seconds it needs that long after SIGTERM. With --daemon it leaves
a process in a session of its own, as programs do that start servers. SIGUSR1 makes it exit with 3, and SIGUSR2 makes it
take memory until something ends it.
"""

import argparse
import os
import signal
import sys
import time


def read(path):
    try:
        with open(path) as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def write(path, step):
    with open(path + ".part", "w") as file:
        file.write(str(step))
    os.replace(path + ".part", path)


def start_daemon():
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        time.sleep(1)


def take_memory():
    taken = []
    while True:
        taken.append(os.urandom(4096) * 2048)
        time.sleep(0.05)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--name", required=True, help="of this process among those that save to one directory")
    arguments.add_argument("--seconds", type=float, default=0.1, help="that a step takes")
    arguments.add_argument("--steps", type=int, default=sys.maxsize)
    arguments.add_argument("--save-seconds", type=float, default=0)
    arguments.add_argument("--daemon", action="store_true")
    options = arguments.parse_args()
    path = os.path.join(os.environ["CHECKPOINT_DIR"], options.name)

    def log(what):
        with open(path + ".log", "a") as file:
            file.write(what + "\n")

    def save_and_exit(*_):
        time.sleep(options.save_seconds)
        write(path, step)
        log(f"ended {step}")
        sys.exit(0)

    if options.daemon:
        start_daemon()
    step = read(path)
    signal.signal(signal.SIGTERM, save_and_exit)
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3))
    signal.signal(signal.SIGUSR2, lambda *_: take_memory())
    log(f"start {step}")
    while step < options.steps:
        time.sleep(options.seconds)
        step += 1
        if not options.save_seconds:
            write(path, step)
            log(f"saved {step}")
        print(f"{options.name} step {step}", flush=True)


if __name__ == "__main__":
    main()
