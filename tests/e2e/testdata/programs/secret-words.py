from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
there = on(node_id=next(n["NodeID"] for n in ray.nodes() if n["Alive"] and n["NodeManagerHostname"] == {{printf "%q" .Pod}}), soft=False)
@ray.remote(num_cpus=0.05, scheduling_strategy=there)
def task(argument, large):
    return [argument[::-1], len(large), socket.gethostname()]
said, size, result = ray.get(task.remote({{printf "%q" .Argument}}, ray.put({{printf "%q" .Object}} * 100000)))
assert said == {{printf "%q" .Argument}}[::-1] and size == 100000 * {{.Size}}
