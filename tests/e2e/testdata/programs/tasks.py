# Tasks of half a second that nothing may run twice, four at a time, until there is a file that says enough.
import time
@ray.remote(max_retries=0, num_cpus=1)
def work():
    time.sleep(0.5)
    return socket.gethostname()
result = {"done": 0, "lost": 0}
pods, running, streaming = set(), [], False
while running or not os.path.exists("/tmp/enough"):
    while len(running) < 4 and not os.path.exists("/tmp/enough"):
        running.append(work.remote())
    if not running:
        break
    done, running = ray.wait(running)
    for one in done:
        try:
            pods.add(ray.get(one))
            result["done"] += 1
        except ray.exceptions.RayError as e:
            print(e)
            result["lost"] += 1
    if len(pods) >= 2 and not streaming:
        streaming = True
        os.mknod("/tmp/streaming")
os.remove("/tmp/enough")
result["pods"] = sorted(pods)
