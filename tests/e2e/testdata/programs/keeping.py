# An actor on a worker, and a task that comes later and needs another worker.
import time
@ray.remote(num_cpus=1)
class Holder:
    def where(self):
        return socket.gethostname()
@ray.remote(num_cpus=1, max_retries=0)
def task():
    return 1
holder = Holder.remote()
before = ray.get(holder.where.remote())
os.mknod("/tmp/holds")
while not os.path.exists("/tmp/more"):
    time.sleep(0.05)
os.remove("/tmp/more")
time.sleep({{.Seconds}})
done = ray.get(task.remote())
result = {"Before": before, "After": ray.get(holder.where.remote()), "Done": done}
