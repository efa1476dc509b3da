"""What each process of a gang finds: arguments and environment, as its framework defines them.

In: the description that the operator wrote, the places that the gang has, and the ports that were reserved in them.
Out: for each process its name, arguments, environment, ranks, and whether success needs it.

Everything here follows from arguments: nothing reads a file, a clock or the environment.
"""

import functools
import json
import math
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from . import spark

Description = Mapping[str, Any]

# The role that has rank 0, wherever it stands in the spec.
FIRST_ROLES = {
    "PyTorch": ("master",),
    "TensorFlow": ("chief", "master"),
    "XGBoost": ("master",),
    "MPI": ("launcher",),
    "Spark": ("driver",),
}
# The role whose processes start, end and join alone while a round runs. Its replicas have one process each.
ALONE_ROLES = {"Spark": spark.EXECUTOR}
EVALUATOR, LAUNCHER = "evaluator", "launcher"
ROUNDS_OF_ATTEMPT = 100_000
# The port at which rank 0 listens. Each other key is the name of a process.
MASTER = "master"


class ContractError(Exception):
    """A description that no environment follows from. Its text is for the user."""


class Place(NamedTuple):
    """Where a replica runs."""

    role: str
    replica: int
    host: str  # an IP address
    is_loopback: bool = False  # the host's name resolves to a loopback address
    interface: str = ""  # the network interface that has the address
    gpus: Tuple[str, ...] = ()  # what CUDA_VISIBLE_DEVICES has there


class MPIFiles(NamedTuple):
    """What the commands of MPI are pointed to, in the place where the command runs."""

    agent: str  # the program that stands for ssh
    slots: str  # a hostfile with lines as "10.0.0.1 slots=2", for Open MPI
    counts: str  # a hostfile with lines as "10.0.0.1:2", for MPICH and Intel MPI


class Process(NamedTuple):
    """A copy of the command. Copies are in the order of their ranks."""

    name: str  # as in worker/3
    role: str
    index: int  # counted over the replicas of the role
    replica: int
    place: int  # a position in the places
    node_rank: int  # the position of its replica in the order of ranks
    rank: int
    local_rank: int
    local_size: int  # processes of the replica
    is_counted: bool  # success needs its exit code 0
    is_daemon: bool = False  # runs no command, but ranks of MPI, and starts when the command wants it
    is_master: bool = False  # is Spark's Master, which all others wait for


class Start(NamedTuple):
    """What a process is started with."""

    process: Process
    argv: List[str]  # empty for a daemon
    env: Dict[str, str]
    defaults: Dict[str, str]  # variables that count where neither the user nor the image sets them
    spark: Mapping[str, Any] = {}  # what its settings are made of, where it is one of Spark


def role_alone(description: Description) -> str:
    """Return the role whose processes start, end and join alone, or an empty text."""
    return ALONE_ROLES.get(description["framework"], "")


def processes(description: Description, places: Sequence[Place]) -> List[Process]:
    """Return the processes of a round in the order of their ranks."""
    if description["framework"] == "Spark":
        return _spark_processes(description, places)
    framework = description["framework"]
    roles = {role["name"]: role for role in description["roles"]}
    found: List[Process] = []
    rank, indices = 0, dict.fromkeys(roles, 0)
    for node_rank, position in enumerate(_order(description, places)):
        place = places[position]
        role = roles[place.role]
        size = role["processes"]
        for local in range(1 if _is_per_replica(framework, role) else size):
            index = indices[place.role]
            indices[place.role] += 1
            first = not found
            found.append(
                Process(
                    name=f"{place.role}/{index}",
                    role=place.role,
                    index=index,
                    replica=place.replica,
                    place=position,
                    node_rank=node_rank,
                    rank=rank + local,
                    local_rank=local,
                    local_size=size,
                    is_counted=first if framework == "MPI" else _is_counted(role, index),
                    is_daemon=framework == "MPI" and not first,
                )
            )
        rank += size
    if any(process.is_counted for process in found):
        return found
    # Where every role is ignored, nothing would be left that success waits for.
    return [process._replace(is_counted=True) for process in found]


def _spark_processes(description: Description, places: Sequence[Place]) -> List[Process]:
    """Return the command, the Master beside it, and the Workers, which have the numbers of their replicas."""
    found: List[Process] = []
    for node_rank, position in enumerate(_order(description, places)):
        place = places[position]
        one = Process(
            name=f"{place.role}/{place.replica}",
            role=place.role,
            index=place.replica,
            replica=place.replica,
            place=position,
            node_rank=node_rank,
            rank=node_rank,
            local_rank=0,
            local_size=1,
            is_counted=place.role == spark.DRIVER,
        )
        found.append(one)
        if place.role == spark.DRIVER:
            found.append(one._replace(name=spark.MASTER, is_counted=False, is_master=True))
    return found


def needed_ports(description: Description, places: Sequence[Place]) -> List[Tuple[str, int]]:
    """Return the ports that a round needs: the key of each, and the position of the place that must have it free."""
    wanted = _Wanted()
    gang = _Gang(description, places, wanted, 1)
    for process in gang.processes:
        gang.start(process)
    members = {member.key: member.place for role in gang.members.values() for member in role}
    members[MASTER] = gang.first.place
    for process in gang.processes if description["framework"] == "Spark" else ():
        members.update(dict.fromkeys(spark.port_keys(process.name), process.place))
    return [(key, members[key]) for key in wanted]


def starts(description: Description, places: Sequence[Place], ports: Mapping[str, int], number: int) -> Iterator[Start]:
    """Yield what each process of a round is started with, in the order of ranks.

    ports has a number for each key of needed_ports. number is the round's, from 1. The environments of a large gang are
    large together (each has the addresses of all others), so that they are made one by one.
    """
    gang = _Gang(description, places, ports, number)
    for process in gang.processes:
        yield gang.start(process)


def start_of(description: Description, places: Sequence[Place], ports: Mapping[str, int], number: int, name: str) -> Start:
    """Return what one process of a round is started with. ports has what that process needs."""
    gang = _Gang(description, places, ports, number)
    return gang.start(next(process for process in gang.processes if process.name == name))


def mpi_slots(description: Description, places: Sequence[Place]) -> Dict[str, int]:
    """Return how many ranks each host has, in the order of ranks. A host stands once, whatever places it has."""
    sizes = {role["name"]: role["processes"] for role in description["roles"]}
    slots: Dict[str, int] = {}
    for place in (places[position] for position in _order(description, places)):
        if place.role != LAUNCHER:
            slots[place.host] = slots.get(place.host, 0) + sizes[place.role]
    return slots


def mpi_defaults(files: MPIFiles, interface: str) -> Dict[str, str]:
    """Return more defaults of the command, by which mpirun of each MPI starts its daemons without ssh."""
    found = {
        "OMPI_MCA_plm_rsh_agent": files.agent,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_orte_default_hostfile": files.slots,
        # A daemon would leave what started it, and end its line at once.
        "OMPI_MCA_orte_leave_session_attached": "1",
        "PRTE_MCA_plm_ssh_agent": files.agent,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": files.slots,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": files.agent,
        "HYDRA_HOST_FILE": files.counts,
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": files.agent,
        "I_MPI_HYDRA_HOST_FILE": files.counts,
        # Hosts would start daemons of others, by an agent program that they do not have.
        "I_MPI_HYDRA_BRANCH_COUNT": "1024",
        # Each mpirun would bind its ranks to the first cores of a pod that other places share, and refuse more ranks than cores.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "I_MPI_PIN": "0",
    }
    # Many images run as root, which mpirun refuses by itself.
    found.update({f"{mpi}_ALLOW_RUN_AS_ROOT{part}": "1" for mpi in ("OMPI", "PRTE") for part in ("", "_CONFIRM")})
    # Hydra gives its host's name to others, which pods cannot resolve, unless it has an interface.
    if interface:
        found.update(dict.fromkeys(("HYDRA_IFACE", "I_MPI_HYDRA_IFACE"), interface))
    return found


def judge_success(members: Sequence[Process], exited: Mapping[str, int]) -> Set[str]:
    """Return the names of the roles whose success policy is met. The gang has succeeded when they are all of its roles.

    exited has the exit codes of the processes that have ended, by name.
    """
    missing = {member.role for member in members if member.is_counted and exited.get(member.name) != 0}
    return {member.role for member in members} - missing


def inherited(environ: Mapping[str, str], initial: Mapping[str, str], launcher: str) -> Dict[str, str]:
    """Return what a program inherits of the environment of its actor: what the image and the user set there.

    initial is what the actor's process was started with: Ray sets some variables for itself only afterwards. launcher
    is the directory of PYTHONPATH that the launcher was imported from.
    """
    found = {
        name: value
        for name, value in environ.items()
        if not name.startswith("RAY_") and name not in _OF_WORKERS and (name in initial or name not in _OF_ACTORS)
    }
    paths = [path for path in found.pop("PYTHONPATH", "").split(":") if path and path != launcher]
    if paths:
        found["PYTHONPATH"] = ":".join(paths)
    return found


def environment(found: Mapping[str, str], start: Start) -> Dict[str, str]:
    """Return the whole environment of a process, where found is what it inherits."""
    return {**start.defaults, **found, **start.env}


# What Ray sets in a worker process (how it writes the process title), and later in an actor: all CPUs of the actor,
# which its processes have to share, and Ray's debugger.
_OF_WORKERS = frozenset(("SPT_NOENV",))
_OF_ACTORS = frozenset(("OMP_NUM_THREADS", "PYTHONBREAKPOINT"))

# $(role) and $(index), and names that look like role.field. "$$(" is what stands for "$(".
_REFERENCE = re.compile(r"\$\$\(|\$\(([^()]*)\)")
_FIELD = re.compile(r"[\w-]+(\.[\w-]+){1,2}")


class _Wanted(Dict[str, int]):
    """Ports that are asked for, in the order of their first use."""

    def __missing__(self, key: str) -> int:
        self[key] = 0
        return 0


class _Member(NamedTuple):
    """What the name of a process stands for: a process, or with MPI a rank."""

    key: str  # of its port
    place: int


class _Gang:
    """A round, with what its processes have in common."""

    def __init__(
        self, description: Description, places: Sequence[Place], ports: Mapping[str, int], number: int
    ) -> None:
        self.description = description
        self.places = places
        self.ports = ports
        self.number = number
        self.processes = processes(description, places)
        self.roles = {role["name"]: role for role in description["roles"]}
        self.is_mpi = description["framework"] == "MPI"
        self.alone = role_alone(description)
        ranked = [process for process in self.processes if not self.is_mpi or process.role != LAUNCHER]
        self.first = ranked[0]
        self.world = sum(process.local_size for process in ranked if process.local_rank == 0)
        self.members: Dict[str, List[_Member]] = {name: [] for name in self.roles}
        for process in self.processes:
            if process.is_master or process.role == self.alone:  # commands cannot name what comes and goes
                continue
            members = self.members[process.role]
            for _ in range(process.local_size if self.is_mpi else 1):
                members.append(_Member(f"{process.role}/{len(members)}", process.place))
        self.slots = mpi_slots(description, places) if self.is_mpi else {}
        self.values: Dict[str, str] = {}  # of references, by name
        self.same: Dict[str, str] = {}  # texts with references that have the same value for all processes
        self.clusters: Dict[str, str] = {}  # of TF_CONFIG, by role

    def start(self, process: Process) -> Start:
        """Return what one process is started with."""
        role = self.roles[process.role]
        argv = [self.expand(text, process) for text in role["command"]]
        if role["entrypoint"]:
            argv = ["sh", "-c", role["entrypoint"]]  # no word of it is replaced: $(...) is the shell's there
        if process.is_daemon:
            argv = []
        env = {}
        for variable in (*self.description["env"], *role["env"]):
            env[variable["name"]] = self.expand(variable["value"], process)
        env.update(self.common(process))
        env.update(_FRAMEWORKS[self.description["framework"]](self, process))
        if self.description["framework"] != "Spark":
            return Start(process, argv, env, self.defaults(process))
        if process.name != self.first.name:
            argv = self.spark_command(process)
        return Start(process, argv, env, self.defaults(process), self.spark_plan(process, env.get(spark.SUBMIT_ARGUMENTS, "")))

    def common(self, process: Process) -> Dict[str, str]:
        """Return what a process finds with each framework."""
        description = self.description
        env = {
            "HELIOSTAT_GANG": f"{description['uid']}/{description['attempt']}/{description.get('child', 0)}/{self.number}",
            "HELIOSTAT_ROUND": str(description["attempt"] * ROUNDS_OF_ATTEMPT + self.number),
            "ROLE": process.role,
            "ROLE_INDEX": str(process.index),
            "MASTER_ADDR": self.host(self.first),
            "MASTER_PORT": str(self.ports[MASTER]),
        }
        if self.is_mpi:  # ranks inherit the environment of what starts them, so that it has nothing of a single rank
            return {**env, "WORLD_SIZE": str(self.world)}
        if self.alone:  # how many processes there are changes while they run
            return env
        env.update(LOCAL_WORLD_SIZE=str(process.local_size), NODE_RANK=str(process.node_rank))
        if self.roles[process.role]["start"] == "PerProcess":
            env.update(RANK=str(process.rank), WORLD_SIZE=str(self.world), LOCAL_RANK=str(process.local_rank))
        return env

    def defaults(self, process: Process) -> Dict[str, str]:
        """Return what a process finds where the user set nothing else."""
        place = self.places[process.place]
        ranked = self.first if self.is_mpi else process
        cpu = self.roles[ranked.role]["resources"].get("CPU", 0)
        found = {"OMP_NUM_THREADS": str(_threads(cpu / ranked.local_size)), "PYTHONUNBUFFERED": "1"}
        if self.is_mpi and not process.is_daemon:
            found.update(self.mpi_command())
        if self.alone and process.name != self.first.name:
            found["SPARK_DAEMON_MEMORY"] = f"{spark.daemon_mib(process.name)}m"
        if place.is_loopback and place.interface:
            found.update(dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HYDRA_IFACE"), place.interface))
        return found

    def pytorch(self, process: Process) -> Dict[str, str]:
        """Return what torchrun takes for its options, and what it gives to those that it starts."""
        return {
            "PET_NNODES": str(len(self.places)),
            "PET_NPROC_PER_NODE": str(process.local_size),
            "PET_NODE_RANK": str(process.node_rank),
            "PET_MASTER_ADDR": self.host(self.first),
            "PET_MASTER_PORT": str(self.ports[MASTER]),
            "GROUP_RANK": str(process.node_rank),
            "TORCHELASTIC_RESTART_COUNT": str(self.number - 1),
            **self.generic(process),
        }

    def generic(self, process: Process) -> Dict[str, str]:
        """Return what a command finds that itself starts the processes of a replica."""
        if self.roles[process.role]["start"] == "PerProcess":
            return {}
        return {"PET_NPROC_PER_NODE": str(process.local_size), "PET_MAX_RESTARTS": "0"}

    def tensorflow(self, process: Process) -> Dict[str, str]:
        """Return TF_CONFIG as TFJob writes it, but for the evaluator.

        Only an evaluator has it in its cluster: the others would wait for it.
        """
        if len(self.processes) == 1:
            return {}
        shown = EVALUATOR if process.role == EVALUATOR else ""
        if shown not in self.clusters:
            cluster = {
                role: list(map(self.address, members))
                for role, members in sorted(self.members.items())
                if role != EVALUATOR or shown
            }
            self.clusters[shown] = json.dumps(cluster, separators=(",", ":"))
        task = json.dumps({"type": process.role, "index": process.index}, separators=(",", ":"))
        return {"TF_CONFIG": f'{{"cluster":{self.clusters[shown]},"task":{task},"environment":"cloud"}}'}

    def jax(self, process: Process) -> Dict[str, str]:
        """Return the names of JAXJob, and those of Kubeflow's Trainer."""
        host, port = self.host(self.first), self.ports[MASTER]
        return {
            "COORDINATOR_ADDRESS": host,
            "COORDINATOR_PORT": str(port),
            "NUM_PROCESSES": str(self.world),
            "PROCESS_ID": str(process.rank),
            "JAX_COORDINATOR_ADDRESS": _join(host, port),
            "JAX_NUM_PROCESSES": str(self.world),
            "JAX_PROCESS_ID": str(process.rank),
        }

    def xgboost(self, process: Process) -> Dict[str, str]:
        """Return the names of XGBoostJob, and those of the tracker, which rank 0 starts at MASTER_PORT."""
        env = {
            "DMLC_TRACKER_URI": self.host(self.first),
            "DMLC_TRACKER_PORT": str(self.ports[MASTER]),
            # The tracker sorts by this text.
            "DMLC_TASK_ID": str(process.rank).zfill(len(str(self.world - 1))),
            "DMLC_NUM_WORKER": str(self.world),
        }
        if self.world > 1:
            env["WORKER_ADDRS"] = self.other_hosts
            env["WORKER_PORT"] = str(self.ports[self.processes[1].name])
        return env

    @functools.cached_property
    def other_hosts(self) -> str:
        """Return the addresses of all processes but the first."""
        return ",".join(map(self.host, self.processes[1:]))

    def mpi(self, process: Process) -> Dict[str, str]:
        """Return the devices of all places of a host, as MPI starts one daemon a host for the ranks of all of them.

        mpirun finds those of the first rank where its own host has no ranks: Hydra hands on what it finds.
        """
        host = self.host(process)
        gpus = self.devices(host if host in self.slots else self.host(self.first))
        return {"CUDA_VISIBLE_DEVICES": gpus} if gpus else {}

    def mpi_command(self) -> Dict[str, str]:
        """Return defaults of the command that follow from the hosts of the ranks."""
        found = {}
        if len({self.devices(host) for host in self.slots}) > 1:  # ranks find those of their host, and not of mpirun's
            found["HYDRA_ENV"] = "none"
        if any(":" in host for host in self.slots):
            found["OMPI_MCA_oob_tcp_disable_ipv6_family"] = "0"
        return found

    def spark(self, process: Process) -> Dict[str, str]:
        """Return the address that Spark shows to others. Names of hosts lead nowhere in pods."""
        return {"SPARK_LOCAL_HOSTNAME": spark.bracketed(self.host(process))}

    def spark_plan(self, process: Process, arguments: str) -> Dict[str, Any]:
        """Return what the settings of a process of Spark are made of."""
        ports = {key: self.ports[key] for key in spark.port_keys(process.name)}
        return spark.plan(process.name, (self.host(process), self.spark_master()), ports, self.roles, arguments)

    def spark_command(self, process: Process) -> List[str]:
        """Return what starts Spark's Master or a Worker."""
        host, page = self.host(process), self.ports[spark.page_key(process.name)]
        if process.is_master:
            return spark.master_command(host, self.ports[MASTER], page)
        resources = self.roles[process.role]["resources"]
        return spark.worker_command(host, self.ports[process.name], page, resources, self.spark_master())

    def spark_master(self) -> str:
        """Return the address of Spark's Master."""
        return _join(self.host(self.first), self.ports[MASTER])

    def devices(self, host: str) -> str:
        """Return the GPUs of all places of a host."""
        return ",".join(gpu for place in self.places if place.host == host for gpu in place.gpus)

    def host(self, member: Any) -> str:
        """Return the address of a process."""
        return self.places[member.place].host

    def address(self, member: _Member) -> str:
        """Return the address of a process with its port."""
        return _join(self.host(member), self.ports[member.key])

    def expand(self, text: str, process: Process) -> str:
        """Return a text of the user with references replaced."""
        if "$(" not in text:
            return text
        if text in self.same:
            return self.same[text]
        is_own = False

        def replace(match: "re.Match[str]") -> str:
            nonlocal is_own
            name = match.group(1)
            if name is None:
                return "$("
            if name in ("role", "index"):
                is_own = True
                return process.role if name == "role" else str(process.index)
            if not _FIELD.fullmatch(name):
                return match.group(0)
            if name not in self.values:
                self.values[name] = self.value(name)
            return self.values[name]

        expanded = _REFERENCE.sub(replace, text)
        if not is_own:
            self.same[text] = expanded
        return expanded

    def value(self, name: str) -> str:
        """Return what stands for $(name)."""
        role, *fields = name.split(".")
        members = self.members.get(role)
        if members is None:
            known = ", ".join(self.roles)
            raise ContractError(
                f"$({name}) names no role of the gang ({known}); correct it, or write $$({name}) for the text"
            )
        if fields == ["count"]:
            return str(len(members))
        if fields == ["addresses"]:
            return ",".join(map(self.address, members))
        if len(fields) == 2 and re.fullmatch("[0-9]+", fields[0]) and fields[1] in ("host", "port"):
            index = int(fields[0])
            if index >= len(members):
                raise ContractError(
                    f"$({name}) names a process that is not there, as {role} has {len(members)}; use a lower index"
                )
            member = members[index]
            return self.host(member) if fields[1] == "host" else str(self.ports[member.key])
        raise ContractError(
            f"$({name}) must be one of {role}.INDEX.host, {role}.INDEX.port, {role}.addresses and {role}.count; "
            f"correct it, or write $$({name}) for the text"
        )


_FRAMEWORKS: Dict[str, Callable[[_Gang, Process], Dict[str, str]]] = {
    "PyTorch": _Gang.pytorch,
    "TensorFlow": _Gang.tensorflow,
    "JAX": _Gang.jax,
    "XGBoost": _Gang.xgboost,
    "MPI": _Gang.mpi,
    "Spark": _Gang.spark,
    "Generic": _Gang.generic,
}


def _order(description: Description, places: Sequence[Place]) -> List[int]:
    """Return the positions of places in the order of ranks."""
    first = FIRST_ROLES.get(description["framework"], ())
    names = [role["name"] for role in description["roles"]]
    names.sort(key=lambda name: name not in first)  # it keeps the order of the others
    order = {name: position for position, name in enumerate(names)}
    return sorted(range(len(places)), key=lambda position: (order[places[position].role], places[position].replica))


def _is_per_replica(framework: str, role: Mapping[str, Any]) -> bool:
    return framework == "MPI" or role["start"] == "PerReplica"


def _is_counted(role: Mapping[str, Any], index: int) -> bool:
    return role["success"] == "All" or (role["success"] == "First" and index == 0)


def _threads(cpu: float) -> int:
    return max(1, math.floor(cpu))


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
