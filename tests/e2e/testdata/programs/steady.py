# A driver without end. It waits for all tasks when there is a file drain.
import time
from ray import serve
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
@ray.remote(num_cpus=0.1)
class Counter:
    def __init__(self):
        self.last, self.count = None, 0
    def next(self, asked):
        if asked != self.last:
            self.last, self.count = asked, self.count + 1
        return [os.getpid(), self.count]
ids = {node["NodeManagerHostname"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
for pod in json.loads('{{.Pods}}'):
    counter = Counter.options(name=pod, namespace="steady", lifetime="detached", scheduling_strategy=on(node_id=ids[pod], soft=False)).remote()
    ray.get(counter.next.remote("first"))
@serve.deployment(num_replicas=2, max_replicas_per_node=1, ray_actor_options={"num_cpus": 0.1})
class Hello:
    def __call__(self, request):
        return "hello"
serve.start(proxy_location="EveryNode", http_options={"host": "0.0.0.0"})
serve.run(Hello.bind(), name="hello")
pause = {{.Pause}}
@ray.remote(num_cpus=0.3, max_retries=0)
def task(number):
    time.sleep(0.05)
    return number
sent, lost, said, waiting = 0, 0, [], {}
while True:
    drain = os.path.exists("/tmp/drain")
    if not drain and len(waiting) < 20:
        waiting[task.remote(sent)] = sent
        sent += 1
        time.sleep(pause)
    for done in ray.wait(list(waiting), num_returns=1, timeout=0.1)[0] if waiting else []:
        number = waiting.pop(done)
        try:
            assert ray.get(done) == number
        except Exception as error:
            lost += 1
            said = (said + [repr(error)[:500]])[:5]
    if sent == 4 and not os.path.exists("/tmp/steady"):
        os.mknod("/tmp/steady")
    if drain and not waiting:
        with open("/tmp/counts.new", "w") as file:
            json.dump({"Sent": sent, "Lost": lost, "Said": said}, file)
        os.rename("/tmp/counts.new", "/tmp/counts")
        while os.path.exists("/tmp/drain"):
            time.sleep(0.05)
result = 0
