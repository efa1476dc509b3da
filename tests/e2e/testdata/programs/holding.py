# An actor on a worker, without end.
import time
@ray.remote(num_cpus=1)
class Holder:
    def where(self):
        return socket.gethostname()
holder = Holder.remote()
ray.get(holder.where.remote())
os.mknod("/tmp/holds")
while True:
    time.sleep(1)
