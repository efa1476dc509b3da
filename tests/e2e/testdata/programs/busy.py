# Actors and tasks for the pages to show.
import ray, time
ray.init()
@ray.remote(num_cpus=0)
class Counter:
    def count(self): return 1
@ray.remote(num_cpus=0)
def work(): print('at work'); return 1
counter = Counter.remote()
print(ray.get([counter.count.remote()] + [work.remote() for _ in range(5)]))
time.sleep(3600)
