# Two deployments that take the place of the echo.
import os, socket, threading, time
from ray import serve
from starlette.requests import Request
@serve.deployment(num_replicas=2, max_replicas_per_node=1, ray_actor_options={"num_cpus": 0.1})
class Echo:
    def __init__(self):
        {{.Fails}}
    def __call__(self, request: Request):
        return {"version": "bad", "pid": os.getpid(), "node": socket.gethostname(), "said": request.query_params.get("said", "")}
    def reconfigure(self, config):
        pass
    def watch(self):
        while not os.path.exists("/tmp/sick"):
            time.sleep(0.05)
        os._exit(1)
app = Echo.bind()
