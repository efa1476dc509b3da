import random, time
def task(i): # each its own: when ten calls of one function wait, Ray tells of more of them once a second only
    return ray.remote(num_cpus=1)(lambda: i)
result, waiting = [], []
for i in range({{.Count}}):
    one = task(i)
    time.sleep(1.5 + random.random()) # so that no round of anybody's is met on purpose
    result.append(time.time())
    waiting.append(one.remote())
time.sleep(5)
