"""Spark: counts words, and joins two tables by a shuffle, as each application does that knows no cluster manager.

With --pause each task of the count takes so long. With --measure it waits for as many executors, and prints when its first task
began, and how long the count and the join took. What it prints last is what it found.
"""

import argparse
import os
import time
from operator import add

from pyspark.sql import SparkSession


def main() -> None:
    """Run the application."""
    options = argparse.ArgumentParser()
    options.add_argument("--pause", type=float, default=0.0)
    options.add_argument("--parts", type=int, default=24)
    options.add_argument("--lines", type=int, default=1)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--measure", type=int, default=0)
    given = options.parse_args()
    directory = os.environ.get("CHECKPOINT_DIR", "/tmp")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "drivers"), "a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    spark = SparkSession.builder.appName("words").getOrCreate()
    context = spark.sparkContext
    names = "spark.master", "spark.ui.killEnabled", "spark.master.rest.enabled", "spark.authenticate", "spark.executor.memory"
    print("settings:", *(f"{name}={context.getConf().get(name)}" for name in names), flush=True)
    if given.measure:
        print("first:", context.parallelize([0], 1).map(lambda _: time.time()).first(), flush=True)
        while context._jsc.sc().getExecutorMemoryStatus().size() <= given.measure:  # the driver is one of them
            time.sleep(0.1)
    spark.range(1000, numPartitions=8).selectExpr("sum(id)").collect()  # the first query takes long, wherever it runs

    def words(line: int):
        time.sleep(given.pause)
        with open(os.path.join(directory, "tasks"), "a", encoding="ascii") as file:
            file.write(f"{line}\n")
        return (["the", "fox"] if line % 2 else ["the", "dog"]) * given.lines

    begin = time.monotonic()
    counts = context.range(given.parts, numSlices=given.parts).flatMap(words).map(lambda word: (word, 1)).reduceByKey(add).collect()
    print("words:", *(f"{word} {count}" for word, count in sorted(counts)), flush=True)

    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)  # so that both tables are shuffled
    orders = spark.range(given.rows).selectExpr("id", "id % 100 as customer")
    customers = spark.range(100).selectExpr("id as customer", "id * 2 as rate")
    print("join:", orders.join(customers, "customer").groupBy().sum("rate").first()[0], flush=True)
    print("took:", time.monotonic() - begin, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
