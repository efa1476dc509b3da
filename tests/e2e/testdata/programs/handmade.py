"""Starts a command in four places of a Ray cluster and waits for its ends, as one writes it where there are no gangs.

usage: handmade.py COMMAND...; each process finds its rank, and where rank 0 may listen.
"""

import os
import socket
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

RANKS = 4


@ray.remote(num_cpus=1)
class Place:
    """Runs one process."""

    def address(self):
        with socket.socket() as free:
            free.bind(("", 0))
            return ray.util.get_node_ip_address(), str(free.getsockname()[1])

    def run(self, command, rank, host, port):
        ranks = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": host, "MASTER_PORT": port}
        return subprocess.run(command, env={**os.environ, **ranks}).returncode


def main():
    ray.init()
    group = placement_group([{"CPU": 1}] * RANKS, strategy="SPREAD")
    ray.get(group.ready())
    places = [
        Place.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)).remote()
        for rank in range(RANKS)
    ]
    host, port = ray.get(places[0].address.remote())
    codes = ray.get([place.run.remote(sys.argv[1:], rank, host, port) for rank, place in enumerate(places)])
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
