"""Starts Spark's Master, two Workers and an application in places of a Ray cluster, as one writes it where there are no gangs.

usage: handspark.py PROGRAM ARGUMENTS...; all places are on one node.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

EXECUTORS = 2


@ray.remote(num_cpus=1)
class Place:
    """Runs processes of Spark."""

    def address(self):
        with socket.socket() as free:
            free.bind(("", 0))
            return ray.util.get_node_ip_address(), str(free.getsockname()[1])

    def begin(self, daemon, *arguments):
        environ = {**os.environ, "SPARK_DAEMON_MEMORY": "256m"}
        self.daemon = subprocess.Popen(["spark-class", f"org.apache.spark.deploy.{daemon}", *arguments], env=environ)

    def wait(self, host, port):
        while True:
            with contextlib.suppress(OSError):
                return socket.create_connection((host, int(port))).close()
            time.sleep(0.1)

    def run(self, command):
        return subprocess.run(command).returncode

    def end(self):
        self.daemon.terminate()
        self.daemon.wait()


def main():
    ray.init()
    group = placement_group([{"CPU": 1}] * (1 + EXECUTORS), strategy="STRICT_PACK")
    ray.get(group.ready())
    first, *others = places = [
        Place.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)).remote()
        for index in range(1 + EXECUTORS)
    ]
    host, port = ray.get(first.address.remote())
    ray.get(first.begin.remote("master.Master", "--host", host, "--port", port, "--webui-port", "0"))
    ray.get(first.wait.remote(host, port))
    master = f"spark://{host}:{port}"
    worker = "--host", host, "--cores", "1", "--memory", "616M", "--webui-port", "0", "--work-dir", "/tmp/handspark", master
    ray.get([place.begin.remote("worker.Worker", *worker) for place in others])
    command = ["spark-submit", "--master", master, "--driver-memory", "512m", "--executor-memory", "512m", *sys.argv[1:]]
    code = ray.get(first.run.remote(command))
    ray.get([place.end.remote() for place in places])
    sys.exit(code)


if __name__ == "__main__":
    main()
