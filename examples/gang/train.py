"""Fits a network to points, in as many processes as there are. Rank 0 writes a checkpoint after each epoch, and a run that finds one
goes on from there."""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def load(file: pathlib.Path, model: nn.Module) -> int:
    if not file.exists():
        return 0
    state = torch.load(file)
    model.load_state_dict(state["model"])
    return state["epoch"]


def save(file: pathlib.Path, epoch: int, model: nn.Module) -> None:
    """Writes beside the last checkpoint and takes its place at once, so that a half-written one is never found."""
    fresh = file.with_suffix(".new")
    torch.save({"epoch": epoch, "model": model.state_dict()}, fresh)
    fresh.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    options = parser.parse_args()
    file = options.checkpoints / f"{os.environ['HELIOSTAT_JOB_NAME']}.pt"

    dist.init_process_group("gloo")  # nccl with GPUs; it reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
    epoch = load(file, model)
    print(f"rank {rank} of {dist.get_world_size()} begins after epoch {epoch}", flush=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    points = torch.rand(1000, 1, generator=torch.Generator().manual_seed(rank)) * 2 - 1
    while epoch < options.epochs:
        for part in points.split(50):
            optimizer.zero_grad()
            loss = ((model(part) - torch.sin(3 * part)) ** 2).mean()
            loss.backward()  # averages the gradients of all ranks
            optimizer.step()
        epoch += 1
        if rank == 0:
            save(file, epoch, model)
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


main()
