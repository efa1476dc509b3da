import time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
@ray.remote(max_retries=0, num_cpus=1, scheduling_strategy=on(node_id={{printf "%q" .Node}}, soft=False))
def hold():
    os.mknod("/tmp/held")
    while not os.path.exists("/tmp/release"):
        time.sleep(0.05)
    os.remove("/tmp/release")
    return socket.gethostname()
try:
    result = ray.get(hold.remote())
except ray.exceptions.RayError as e:
    result = type(e).__name__
