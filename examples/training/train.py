"""Fits a line to points by gradient descent. The gradients come from tasks on the workers; after each epoch a checkpoint
is written, and a run that finds one goes on from there."""

import argparse
import json
import os
import pathlib
import time

import numpy
import ray

SLOPE, OFFSET = 3.0, -1.0


@ray.remote(num_cpus=1)
def gradient(shard: int, slope: float, offset: float) -> tuple[float, float]:
    time.sleep(0.2)  # a real one takes longer
    x = numpy.random.default_rng(shard).uniform(-1, 1, 10_000)
    error = slope * x + offset - (SLOPE * x + OFFSET)
    return float((2 * error * x).mean()), float((2 * error).mean())


def load(file: pathlib.Path) -> dict:
    if not file.exists():
        return {"epoch": 0, "slope": 0.0, "offset": 0.0}
    state = json.loads(file.read_text())
    print(f"resuming after epoch {state['epoch']}", flush=True)
    return state


def save(file: pathlib.Path, state: dict) -> None:
    """Writes beside the last checkpoint and takes its place at once, so that a half-written one is never found."""
    fresh = file.with_suffix(".new")
    with fresh.open("w") as out:
        json.dump(state, out)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    options = parser.parse_args()
    file = options.checkpoints / f"{os.environ['HELIOSTAT_JOB_NAME']}.json"
    ray.init()
    state = load(file)
    while state["epoch"] < options.epochs:
        found = ray.get([gradient.remote(shard, state["slope"], state["offset"]) for shard in range(2)])
        state["slope"] -= 0.3 * sum(g[0] for g in found) / len(found)
        state["offset"] -= 0.3 * sum(g[1] for g in found) / len(found)
        state["epoch"] += 1
        save(file, state)
        print(f"epoch {state['epoch']}: {state['slope']:.3f} x {state['offset']:+.3f}", flush=True)
    assert abs(state["slope"] - SLOPE) < 0.1 and abs(state["offset"] - OFFSET) < 0.1, state
    print(f"trained in attempt {os.environ['HELIOSTAT_JOB_ATTEMPT']}")


main()
