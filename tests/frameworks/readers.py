"""Gives a framework the environments that a file lists, and compares what it reads with what the file says of each process.

The file has a paragraph for each group of processes: a title, ports, the variables that all have, and a line for each process
in the order of ranks. Hosts become addresses of the loopback interface, so that processes meet each other here. Ports become
others for each group, as those of a former one may be taken for a while.
"""

import argparse
import json
import multiprocessing
import os
import re
import sys
import traceback
from typing import Dict, List, NamedTuple


class Process(NamedTuple):
    name: str
    host: str
    env: Dict[str, str]


class Group(NamedTuple):
    framework: str
    title: str
    processes: List[Process]

    @property
    def start(self):
        return self.title.split()[-1]

    @property
    def first(self):
        """The address at which all meet: the host of the first process, and the port that it may take."""
        return f"{self.processes[0].host}:{self.processes[0].env['MASTER_PORT']}"


def parse(text):
    for at, paragraph in enumerate(text.replace("10.0.0.", "127.0.0.").strip().split("\n\n")):
        title, _, shared, *lines = re.sub(r"\b200(\d\d)\b", lambda port: str(11000 + 100 * at + int(port[1])), paragraph).splitlines()
        framework = title.split()[1]
        if framework in READERS:
            yield Group(framework, title[2:], [parse_process(line, parse_variables(shared)) for line in lines])


def parse_process(line, shared):
    before, _, after = line.partition("[")
    argv, end = json.JSONDecoder().raw_decode("[" + after)
    assert argv, line
    name, _, host, *_ = before.split()
    return Process(name, host, {**shared, **parse_variables(("[" + after)[end:])})


def parse_variables(text):
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


class TensorFlow:
    """The resolver of clusters, and what strategies derive from it."""

    def load(self):
        from tensorflow import distribute
        from tensorflow.python.distribute import multi_worker_util

        self.resolver, self.util = distribute.cluster_resolver.TFConfigClusterResolver, multi_worker_util

    def read(self, group):
        resolver = self.resolver()
        cluster = resolver.cluster_spec().as_dict()
        if not cluster:
            return {"task": None}
        task, index = resolver.task_type, resolver.task_id
        return {
            "task": f"{task}/{index}",
            "is chief": self.util.is_chief(cluster, task, index),
            "hosts": {f"{role}/{at}": one.rpartition(":")[0] for role, found in cluster.items() for at, one in enumerate(found)},
            "different addresses": len({address for found in cluster.values() for address in found}),
        }

    def expect(self, group, rank):
        own, everyone = group.processes[rank], group.processes
        if len(everyone) == 1:
            return {"task": None}
        is_evaluator = own.name == "evaluator/0"
        hosts = {other.name: other.host for other in everyone if is_evaluator or other.name != "evaluator/0"}
        return {"task": own.name, "is chief": rank == 0 or is_evaluator, "hosts": hosts, "different addresses": len(hosts)}


class PyTorch:
    """The rendezvous of env://, at which all ranks meet, or what torchrun takes for its options."""

    def load(self):
        import torch.distributed
        import torch.distributed.run

        self.distributed, self.run = torch.distributed, torch.distributed.run

    def read(self, group):
        if group.start == "PerReplica":
            config, *_ = self.run.config_from_args(self.run.parse_args(["train.py"]))
            return {
                "replicas": (config.min_nodes, config.max_nodes), "processes": config.nproc_per_node, "replica": config.rdzv_configs["rank"],
                "meets at": config.rdzv_endpoint, "restarts": config.max_restarts,
            }
        store, rank, size = next(self.distributed.rendezvous("env://"))
        self.store = store  # the first process serves it for as long as it is there
        store.set(str(rank), f"{os.environ['ROLE']}/{os.environ['ROLE_INDEX']}")
        names = [store.get(str(other)).decode() for other in range(size)]
        return {"rank": rank, "ranks": names, "meets at": f"{store.host}:{store.port}"}

    def expect(self, group, rank):
        everyone = group.processes
        if group.start == "PerReplica":
            return {"replicas": (len(everyone),) * 2, "processes": 2, "replica": rank, "meets at": group.first, "restarts": 0}
        return {"rank": rank, "ranks": [other.name for other in everyone], "meets at": group.first}


class JAX:
    """jax.distributed.initialize, which returns when all processes have come."""

    def load(self):
        import jax
        from jax._src import distributed

        self.initialize, self.state = jax.distributed.initialize, distributed.global_state

    def read(self, group):
        self.initialize(num_processes=int(os.environ["NUM_PROCESSES"]), process_id=int(os.environ["PROCESS_ID"]))
        return {"process": self.state.process_id, "processes": self.state.num_processes, "meets at": self.state.coordinator_address}

    def expect(self, group, rank):
        return {"process": rank, "processes": len(group.processes), "meets at": group.first}


class XGBoost:
    """The collective, whose tracker is the first process's own."""

    def load(self):
        from xgboost import collective, tracker

        self.collective, self.tracker = collective, tracker.RabitTracker

    def read(self, group):
        found = {name: value for name, value in os.environ.items() if name.startswith("DMLC_") and name != "DMLC_NUM_WORKER"}
        if os.environ["RANK"] == "0":
            host, port = found["DMLC_TRACKER_URI"], int(found["DMLC_TRACKER_PORT"])
            tracker = self.tracker(n_workers=int(os.environ["DMLC_NUM_WORKER"]), host_ip=host, port=port, sortby="task", timeout=60)
            tracker.start()
        with self.collective.CommunicatorContext(**{**found, "DMLC_TRACKER_PORT": int(found["DMLC_TRACKER_PORT"])}):
            read = {"rank": self.collective.get_rank(), "ranks": self.collective.get_world_size()}
        if os.environ["RANK"] == "0":
            tracker.wait_for()
        return read

    def expect(self, group, rank):
        return {"rank": rank, "ranks": len(group.processes)}


READERS = {"TensorFlow": TensorFlow, "PyTorch": PyTorch, "JAX": JAX, "XGBoost": XGBoost}


def read(reader, group, rank, answer):
    """Reads in a process of its own, whose environment is that of the file and nothing else."""
    os.environ.clear()
    os.environ.update({"PATH": "/usr/bin:/bin", "HOME": "/tmp", **group.processes[rank].env})
    try:
        answer.send(reader.read(group))
    except Exception:
        answer.send(traceback.format_exc())
    answer.poll(None)  # others may still need this process


def compare(reader, group):
    """Returns what differs, by the names of processes."""
    forks = multiprocessing.get_context("fork")
    readers = []
    for rank in range(len(group.processes)):
        here, there = forks.Pipe()
        process = forks.Process(target=read, args=(reader, group, rank, there))
        process.start()
        there.close()
        readers.append((process, here))
    found = []
    for _, here in readers:
        try:
            found.append(here.recv() if here.poll(60) else "nothing within 60 s")
        except EOFError:
            found.append("it ended without an answer")
    for process, _ in readers:
        process.kill()
        process.join()
    expected = [reader.expect(group, rank) for rank in range(len(found))]
    return [f"{one.name} reads {is_}, not {must}" for one, is_, must in zip(group.processes, found, expected) if is_ != must]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("file")
    arguments.add_argument("framework", choices=READERS)
    options = arguments.parse_args()
    reader = READERS[options.framework]()
    reader.load()
    with open(options.file) as file:
        groups = [group for group in parse(file.read()) if group.framework == options.framework]
    wrong = [f"{group.title}: {line}" for group in groups for line in compare(reader, group)]
    print("\n".join(wrong))
    processes = sum(len(group.processes) for group in groups)
    print(f"{options.framework}: {len(groups)} groups, {processes} processes, {len(wrong)} read otherwise", flush=True)
    sys.exit(not groups or bool(wrong))


if __name__ == "__main__":
    main()
