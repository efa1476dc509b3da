"""What tests of the agent share: programs, agents in processes of their own, and a look at what is left of them."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LAUNCHER = str(pathlib.Path(__file__).resolve().parents[1])
if LAUNCHER not in sys.path:
    sys.path.insert(0, LAUNCHER)

from heliostat_gang import agent, sweep  # noqa: E402  the path above is where they are

# How long anything may take on a busy machine, in seconds. Nothing here takes long where the code is right.
PATIENCE = 40
# How long programs have to save on SIGTERM. Those that ignore it make a test that long.
GRACE = 3.0

# A program that leaves a daemon which ignores SIGTERM, and has a child with a session of its own. It saves after SIGTERM.
LEAVES_DAEMONS = """
trap 'sleep 0.2; echo saved; exit 0' TERM
(setsid sh -c 'trap "" TERM; while :; do sleep {mark}; done' &)
setsid sleep {mark} &
sleep {mark} &
echo started
wait
"""

# Runs an agent with a driver that answers beats until its standard input ends.
AGENT = """
import json, sys, threading
sys.path.insert(0, sys.argv[1])
from heliostat_gang.agent import Agent
arguments, rounds = json.loads(sys.argv[2])
agent = Agent(**arguments)
def answer():
    beat = 0
    while True:
        beat = agent.exchange(beat)["beat"]
threading.Thread(target=answer, daemon=True).start()
for number, programs in rounds:
    failures = agent.start(number, programs)
    assert not any(failures), failures
print(json.dumps([process.guard for process in agent.processes]), flush=True)
sys.stdin.read()
"""


def wait_for(condition, what):
    """Wait until a condition holds, and fail with what was waited for."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.02)


def send(pid, number):
    """Send a signal to a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Case(unittest.TestCase):
    """Has a job of its own, a folder of logs, and a number by which its processes are found."""

    def setUp(self):
        """Prepare a job, and end at last what the test left."""
        self.mark = str(random.randrange(10**8, 10**9))  # sleep takes it for seconds
        self.uid = "test-" + self.mark
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(self.end_left)

    def left(self):
        """Return the numbers of this test's processes that are there, guards and keepers too."""
        found = []
        for process in sweep.read_processes().values():
            with contextlib.suppress(OSError):
                command = pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()
                environment = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes()
                if process.pid != os.getpid() and self.mark.encode() in command + environment:
                    found.append(process.pid)
        return found

    def end_left(self):
        """End what is left of this test."""
        for pid in self.left():
            send(pid, signal.SIGKILL)

    def assert_none_left(self):
        """Fail unless all processes of this test end."""
        try:
            wait_for(lambda: not self.left(), "all processes end")
        except AssertionError:
            lines = subprocess.run(["ps", "-o", "pid,ppid,stat,args", "-p", ",".join(map(str, self.left()))], capture_output=True)
            self.fail(f"left behind: {lines.stdout.decode()}")

    def assert_programs_end(self):
        """Fail unless all programs of this test end, and their guards. A keeper stays as long as its agent."""
        wait_for(lambda: {name_of(pid) for pid in self.left()} <= {"", sweep.KEEPER_NAME}, "all programs end")

    def shell(self, name, text, **more):
        """Return a program of shell code."""
        return {"name": name, "argv": ["sh", "-c", text.replace("{mark}", self.mark), self.mark], "env": {}, **more}

    def arguments(self, **more):
        """Return what an agent is made with."""
        gang = {"uid": self.uid, "attempt": 1, "child": 0}
        given = {"gang": gang, "grace": GRACE, "log_dir": self.folder, "submission": "sub", "beat": 0.2}
        return {**given, **more}

    def agent(self, **more):
        """Return an agent in this process."""
        made = agent.Agent(**self.arguments(**more))
        self.addCleanup(made.close)
        return made

    def spawn(self, *programs, **more):
        """Run an agent in a process of its own, which starts programs. Return it, and the numbers of guards."""
        given = json.dumps([self.arguments(**more), [[1, programs]]])
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", AGENT, LAUNCHER, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.addCleanup(end_process, process)
        return process, json.loads(process.stdout.readline())

    def keeper(self):
        """Return the number of the keeper."""
        return next(pid for pid in self.left() if name_of(pid) == sweep.KEEPER_NAME)

    def log(self, name, round_number=1):
        """Return what a process has written."""
        path = pathlib.Path(self.folder, f"job-driver-sub-{name.replace('/', '-')}-r{round_number}.log")
        return path.read_text() if path.exists() else ""

    def wait_for_text(self, name, text):
        """Wait until a process has written a text."""
        wait_for(lambda: text in self.log(name), f"{name} writes {text}")


def name_of(pid):
    """Return the name of a process."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def end_process(process):
    """End an agent in a process of its own."""
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def collect(made, on_event=lambda event: None):
    """Answer beats until nothing runs any more. Return the events, and the output of each process."""
    events, output, beat = [], {}, 0
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        reply = made.exchange(beat)
        beat = reply["beat"]
        for process, data in reply["output"]:
            output[process] = output.get(process, b"") + data
        for event in reply["events"]:
            events.append(event)
            on_event(event)
        if not reply["running"]:
            return events, output
    raise AssertionError(f"processes still run after {PATIENCE} s; events: {events}")
