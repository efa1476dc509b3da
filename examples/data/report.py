"""Reads, transforms, filters and sums up rows with Ray Data."""

import numpy
import ray


def enrich(batch: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    batch["shop"] = batch["id"] % 3
    batch["price"] = (batch["id"] * 7919) % 100
    return batch


def main() -> None:
    ray.init()
    ray.data.DataContext.get_current().enable_progress_bars = False
    sales = ray.data.range(10_000, override_num_blocks=4).map_batches(enrich).filter(lambda sale: sale["price"] >= 50)
    totals = sales.groupby("shop").sum("price").take_all()
    for row in sorted(totals, key=lambda row: row["shop"]):
        print(f"shop {row['shop']}: {row['sum(price)']}")
    assert sum(row["sum(price)"] for row in totals) == 372_500


main()
