"""A program of a reader: it trains for as many epochs as it is told."""
import argparse
import os

import ray

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=int(os.environ.get("EPOCHS", "1")))
ray.init()
for epoch in range(parser.parse_args().epochs):
    print("epoch", epoch, ray.get(ray.remote(lambda: 1).options(num_cpus=0).remote()))
