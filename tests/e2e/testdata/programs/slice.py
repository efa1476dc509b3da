from ray._private.accelerators.tpu import reserve_tpu_slice
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
name, head = reserve_tpu_slice("2x2x2", "TPU-V4", timeout_s=200)
hosts = placement_group([{"TPU": 4}] * 2, strategy="STRICT_SPREAD", bundle_label_selector=[{"ray.io/tpu-slice-name": name}] * 2)
ray.get(hosts.ready())
@ray.remote(num_cpus=0, resources={"TPU": 4})
def number():
    return os.environ["TPU_WORKER_ID"]
on = lambda i: PlacementGroupSchedulingStrategy(hosts, placement_group_bundle_index=i)
result = {"Slice": name, "IDs": sorted(ray.get([number.options(scheduling_strategy=on(i)).remote() for i in range(2)]))}
