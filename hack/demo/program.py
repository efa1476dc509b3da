"""The demo's program: tasks spread over the workers, an actor, an object that crosses from one to the other.

It runs as a ClusterJob. It prints the names of the pods that computed and the sum they found, and fails if
either is not as it must be.
"""

import socket
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

TASKS = 20
NUMBERS = 1_000_000


@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def partial_sum(start: int, end: int) -> tuple[str, int]:
    time.sleep(0.2)  # long enough to be seen on both workers
    return socket.gethostname(), sum(range(start, end))


@ray.remote(num_cpus=0)
class Total:
    """Adds up what the tasks found and remembers who found it."""

    def __init__(self) -> None:
        self.sum, self.tasks = 0, {}

    def add(self, pod: str, part: int) -> None:
        self.sum += part
        self.tasks[pod] = self.tasks.get(pod, 0) + 1

    def result(self) -> tuple[int, dict[str, int]]:
        return self.sum, self.tasks


@ray.remote(num_cpus=0)
def make_block() -> tuple[str, bytes]:
    return socket.gethostname(), b"\x01" * (8 << 20)


@ray.remote(num_cpus=0)
def weigh(made: tuple[str, bytes]) -> tuple[str, str, int]:
    maker, block = made
    return maker, socket.gethostname(), sum(block)


def on(node: dict) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)


def main() -> None:
    ray.init()
    total = Total.remote()
    step = NUMBERS // TASKS
    parts = [partial_sum.remote(i * step, (i + 1) * step) for i in range(TASKS)]
    for pod, part in ray.get(parts):
        ray.get(total.add.remote(pod, part))
    found, tasks = ray.get(total.result.remote())
    for pod, count in sorted(tasks.items()):
        print(f"worker pod {pod} computed {count} tasks")

    workers = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) > 0]
    maker, reader, weight = ray.get(
        weigh.options(scheduling_strategy=on(workers[1])).remote(
            make_block.options(scheduling_strategy=on(workers[0])).remote()
        )
    )
    print(f"an object of {weight >> 20} MiB went from {maker} to {reader}")

    expected = NUMBERS * (NUMBERS - 1) // 2
    print(f"the sum of the numbers below {NUMBERS} is {found}")
    assert found == expected, f"expected {expected}"
    assert len(tasks) >= 2, f"only {sorted(tasks)} computed"
    assert maker != reader, "the object did not leave its node"


main()
