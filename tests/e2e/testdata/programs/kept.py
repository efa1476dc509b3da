import time
@ray.remote(num_cpus=1, max_retries=0)
def make():
    return bytes(1 << 20)
kept = make.remote()
ray.wait([kept], fetch_local=False)
time.sleep(12) # more than twice the idle time
result = len(ray.get(kept))
