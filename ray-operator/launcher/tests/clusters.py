"""Clusters for the driver that need no Ray: one with agents that are scripted, and one with real agents in this process."""

import concurrent.futures
import tempfile
import threading
import time

from heliostat_gang import agent, driver
from heliostat_gang.groups import SPAN


def facts(number, **more):
    """Return what an agent says of itself."""
    ip = f"10.0.{number // 256}.{number % 256}"
    return {
        "node_id": f"node-{number}", "ip": ip, "host": f"pod-{number}", "pod": f"pod-{number}", "loopback": False, "interface": "eth0",
        "gpus": [], **more,
    }


class Scripted:
    """Places each bundle at once. Calls that have no answer stay open until a test answers them."""

    def __init__(self, gang, post):
        """Take what the driver gives to a cluster."""
        self.gang, self.post = gang, post
        self.calls, self.open_calls, self.reports, self.closed, self.probed = [], {}, [], [], []
        self.beats = {}
        self.ports = 20000
        self.answers = {
            "sweep": lambda *_: 0, "reserve": self.reserve, "listen": lambda *_: None, "reach": lambda *_: None,
            "start": lambda place, number, programs: [None for _ in programs], "stop": lambda *_: None, "kill": lambda *_: None,
        }

    def reserve(self, place, count, avoid):
        """Return ports that no one has."""
        self.ports += count
        return list(range(self.ports - count, self.ports))

    def ask(self, group, *_):
        """Place a group."""
        self.post(self.on_group, group, "placed")

    def open(self, place, group, bundle, resources, then):
        """Start an agent."""
        self.post(then, place, facts(place % SPAN), None)

    def close(self, place):
        """End an agent."""
        self.closed.append(place)

    def call(self, place, method, arguments, then):
        """Call an agent."""
        self.calls.append((place, method, arguments))
        if method in self.answers:
            self.post(then, place, self.answers[method](place, *arguments), None)
        else:
            self.open_calls[place, method] = then

    def reply(self, place, output=(), events=(), running=1):
        """Have an agent return from exchange."""
        self.beats[place] = self.beats.get(place, 0) + 1
        reply = {"beat": self.beats[place], "running": running, "output": list(output), "daemons": [], "events": list(events)}
        self.post(self.open_calls.pop((place, "exchange")), place, reply, None)

    def fail(self, place, method, message, **more):
        """Have a call fail."""
        self.post(self.open_calls.pop((place, method)), place, None, driver.Failure(message, **more))

    def probe(self, node, then):
        """Note which node is looked at."""
        self.probed.append(node)

    def put_report(self, report):
        """Note a report."""
        self.reports.append(report)

    def gather(self, is_gathering):
        """Do nothing."""

    def release(self, group):
        """Do nothing."""


def event(process, code, number=1, lines=(), **more):
    """Return the end of a process."""
    return {"process": process, "round": number, "code": code, "lines": list(lines), "oom": False, "message": "", **more}


class Local(Scripted):
    """Has a real agent in each place, whose programs run on this machine."""

    def __init__(self, gang, post):
        """Take what the driver gives to a cluster."""
        super().__init__(gang, post)
        self.logs = tempfile.mkdtemp(prefix="gang-logs-")
        self.agents = {}
        self.pool = concurrent.futures.ThreadPoolExecutor(16)

    def open(self, place, group, bundle, resources, then):
        """Start an agent."""
        gang = {"uid": self.gang["uid"], "attempt": self.gang["attempt"], "child": place // SPAN}
        self.agents[place] = agent.Agent(gang, self.gang["graceSeconds"], log_dir=self.logs, submission=self.gang["submission"])
        self.post(then, place, facts(place % SPAN, ip="127.0.0.1"), None)

    def close(self, place):
        """End an agent."""
        self.agents.pop(place).close()

    def call(self, place, method, arguments, then):
        """Call an agent."""
        def run():
            try:
                result, failure = getattr(self.agents[place], method)(*arguments), None
            except Exception as error:  # as Ray gives any error to the caller
                result, failure = None, driver.Failure(str(error))
            self.post(then, place, result, failure)

        self.pool.submit(run)

    def shut_down(self):
        """End all agents."""
        for place in list(self.agents):
            self.close(place)
        self.pool.shutdown(wait=False)


class Calm(Scripted):
    """Has agents that send a beat each period, and nothing else."""

    def __init__(self, gang, post):
        """Take what the driver gives to a cluster."""
        super().__init__(gang, post)
        self.due = []
        self.changed = threading.Condition()
        self.period = 5.0
        threading.Thread(target=self._run, daemon=True).start()

    def call(self, place, method, arguments, then):
        """Call an agent."""
        if method != "exchange":
            self.post(then, place, self.answers[method](place, *arguments), None)
            return
        with self.changed:
            self.due.append((time.monotonic() + self.period, place, arguments[0] + 1, then))
            self.changed.notify()

    def _run(self):
        position = 0
        while True:
            with self.changed:
                self.changed.wait_for(lambda: position < len(self.due))
                at, place, beat, then = self.due[position]
                self.due[position] = None
            position += 1
            time.sleep(max(0.0, at - time.monotonic()))
            self.post(then, place, {"beat": beat, "running": 1, "output": [], "daemons": [], "events": []}, None)
