import time
@ray.remote(num_cpus=1)
def task():
    time.sleep(1)
ray.get([task.remote() for _ in range(2)])
result = time.time()
