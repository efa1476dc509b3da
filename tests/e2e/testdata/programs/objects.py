# Objects of a mebibyte each: smaller ones than 100 KiB travel with the answer.
{{template "programs/ahead.py" .}}
make = ray.remote(lambda: bytes(1 << 20))
put = ray.remote(lambda: [ray.put(bytes(1 << 20))])
held = {
    "put by a task": ray.get(put.options(**there).remote())[0],
    "put by the driver": ray.put(bytes(1 << 20)),
    "fetched before": make.options(max_retries=0, **there).remote(),
    "fetched while it drains": make.options(max_retries=0, **there).remote(),
    "returned by a task that may not run twice": make.options(max_retries=0, **there).remote(),
    "returned": make.options(**first).remote(),
}
ray.get(held["fetched before"])
{{template "programs/behind.py"}}
