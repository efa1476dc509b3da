"""Prints a table that a task made, with a package that the image does not have."""

import ray
from tabulate import tabulate


@ray.remote
def table() -> str:
    return tabulate([["head", 1], ["workers", 0]])


ray.init()
print(ray.get(table.remote()))
