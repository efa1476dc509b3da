# The speed of one round: a driver on the head, whose tasks run on the worker.
import time
@ray.remote(num_cpus=0.1)
def size(text):
    return len(text)
ray.get([size.remote(b"") for _ in range(200)])
begin = time.time()
ray.get([size.remote(b"") for _ in range(1000)])
tasks = 1000 / (time.time() - begin)
large = [os.urandom(16 << 20) for _ in range(8)]
begin = time.time()
for one in large:
    assert ray.get(size.remote(one)) == 16 << 20
result = {"tasks": tasks, "objects": 128 / (time.time() - begin)}
