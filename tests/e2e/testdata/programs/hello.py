# Has Serve run an application.
import ray
from ray import serve
@serve.deployment(ray_actor_options={"num_cpus": 0})
class Hello:
    def __call__(self, request):
        return "hello"
ray.init()
serve.run(Hello.bind(), name="hello")
