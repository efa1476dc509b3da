"""The keeper of a place: a small process that forks a guard for each process of the gang, and reaps it.

In: from the agent, a socket for each guard that it wants. Out: guards.

It is nobody's child, as Ray ends an actor's children with the actor, and PID 1 of a pod reaps nothing. When a guard is
killed, what descends from it falls to the keeper, which ends it. It goes when the agent and all guards are gone. It must
never need a file after its start: the agent's environment may be removed while guards still wait for programs to end.
"""

import gc
import os
import select
import signal
import socket
import sys
from typing import Set, Tuple

if __name__ == "__main__":  # the folder of this file would come before the standard library
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from heliostat_gang import guard, sweep


class Keeper:
    """Forks guards, and ends what those leave that were killed."""

    def __init__(self, channel: socket.socket, grace: float) -> None:
        """Serve the agent at the other end of a socket."""
        self.channel = channel
        self.grace = grace
        self.is_agent_there = True
        self.guards: Set[int] = set()
        self.has_orphans = False
        self.kill_at = 0.0
        self.terminated: Set[Tuple[int, int]] = set()
        # Signals that end a process group or a pod are for the agent: the keeper goes after all others.
        self.wake = guard.wake_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def serve(self) -> None:
        """Fork guards until the agent is gone, and reap until there are no children."""
        while self.is_agent_there or self.has_children():
            poller = select.poll()
            poller.register(self.wake, select.POLLIN)
            if self.is_agent_there:
                poller.register(self.channel, select.POLLIN)
            for descriptor, _ in poller.poll(guard.LOOK_SECONDS * 1000 if self.has_orphans else None):
                if descriptor == self.wake:
                    os.read(self.wake, 4096)
                else:
                    self.receive()
            self.reap()
            if self.has_orphans:
                self.end_orphans()

    def receive(self) -> None:
        """Fork a guard for a socket of the agent."""
        try:
            _, descriptors = guard.receive(self.channel, 1, 1)
        except ConnectionError:
            descriptors = []
        if not descriptors:
            self.is_agent_there = False
            return
        try:
            pid = os.fork()
        except OSError as error:  # there are too many processes
            print(f"fork a guard: {error}", file=sys.stderr)
            os.close(descriptors[0])
            return
        if pid == 0:
            status = 1
            try:
                self.channel.close()
                os.close(self.wake)
                guard.run(socket.socket(fileno=descriptors[0]))
                status = 0
            except ConnectionError:  # the agent has ended before its order came
                status = 0
            finally:
                if status:
                    sys.excepthook(*sys.exc_info())
                os._exit(status)
        os.close(descriptors[0])
        self.guards.add(pid)

    def reap(self) -> None:
        """Take the status of children. One that is no guard, or a guard that did not end in order, means orphans."""
        while self.has_children():
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if (pid not in self.guards or status) and not self.has_orphans:
                self.has_orphans = True
                self.kill_at = guard.now() + self.grace
            self.guards.discard(pid)

    def end_orphans(self) -> None:
        """Send SIGTERM to descendants of guards that are dead, and after the grace SIGKILL."""
        processes = sweep.read_processes()
        roots = [process for process in processes.values() if process.parent == os.getpid() and process.pid not in self.guards]
        orphans = [process for root in roots for process in (root, *sweep.descendants(root.pid, processes))]
        self.has_orphans = bool(orphans)
        for process in orphans:
            if guard.now() >= self.kill_at:
                sweep.send(process, signal.SIGKILL)
            elif (process.pid, process.start) not in self.terminated:
                self.terminated.add((process.pid, process.start))
                sweep.send(process, signal.SIGTERM)

    def has_children(self) -> bool:
        """Return whether there is any child, also one that has ended and is not reaped."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True


def main() -> None:
    """Serve the socket whose descriptor is the first argument, with the grace that is the second, as nobody's child."""
    channel, grace = socket.socket(fileno=int(sys.argv[1])), float(sys.argv[2])
    channel.set_inheritable(False)
    if os.fork():
        os._exit(0)
    os.setsid()
    guard.prctl(guard.PR_SET_NAME, sweep.KEEPER_NAME.encode())
    guard.prctl(guard.PR_SET_CHILD_SUBREAPER, 1)
    os.chdir("/")
    gc.collect()
    gc.disable()
    gc.freeze()  # guards share these pages
    Keeper(channel, grace).serve()


if __name__ == "__main__":
    main()
