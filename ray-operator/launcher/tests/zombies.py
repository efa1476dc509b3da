"""Plays rounds of a gang below a process 1 that reaps nothing, as in a pod, and counts the zombies that are there then.

usage: unshare --pid --fork --mount-proc python3 zombies.py ROUNDS
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from processes import LEAVES_DAEMONS, collect

from heliostat_gang import agent, sweep

AT_MOST = 10
# Four ways in which a process leaves others: it ends by itself, by a signal, beside a child that goes on, and beside daemons.
PROGRAMS = ("(setsid true &); exit 0", "true & kill -KILL $$", "setsid sleep 60 & exit 3", LEAVES_DAEMONS.replace("{mark}", "60"))


def play(rounds):
    """Play rounds with one agent: each ends all programs once the third one has failed."""
    with tempfile.TemporaryDirectory() as folder:
        made = agent.Agent({"uid": "zombies", "attempt": 1, "child": 0}, 0.1, log_dir=folder, submission="sub", beat=0.2)
        for number in range(1, rounds + 1):
            programs = [{"name": f"w/{at}", "argv": ["sh", "-c", text], "env": {}} for at, text in enumerate(PROGRAMS)]
            failures = made.start(number, programs)
            if any(failures):
                raise SystemExit(f"round {number}: {failures}")
            events, _ = collect(made, lambda event, number=number: event["process"] == "w/2" and made.stop(number))
            if len(events) != len(PROGRAMS):
                raise SystemExit(f"round {number}: {events}")
            for log in pathlib.Path(folder).iterdir():
                log.unlink()
        count(rounds, "with the agent")
        made.close()


def count(rounds, when):
    """Fail where there are too many zombies."""
    found = [process.name for process in sweep.read_processes().values() if process.is_zombie]
    print(f"{len(found)} zombies {when} after {rounds} rounds of {len(PROGRAMS)} processes: {found}", flush=True)
    if len(found) > AT_MOST:
        os._exit(1)


def main():
    """As process 1, start what plays the rounds, and wait for it without reaping."""
    rounds = int(sys.argv[1])
    if os.getpid() != 1:
        play(rounds)
        return
    child = subprocess.Popen([sys.executable, "-B", __file__, sys.argv[1]], stdin=subprocess.DEVNULL)
    ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # the child stays a zombie
    count(rounds, "without it")
    os._exit(ended.si_status)


if __name__ == "__main__":
    main()
