"""Ray's own autoscaler, one decision at a time: what "make bench-autoscale" compares with.

  rayscheduler.py snapshots DIR       write the snapshots DIR/{small,medium,large}
  rayscheduler.py decide DIR SECONDS  time Ray's decision for the snapshot in DIR

A snapshot is what a head would answer (cluster_resource_state.pb, a serialized
GetClusterResourceStateReply) and which nodes there can be (node_types.json). It follows from
its name alone. A decision is one call of ResourceDemandScheduler.schedule, which neither
speaks to Kubernetes nor to a head; its CPU time and the nodes it asks for are printed as a
line of JSON. After so many seconds of CPU time the process ends by SIGXCPU. Needs
"ray[default]==2.60.0".
"""

import json
import logging
import math
import os
import random
import resource
import sys
import time

GIB = 2.0**30
GROWTH = 4
BUNDLES = 8
SNAPSHOTS = {
    "small": {"nodes": 200, "pending": 1000, "shapes": 20, "gangs": 10},
    "medium": {"nodes": 500, "pending": 3000, "shapes": 50, "gangs": 30},
    "large": {"nodes": 2000, "pending": 10000, "shapes": 50, "gangs": 100},
}
# CPUs, GiB of memory, what else a node has, and its labels.
WORKERS = {
    "cpu8": (8, 32, {}, {}),
    "cpu16": (16, 64, {}, {}),
    "cpu32": (32, 128, {}, {}),
    "cpu64": (64, 256, {}, {}),
    "cpu16-zone-a": (16, 64, {}, {"zone": "a"}),
    "cpu16-zone-b": (16, 64, {}, {"zone": "b"}),
    "mem8": (8, 256, {"scratch": 1.0}, {}),
    "gpu1": (8, 64, {"GPU": 1.0}, {"gpu": "l4"}),
    "gpu4": (48, 384, {"GPU": 4.0}, {"gpu": "a100"}),
    "gpu8": (96, 768, {"GPU": 8.0}, {"gpu": "h100"}),
}


def kinds_of_nodes(nodes):
    most = GROWTH * nodes // len(WORKERS)
    kind = {"min_workers": 0, "priority": 0}
    kinds = {"headgroup": {**kind, "resources": {"CPU": 0.0, "memory": 16 * GIB}, "labels": {}, "max_workers": 1, "head": True}}
    for name, (cpus, memory, other, labels) in WORKERS.items():
        kinds[name] = {
            **kind,
            "resources": {"CPU": float(cpus), "memory": memory * GIB, **other},
            "labels": {"ray.io/node-group": name, **labels},
            "max_workers": most,
            "head": False,
        }
    return kinds


def add_node(state, dice, kind, name, number, busy):
    """A node that is free, or of which a quarter of its CPUs at most and no GPU is free."""
    node = state.node_states.add()
    node.node_id = dice.getrandbits(224).to_bytes(28, "big")
    node.instance_id = f"pod-{name}-{number}"
    node.ray_node_type_name = name
    node.node_ip_address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    total = {**kind["resources"], f"node:{node.node_ip_address}": 1.0}
    total["object_store_memory"] = 0.3 * total["memory"]
    if kind["head"]:
        total["node:__internal_head__"] = 1.0
    free = dict(total)
    if busy:
        cpus = dice.randint(0, int(total["CPU"]) // 4)
        free.update(CPU=float(cpus), memory=total["memory"] * cpus / total["CPU"])
        free["object_store_memory"] /= 2
        if "GPU" in free:
            free["GPU"] = 0.0
    node.total_resources.update(total)
    node.available_resources.update(free)
    node.labels.update({"ray.io/node-id": node.node_id.hex(), **kind["labels"]})
    # Free nodes are idle, and not for as long as it takes to let them go.
    node.status = 1 if busy or kind["head"] else 3
    node.idle_duration_ms = 0 if busy else 10_000


def shape_of(dice, turn):
    """A request: of twenty, twelve for CPUs, three for much memory, three for GPUs, two in a zone."""
    from ray.core.generated.autoscaler_pb2 import ResourceRequest

    request = ResourceRequest()
    needs = request.resources_bundle
    if turn < 12:
        needs["CPU"] = float(dice.choice([1, 1, 2, 2, 3, 4, 6, 8, 12, 16]))
        if dice.random() < 0.5:
            needs["memory"] = dice.randint(1, 16) * GIB
    elif turn < 15:
        needs["CPU"] = float(dice.randint(1, 4))
        needs["memory"] = dice.randint(16, 48) * GIB
    elif turn < 18:
        needs["CPU"] = float(dice.randint(1, 8))
        needs["GPU"] = float(dice.choice([1, 1, 2, 4]))
    else:
        needs["CPU"] = float(dice.randint(1, 8))
    selector = request.label_selectors.add()  # an empty one, as GCS sends it
    if turn >= 18:
        selector.label_constraints.add(label_key="zone", operator=1, label_values=[dice.choice("ab")])
    return request


def add_requests(state, dice, size):
    shapes = {}
    while len(shapes) < size["shapes"]:
        request = shape_of(dice, len(shapes) % 20)
        shapes.setdefault(request.SerializeToString(deterministic=True), request)
    weights = [1 / rank for rank in range(1, len(shapes) + 1)]
    dice.shuffle(weights)
    counts = [max(1, int(size["pending"] * weight / sum(weights))) for weight in weights]
    counts[0] += size["pending"] - sum(counts)
    for request, count in zip(shapes.values(), counts):
        state.pending_resource_requests.add(request=request, count=count)


def add_gang(state, dice, turn):
    """PACK, STRICT_SPREAD, PACK with GPUs and STRICT_PACK in turn."""
    group = dice.getrandbits(144).to_bytes(18, "big").hex()
    strategy = ["PACK", "STRICT_SPREAD", "PACK", "STRICT_PACK"][turn % 4]
    gang = state.pending_gang_resource_requests.add(details=f"{group}:{strategy}|PENDING")
    bundles = gang.bundle_selectors.add()
    for _ in range(BUNDLES):
        request = bundles.resource_requests.add()
        request.resources_bundle["CPU"] = 4.0
        if turn % 4 == 2:
            request.resources_bundle["GPU"] = 1.0
        if strategy == "STRICT_SPREAD":
            request.placement_constraints.add().anti_affinity.label_name = f"_PG_{group}"
        if strategy == "STRICT_PACK":
            request.placement_constraints.add().affinity.label_name = f"_PG_{group}"
        gang.requests.add().CopyFrom(request)


def write_snapshots(folder):
    from ray.core.generated.autoscaler_pb2 import GetClusterResourceStateReply

    for name, size in SNAPSHOTS.items():
        dice = random.Random(1)
        kinds = kinds_of_nodes(size["nodes"])
        reply = GetClusterResourceStateReply()
        state = reply.cluster_resource_state
        state.cluster_resource_state_version = 1
        state.cluster_session_name = "session_bench"
        add_node(state, dice, kinds["headgroup"], "headgroup", 0, False)
        workers = list(WORKERS)
        for number in range(size["nodes"]):
            kind = workers[number % len(workers)]
            add_node(state, dice, kinds[kind], kind, number + 1, number // len(workers) % 2 == 0)
        add_requests(state, dice, size)
        for turn in range(size["gangs"]):
            add_gang(state, dice, turn)
        there = os.path.join(folder, name)
        os.makedirs(there, exist_ok=True)
        with open(os.path.join(there, "cluster_resource_state.pb"), "wb") as file:
            file.write(reply.SerializeToString(deterministic=True))
        with open(os.path.join(there, "node_types.json"), "w") as file:
            facts = {"case": {"name": name, **size}, "max_nodes": GROWTH * size["nodes"] + 1, "idle_timeout_s": 60, "node_types": kinds}
            json.dump(facts, file, indent=1)


def read_request(folder):
    """The snapshot as the autoscaler's loop hands it to the scheduler on Kubernetes."""
    from ray.autoscaler.v2.instance_manager.config import NodeTypeConfig
    from ray.autoscaler.v2.scheduler import SchedulingRequest
    from ray.autoscaler.v2.schema import AutoscalerInstance
    from ray.core.generated.autoscaler_pb2 import GetClusterResourceStateReply
    from ray.core.generated.instance_manager_pb2 import Instance, NodeKind

    with open(os.path.join(folder, "node_types.json")) as file:
        facts = json.load(file)
    with open(os.path.join(folder, "cluster_resource_state.pb"), "rb") as file:
        state = GetClusterResourceStateReply.FromString(file.read()).cluster_resource_state
    kinds = facts["node_types"]
    there = []
    for number, node in enumerate(state.node_states):
        role = NodeKind.HEAD if kinds[node.ray_node_type_name]["head"] else NodeKind.WORKER
        instance = Instance(
            instance_id=str(number),
            cloud_instance_id=node.instance_id,
            node_id=node.node_id.hex(),
            status=Instance.RAY_RUNNING,
            instance_type=node.ray_node_type_name,
            node_kind=role,
        )
        there.append(AutoscalerInstance(cloud_instance_id=node.instance_id, ray_node=node, im_instance=instance))
    return SchedulingRequest(
        disable_launch_config_check=True,
        node_type_configs={
            name: NodeTypeConfig(
                name=name,
                min_worker_nodes=kind["min_workers"],
                max_worker_nodes=kind["max_workers"],
                priority=kind["priority"],
                resources=kind["resources"],
                labels=kind["labels"],
            )
            for name, kind in kinds.items()
        },
        max_num_nodes=facts["max_nodes"],
        idle_timeout_s=float(facts["idle_timeout_s"]),
        resource_requests=list(state.pending_resource_requests),
        gang_resource_requests=list(state.pending_gang_resource_requests),
        cluster_resource_constraints=list(state.cluster_resource_constraints),
        current_instances=there,
    )


def decide(folder, limit):
    logging.disable(logging.CRITICAL)
    import ray
    from ray.autoscaler.v2.scheduler import ResourceDemandScheduler

    request = read_request(folder)
    began = time.process_time()
    end = math.ceil(began + float(limit))
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 10))
    reply = ResourceDemandScheduler().schedule(request)
    seconds = time.process_time() - began
    left = len(reply.infeasible_resource_requests) + len(reply.infeasible_gang_resource_requests)
    print(json.dumps({"ray": ray.__version__, "seconds": seconds, "asked": {launch.instance_type: launch.count for launch in reply.to_launch}, "left": left}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["snapshots", folder]:
            write_snapshots(folder)
        case ["decide", folder, limit]:
            decide(folder, limit)
        case _:
            sys.exit(__doc__)
