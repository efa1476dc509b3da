"""Trains a small network on all ranks, in the form of PyTorch's tutorial of DistributedDataParallel.

Each rank reads its part of the data by two processes. Rank 0 saves a checkpoint after each step, and all ranks go on
from it when they are started again. At the end each rank prints the loss of its copy of the network on all data.
"""

import argparse
import itertools
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_data():
    inputs = torch.randn(640, 10, generator=torch.Generator().manual_seed(0))
    return TensorDataset(inputs, inputs.sum(1, keepdim=True).sin())


def save(path, step, model, optimizer):
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".part")
    os.replace(path + ".part", path)


def load(path, model, optimizer):
    if not os.path.exists(path):
        return 0
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["step"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--pause", type=float, default=0, help="seconds between two steps")
    options = arguments.parse_args()
    directory = os.environ["CHECKPOINT_DIR"]
    path = os.path.join(directory, "checkpoint.pt")

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_of = nn.MSELoss()
    step = load(path, model, optimizer)
    print(f"rank {rank} of {ranks} starts at step {step}", flush=True)

    def log(what):
        if rank == 0:
            with open(os.path.join(directory, "log"), "a") as file:
                file.write(what + "\n")

    log(f"start {step}")
    data = make_data()
    sampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=2)
    while step < options.steps:
        epoch, done = divmod(step, len(loader))
        sampler.set_epoch(epoch)
        for inputs, targets in itertools.islice(loader, done, done + options.steps - step):
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            step += 1
            print(f"rank {rank} step {step} loss {loss.item():.5f}", flush=True)
            if rank == 0:
                save(path, step, model, optimizer)
                log(f"saved {step}")
            time.sleep(options.pause)

    with torch.no_grad():
        loss = loss_of(model.module(data.tensors[0]), data.tensors[1])
    print(f"rank {rank} of {ranks} ends with loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
