# Actors on a worker, and an object that one of them put.
{{template "programs/ahead.py" .}}
@ray.remote(num_cpus=0)
class Holder:
    def put(self):
        return [ray.put(bytes(1 << 20))]
    def where(self):
        return ray.get_runtime_context().get_node_id()
once = Holder.options(name="once", lifetime="detached", **there).remote()
held = {"put by an actor": ray.get(once.put.remote())[0]}
lasting = Holder.options(name="lasting", num_cpus=1, lifetime="detached", max_restarts=-1, max_task_retries=-1, **first).remote()
assert ray.get(lasting.where.remote()) == place
asked = {
    "a detached actor that may restart": lambda: ray.get(lasting.where.remote(), timeout=60),
    "a detached actor that may not": lambda: ray.get(once.where.remote(), timeout=60),
}
cleanup = lambda: ray.kill(lasting) # or it would keep the next worker in its turn
{{template "programs/behind.py"}}
