import ray.data
ray.data.DataContext.get_current().enable_progress_bars = False
def double(batch):
    return {"twice": batch["id"] * 2, "where": [socket.gethostname()] * len(batch["id"])}
rows = ray.data.range(1000, override_num_blocks=8).map_batches(double, concurrency=2).take_all()
result = {"Sum": int(sum(row["twice"] for row in rows)), "Where": sorted({row["where"] for row in rows})}
