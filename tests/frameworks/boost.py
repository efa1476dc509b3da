"""Trains one model on all workers, in the form of XGBoost's example of its collective. Rank 0 starts the tracker."""

import hashlib
import os
import threading

import numpy
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker


def start_tracker():
    tracker = RabitTracker(
        n_workers=int(os.environ["WORLD_SIZE"]),
        host_ip=os.environ["MASTER_ADDR"],
        port=int(os.environ["MASTER_PORT"]),
        sortby="task",
    )
    tracker.start()
    waiting = threading.Thread(target=tracker.wait_for)
    waiting.start()
    return waiting


def train():
    rank, ranks = collective.get_rank(), collective.get_world_size()
    random = numpy.random.default_rng(0)
    inputs = random.normal(size=(400, 5))
    targets = inputs.sum(axis=1) + random.normal(size=400) / 10
    part = xgboost.DMatrix(inputs[rank::ranks], targets[rank::ranks])
    model = xgboost.train({"tree_method": "hist", "max_depth": 3, "nthread": 1}, part, num_boost_round=10)
    digest = hashlib.sha256(model.save_raw(raw_format="json")).hexdigest()
    print(f"rank {rank} of {ranks}: model {digest}", flush=True)


def main():
    waiting = start_tracker() if os.environ["RANK"] == "0" else None
    with collective.CommunicatorContext(
        dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"],
        dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]),
        dmlc_task_id=os.environ["DMLC_TASK_ID"],
    ):
        train()
    if waiting:
        waiting.join()


if __name__ == "__main__":
    main()
