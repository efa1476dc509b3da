#!/usr/bin/env python3
"""Writes which variables a gang sets: variables.json for the rules of admission, and a page of the reference.

usage: variables.py [DIRECTORY], laid out like the repository, by default the repository itself.
"""

import json
import pathlib
import sys
from typing import Dict, List, Set, Tuple

from heliostat_gang import contracts, spark

FRAMEWORKS = ("PyTorch", "TensorFlow", "JAX", "XGBoost", "MPI", "Spark", "Generic")
TABLE = "ray-operator/launcher/variables.json"
PAGE = "docs/reference/gang-variables.md"

# What each variable means. Which frameworks have it follows from the code.
MEANINGS = {
    "ROLE": "name of the role",
    "ROLE_INDEX": "number of the process in its role, from 0, counted over all replicas of the role",
    "RANK": "number of the process among all processes, from 0. Not with `start: PerReplica`",
    "WORLD_SIZE": "number of all processes; with MPI, of all ranks. Not with `start: PerReplica`",
    "LOCAL_RANK": "number of the process in its replica, from 0. Not with `start: PerReplica`",
    "LOCAL_WORLD_SIZE": "`processesPerReplica`",
    "NODE_RANK": "number of the replica among all replicas, from 0",
    "MASTER_ADDR": "IP address of rank 0; with Spark, of the Master",
    "MASTER_PORT": "port on which rank 0 may listen, and with Spark the Master does. Each round has another one",
    "HELIOSTAT_GANG": "UID of the ClusterJob, attempt, child gang (0 without trials), round. By it, processes are found that outlive their round",
    "HELIOSTAT_ROUND": "number that grows with each round: attempt × 100,000 + round",
    "PET_NNODES": "number of replicas",
    "PET_NPROC_PER_NODE": "`processesPerReplica`. With Generic, only with `start: PerReplica`",
    "PET_NODE_RANK": "as NODE_RANK",
    "PET_MASTER_ADDR": "as MASTER_ADDR",
    "PET_MASTER_PORT": "as MASTER_PORT",
    "PET_MAX_RESTARTS": "0: only the whole gang restarts. Only with `start: PerReplica`",
    "GROUP_RANK": "as NODE_RANK",
    "TORCHELASTIC_RESTART_COUNT": "number of rounds of this attempt before this one",
    "TF_CONFIG": "JSON as TFJob writes it, but only evaluators find `evaluator` in it. Not in a gang of one process",
    "COORDINATOR_ADDRESS": "as MASTER_ADDR (JAXJob)",
    "COORDINATOR_PORT": "as MASTER_PORT (JAXJob)",
    "NUM_PROCESSES": "as WORLD_SIZE (JAXJob)",
    "PROCESS_ID": "as RANK (JAXJob)",
    "JAX_COORDINATOR_ADDRESS": "MASTER_ADDR:MASTER_PORT (Trainer; JAX itself reads it)",
    "JAX_NUM_PROCESSES": "as WORLD_SIZE (Trainer)",
    "JAX_PROCESS_ID": "as RANK (Trainer)",
    "DMLC_TRACKER_URI": "as MASTER_ADDR. Rank 0 starts the tracker",
    "DMLC_TRACKER_PORT": "as MASTER_PORT",
    "DMLC_TASK_ID": "as RANK, with leading zeros, so that the order of texts is that of ranks",
    "DMLC_NUM_WORKER": "as WORLD_SIZE",
    "WORKER_ADDRS": "IP addresses of all processes but rank 0, with commas. Not in a gang of one process",
    "WORKER_PORT": "port that is free where rank 1 is. Not in a gang of one process",
    "CUDA_VISIBLE_DEVICES": "GPUs of all places that the gang has on this host, where it has any",
    "SPARK_CONF_DIR": "directory with the image's settings of Spark, and those of the gang in `spark-defaults.conf`",
    "SPARK_LOCAL_HOSTNAME": "IP address of the process, as pods do not find each other by name",
    "SPARK_DAEMON_MEMORY": "memory of the Java program of Master and Worker: 512m and 256m",
    "OMP_NUM_THREADS": "CPUs of a replica / `processesPerReplica`, rounded down, at least 1",
    "PYTHONUNBUFFERED": "1, so that lines of output come at once",
    "GLOO_SOCKET_IFNAME": "interface of the pod's address, where the host's name resolves to a loopback address",
    "NCCL_SOCKET_IFNAME": "as GLOO_SOCKET_IFNAME",
    "HYDRA_IFACE": "interface of the pod's address: with MPI always, else as GLOO_SOCKET_IFNAME",
    "I_MPI_HYDRA_IFACE": "interface of the pod's address",
    "OMPI_MCA_plm_rsh_agent": "program that starts a daemon of Open MPI 4 in another place, in place of ssh",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1: each daemon is started from where the command runs",
    "OMPI_MCA_orte_default_hostfile": "file with a line for each host, as `10.0.0.7 slots=2`",
    "OMPI_MCA_orte_leave_session_attached": "1: a daemon stays a child of what starts it, and ends with it",
    "PRTE_MCA_plm_ssh_agent": "as OMPI_MCA_plm_rsh_agent, for Open MPI 5",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "as OMPI_MCA_plm_rsh_no_tree_spawn, for Open MPI 5",
    "PRTE_MCA_prte_default_hostfile": "as OMPI_MCA_orte_default_hostfile, for Open MPI 5",
    "OMPI_MCA_oob_tcp_disable_ipv6_family": "0, where hosts have IPv6 addresses",
    "OMPI_ALLOW_RUN_AS_ROOT": "1: mpirun of Open MPI 4 runs in images whose user is root",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "as OMPI_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT": "as OMPI_ALLOW_RUN_AS_ROOT, for Open MPI 5",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "as OMPI_ALLOW_RUN_AS_ROOT, for Open MPI 5",
    "HYDRA_LAUNCHER": "ssh: MPICH starts its proxies by a program that is called as ssh is",
    "HYDRA_LAUNCHER_EXEC": "as OMPI_MCA_plm_rsh_agent, for MPICH",
    "HYDRA_HOST_FILE": "file with a line for each host, as `10.0.0.7:2`",
    "I_MPI_HYDRA_BOOTSTRAP": "as HYDRA_LAUNCHER, for Intel MPI",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC": "as OMPI_MCA_plm_rsh_agent, for Intel MPI",
    "HYDRA_ENV": "none, where hosts have different GPUs: ranks find the environment of their place, not that of mpirun",
    "I_MPI_HYDRA_HOST_FILE": "as HYDRA_HOST_FILE, for Intel MPI",
    "I_MPI_HYDRA_BRANCH_COUNT": "1024: each daemon is started from where the command runs",
    "OMPI_MCA_hwloc_base_binding_policy": "none: mpirun of Open MPI 4 binds no rank to a core, as places share the cores of their pod",
    "PRTE_MCA_hwloc_default_binding_policy": "none: as OMPI_MCA_hwloc_base_binding_policy, for Open MPI 5",
    "I_MPI_PIN": "0: as OMPI_MCA_hwloc_base_binding_policy, for Intel MPI",
}

INTRODUCTION = """# Variables of gangs

Generated from the launcher's code by "make generate"; do not edit.

What the processes of a [gang](../design/gangs.md) find in their environment, beside the variables of the image, the job
and the role. Ray's own variables, whose names begin with `RAY_`, are removed.
"""


def variables() -> Tuple[Dict[str, List[str]], Dict[str, List[str]]]:
    """Return for each framework the variables that its processes find, and those that the user may set instead."""
    fixed: Dict[str, List[str]] = {}
    defaults: Dict[str, List[str]] = {}
    for framework in FRAMEWORKS:
        found: Tuple[Set[str], Set[str]] = (set(), set())
        for start in ("PerProcess", "PerReplica") if framework in ("PyTorch", "Generic") else ("PerProcess",):
            for one in contracts.starts(*_sample(framework, start)):
                found[0].update(one.env)
                found[1].update(one.defaults)
        if framework == "Spark":
            found[0].add(spark.CONF_DIR)  # an agent makes it
        if framework == "MPI":
            found[1].update(contracts.mpi_defaults(contracts.MPIFiles("agent", "slots", "counts"), "eth0"))
        fixed[framework], defaults[framework] = (sorted(names, key=list(MEANINGS).index) for names in found)
    return fixed, defaults


def render() -> Dict[str, str]:
    """Return the text of each file, by its path."""
    fixed, defaults = variables()
    page = [
        INTRODUCTION,
        "## Set by the gang",
        "",
        "The `env` of the job and of its roles must not have them.",
        "",
        *_table(fixed),
        "",
        "## Defaults",
        "",
        "The gang sets those that neither the image, nor the job, nor the role sets.",
        "",
        *_table(defaults),
    ]
    return {TABLE: json.dumps(fixed, indent=1) + "\n", PAGE: "\n".join(page) + "\n"}


def _table(found: Dict[str, List[str]]) -> List[str]:
    lines = ["| variable | frameworks | meaning |", "|---|---|---|"]
    for name, meaning in MEANINGS.items():
        having = [framework for framework, names in found.items() if name in names]
        if having:
            lines.append(f"| `{name}` | {'all' if len(having) == len(FRAMEWORKS) else ', '.join(having)} | {meaning} |")
    return lines


def _sample(framework: str, start: str) -> Tuple[contracts.Description, List[contracts.Place], Dict[str, int], int]:
    """Return a gang whose processes find all variables of a framework."""
    role = {"processes": 1, "start": start, "resources": {}, "success": "All", "command": ["true"], "entrypoint": "", "env": []}
    names = (spark.DRIVER, spark.EXECUTOR) if framework == "Spark" else ("worker", "worker")
    roles = [{"name": name, **role} for name in dict.fromkeys(names)]
    description = {"uid": "", "attempt": 1, "framework": framework, "env": [], "roles": roles}
    places = [contracts.Place(name, at, f"fd00::{at}", True, "eth0", (str(at),)) for at, name in enumerate(names)]
    return description, places, {key: 1 for key, _ in contracts.needed_ports(description, places)}, 1


def main() -> None:
    """Write the files."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    for name, text in render().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
