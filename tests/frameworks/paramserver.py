"""Fits a line by a parameter server, with a scheduler, servers and workers that find each other by their arguments.

The scheduler gives each worker its number, and waits until all have come. A server holds one parameter: workers pull it,
and push gradients. Workers end by themselves; the others serve until they are ended.
"""

import argparse
import random
import socket
import time
from xmlrpc.client import ServerProxy
from xmlrpc.server import SimpleXMLRPCServer


def address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


class Scheduler:
    def __init__(self, workers):
        self.workers, self.came = workers, 0

    def register(self):
        self.came += 1
        return self.came - 1

    def is_complete(self):
        return self.came == self.workers


class Parameter:
    def __init__(self):
        self.value = 0.0

    def pull(self):
        return self.value

    def push(self, gradient):
        self.value -= 0.1 * gradient
        return self.value


class IPv6Server(SimpleXMLRPCServer):
    address_family = socket.AF_INET6


def serve(where, instance):
    host, port = address(where)
    server = (IPv6Server if ":" in host else SimpleXMLRPCServer)((host, port), logRequests=False)
    server.register_instance(instance)
    print(f"serves at {where}", flush=True)
    server.serve_forever()


def connect(where, method):
    """Connects to a server that may still be starting, and calls a method of it."""
    host, port = address(where)
    for attempt in range(100):
        try:
            proxy = ServerProxy(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
            return proxy, getattr(proxy, method)()
        except ConnectionError:
            time.sleep(0.1)
    raise SystemExit(f"nobody serves at {where}")


def work(scheduler, servers):
    proxy, number = connect(scheduler, "register")
    while not proxy.is_complete():
        time.sleep(0.05)
    slope, offset = (connect(where, "pull")[0] for where in servers)
    draw = random.Random(number)
    for _ in range(200):
        x = draw.uniform(-1, 1)
        error = slope.pull() * x + offset.pull() - (3 * x + 1)
        slope.push(error * x)
        offset.push(error)
    print(f"worker {number}: slope {slope.pull():.1f}, offset {offset.pull():.1f}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--role", choices=["scheduler", "server", "worker"], required=True)
    arguments.add_argument("--scheduler", help="host and port of the scheduler")
    arguments.add_argument("--servers", help="hosts and ports of both servers, with a comma")
    arguments.add_argument("--index", type=int, help="which of the servers this is")
    arguments.add_argument("--workers", type=int, help="how many workers the scheduler waits for")
    options = arguments.parse_args()
    if options.role == "scheduler":
        serve(options.scheduler, Scheduler(options.workers))
    elif options.role == "server":
        serve(options.servers.split(",")[options.index], Parameter())
    else:
        work(options.scheduler, options.servers.split(","))


if __name__ == "__main__":
    main()
