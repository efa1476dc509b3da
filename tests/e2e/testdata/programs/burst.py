import time
@ray.remote(num_cpus=1, max_retries=0)
def task(i):
    time.sleep(3)
    return i
result = ray.get([task.remote(i) for i in range(4)])
