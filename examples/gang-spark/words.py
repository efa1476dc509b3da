"""Counts words, and joins two tables by a shuffle. It names no master, no address and no size: the gang gives them."""

import argparse
from operator import add

from pyspark.sql import SparkSession


def main() -> None:
    """Print how often words occur, and the sum of a join."""
    options = argparse.ArgumentParser()
    options.add_argument("--lines", type=int, default=100_000)
    options.add_argument("--parts", type=int, default=16)
    given = options.parse_args()
    spark = SparkSession.builder.appName("words").getOrCreate()

    lines = spark.sparkContext.range(given.lines, numSlices=given.parts).map(lambda n: "the fox" if n % 2 else "the dog")
    counts = lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(add).collect()
    print("words:", ", ".join(f"{word} {count}" for word, count in sorted(counts)), flush=True)

    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)  # so that both tables are shuffled
    orders = spark.range(given.lines, numPartitions=given.parts).selectExpr("id", "id % 100 as customer")
    customers = spark.range(100).selectExpr("id as customer", "id * 2 as rate")
    total = orders.join(customers, "customer").groupBy().sum("rate").first()[0]
    print("join:", total, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
