# Forty tasks in two waves, between which workers have the time to go, and an object of each wave that is
# there at the end: one was put by a task, one returned.
import random, time
random.seed({{.Seed}})
@ray.remote(num_cpus=1, max_retries=0, num_returns=2)
def task(seconds):
    time.sleep(seconds)
    return 1, bytes(1 << 20)
@ray.remote(num_cpus=1, max_retries=0)
def put():
    return [ray.put(bytes(1 << 20))]
def alive():
    return sum(node["Alive"] for node in ray.nodes())
done, kept = 0, []
for tasks in (20, 20):
    numbers, objects = zip(*(task.remote(random.uniform(0.1, 1.5)) for _ in range(tasks)))
    kept.append(objects[0] if kept else ray.get(put.remote())[0])
    if len(kept) == 1:
        os.mknod("/tmp/half")
    done += sum(ray.get(list(numbers)))
    del numbers, objects
    nodes, until = alive(), time.time() + 60
    while alive() >= nodes and time.time() < until: # the next wave finds fewer workers
        time.sleep(0.2)
    time.sleep(random.uniform(0, 3))
result = {"Done": done, "Read": sum(len(one) == 1 << 20 for one in ray.get(kept))}
