"""Counts the primes below a number, in tasks on whatever workers there are."""

import argparse

import ray


@ray.remote(num_cpus=1)
def primes(start: int, end: int) -> int:
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(max(start, 2), end))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--below", type=int, required=True)
    below = parser.parse_args().below
    ray.init()
    step = max(1, below // 8)
    found = sum(ray.get([primes.remote(at, min(at + step, below)) for at in range(0, below, step)]))
    print(f"there are {found} primes below {below}")


main()
