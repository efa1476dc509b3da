"""How Spark runs in the places of a gang: commands, settings and sizes.

In: the resources of the roles, addresses, ports, and what the command and the image set. Out: arguments of Master and Workers, and
the text of spark-defaults.conf.

It must never put the secret into an argument, the environment or a message. Everything here follows from arguments.
"""

import math
import os
import re
import shlex
from typing import Any, Dict, List, Mapping, Sequence, Tuple

DRIVER, EXECUTOR = "driver", "executor"
# The process that runs Spark's Master, and the key of the port that it shares with all others.
MASTER, MASTER_PORT = "master/0", "master"
CONF_DIR, SUBMIT_ARGUMENTS = "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"
MIB = 1 << 20
# What Master and Worker have for themselves, and what Spark takes for overhead at least.
MASTER_MIB, WORKER_MIB, OVERHEAD_MIB = 512, 256, 384
OVERHEAD_FACTOR, MOST_FACTOR = 0.1, 100
# Spark refuses Java programs that find less than 450 MiB, and some collectors of garbage hide a part of what they have.
LEAST_MIB = 512
EMPTY: Mapping[str, str] = {}

# What a Service named spark-master or spark-worker sets in each pod of its namespace, and what would move a daemon elsewhere.
FOREIGN = re.compile(r"SPARK_(MASTER|WORKER)_(HOST|PORT.*|SERVICE_.*|WEBUI_PORT|CORES|MEMORY|DIR)")

_SUBMITTERS = ("spark-submit", "spark-shell", "spark-sql", "spark-run-example", "pyspark")
_WITHOUT_VALUE = ("--verbose", "-v", "--supervise", "--help", "-h", "--version", "--usage-error")
_OF_OPTIONS = {"--executor-memory": "spark.executor.memory", "--driver-memory": "spark.driver.memory"}
# What the image must not have, although the gang may have no value: it moves a process from its address or port.
_DROPPED = ("spark.blockManager.port", "spark.driver.bindAddress", "spark.port.maxRetries")
_UNITS = {"b": 1, "k": 1 << 10, "m": MIB, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


class SizeError(Exception):
    """A size that does not fit. Its text is for the user."""


def port_keys(name: str) -> List[str]:
    """Return the keys of the ports that a process of Spark needs."""
    if name == MASTER:
        return [MASTER_PORT, page_key(name)]
    return [name, blocks_key(name), page_key(name)]


def blocks_key(name: str) -> str:
    """Return the key of the port for blocks of data."""
    return name + ":blocks"


def page_key(name: str) -> str:
    """Return the key of the port for a page."""
    return name + ":page"


def bracketed(host: str) -> str:
    """Return an address as Spark takes that of a host: one of IPv6 stands in brackets."""
    return f"[{host}]" if ":" in host else host


def master_command(host: str, port: int, page: int) -> List[str]:
    """Return what starts the Master."""
    return [
        *("spark-class", "org.apache.spark.deploy.master.Master"),
        *("--host", bracketed(host), "--port", str(port), "--webui-port", str(page)),
    ]


def worker_command(host: str, port: int, page: int, resources: Mapping[str, float], master: str) -> List[str]:
    """Return what starts a Worker for one executor."""
    memory = place_mib(resources)  # a Worker counts no overhead: check_sizes does, where all settings are at hand
    sizes = ["--cores", str(cores(resources)), *(["--memory", f"{memory}M"] if memory else [])]
    return [
        *("spark-class", "org.apache.spark.deploy.worker.Worker"),
        *("--host", bracketed(host), "--port", str(port), "--webui-port", str(page)),
        *(*sizes, f"spark://{master}"),
    ]


def fixed(name: str, host: str, master: str, ports: Mapping[str, int], executor: Mapping[str, float]) -> Dict[str, str]:
    """Return the settings of a process that neither the image nor the user may change, but the secret.

    master is the address of the Master with its port, executor what a place of an executor has.
    """
    found = {
        "spark.master": f"spark://{master}",
        "spark.submit.deployMode": "client",
        "spark.authenticate": "true",
        "spark.master.rest.enabled": "false",
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
    }
    if name == MASTER:  # a store of the image would have what a former round left
        found["spark.deploy.recoveryMode"] = "NONE"
    if not name.startswith(DRIVER):  # one that moved to another port would not be found
        return {**found, "spark.port.maxRetries": "0"}
    return {
        **found,
        "spark.dynamicAllocation.enabled": "false",
        "spark.driver.host": bracketed(host),
        "spark.driver.port": str(ports[name]),
        "spark.driver.blockManager.port": str(ports[blocks_key(name)]),
        "spark.ui.port": str(ports[page_key(name)]),
        "spark.executor.cores": str(cores(executor)),
    }


def weak(
    directory: str, driver: Mapping[str, float], executor: Mapping[str, float], given: Mapping[str, str] = EMPTY
) -> Dict[str, str]:
    """Return settings that count where neither the image nor the user has others, whose are given. directory is the process's own."""
    found = {
        "spark.local.dir": os.path.join(directory, "local"),
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        # An executor ends at the first look at its blocks after its last task. By itself Spark looks every 30 s, and the grace ends before.
        "spark.storage.decommission.replicationReattemptInterval": "2s",
        "spark.executor.logs.rolling.strategy": "size",
        "spark.executor.logs.rolling.maxSize": str(64 * MIB),
        "spark.executor.logs.rolling.maxRetainedFiles": "2",
    }
    for role, resources, daemon in ((DRIVER, driver, MASTER_MIB), (EXECUTOR, executor, WORKER_MIB)):
        memory = place_mib(resources)
        if memory:
            most = most_heap(role, memory, given)
            found[f"spark.{role}.memory"] = f"{max(most_heap(role, memory - daemon, given), min(LEAST_MIB, most))}m"
    return found


def compose(image: str, secret: str, fixed_settings: Mapping[str, str], weak_settings: Mapping[str, str]) -> str:
    """Return the text of spark-defaults.conf, where image is the text of the image's own."""
    own = parse_properties(image)
    given = {name: value for name, value in own.items() if name not in _DROPPED and not name.startswith("spark.authenticate")}
    found = {**weak_settings, **given, **fixed_settings, "spark.authenticate.secret": secret}
    return "".join(f"{name} {value}\n" for name, value in sorted(found.items()))


def options_name(name: str) -> str:
    """Return the variable with options of Java that Spark reads last for Master or Worker."""
    return "SPARK_MASTER_OPTS" if name == MASTER else "SPARK_WORKER_OPTS"


def options(fixed_settings: Mapping[str, str]) -> str:
    """Return settings as options of Java, which are stronger than a file. The last one of a name counts."""
    return " ".join(shlex.quote(f"-D{name}={value}") for name, value in sorted(fixed_settings.items()))


def check_sizes(given: Mapping[str, str], driver: Mapping[str, float], executor: Mapping[str, float]) -> None:
    """Raise SizeError where a role does not fit its place. given has the settings of the image and of the command."""
    _check_size(DRIVER, given, place_mib(driver))
    _check_size(EXECUTOR, given, place_mib(executor))


def check_devices(given: Mapping[str, str], offered: str) -> None:
    """Raise SizeError where executors ask for what no Worker offers. offered is all text that may give Workers a setting."""
    for name, amount in sorted(given.items()):
        match = re.fullmatch(r"spark\.executor\.resource\.([^.]+)\.amount", name)
        if match and amount != "0" and f"spark.worker.resource.{match.group(1)}.amount" not in offered:
            raise SizeError(
                f"{name} makes the application wait for ever, as Workers offer no {match.group(1)}; leave out spark.executor.resource.* "
                "and spark.task.resource.*: the program may use the devices in CUDA_VISIBLE_DEVICES of its executor"
            )


def _check_size(role: str, given: Mapping[str, str], memory: int) -> None:
    if not memory:
        return
    name = f"spark.{role}.memory"
    if name not in given:  # it is what the place leaves
        overhead = overhead_mib(role, LEAST_MIB, given)
        if LEAST_MIB + overhead > memory:
            raise SizeError(
                f"a place of {memory} MiB holds no {role} of Spark beside an overhead of {overhead} MiB; "
                f"raise memory of role {role} to at least {LEAST_MIB + overhead}Mi"
            )
        return
    heap = parse_mib(name, given[name])
    overhead = overhead_mib(role, heap, given)
    if heap + overhead > memory:
        raise SizeError(
            f"{name} of {heap} MiB with an overhead of {overhead} MiB does not fit the {memory} MiB of a place; "
            f"lower it to at most {most_heap(role, memory, given)}m, leave it out, or raise memory of role {role}"
        )


def overhead_mib(role: str, heap: int, given: Mapping[str, str]) -> int:
    """Return what a role needs beside its heap."""
    name = f"spark.{role}.memoryOverhead"
    if name in given:
        return parse_mib(name, given[name])
    return max(OVERHEAD_MIB, math.floor(heap * _factor(role, given)))


def _factor(role: str, given: Mapping[str, str]) -> float:
    name = f"spark.{role}.memoryOverheadFactor"
    try:
        factor = float(given.get(name, OVERHEAD_FACTOR))
    except ValueError:
        factor = -1
    if not 0 <= factor <= MOST_FACTOR:  # nor what is no number
        raise SizeError(f"{name} {given[name]} is no factor from 0 to {MOST_FACTOR}; write one such as 0.1")
    return factor


def settings_of(command: Sequence[str], entrypoint: str, arguments: str = "") -> Dict[str, str]:
    """Return the settings that a command has in options of spark-submit. Those of the program itself are not looked for.

    arguments has the options of pyspark, where a Python program starts it.
    """
    if arguments:
        return {**settings_of([], f"pyspark {arguments}"), **settings_of(command, entrypoint)}
    words = list(command)
    if entrypoint:
        try:
            words = shlex.split(entrypoint, comments=True)
        except ValueError:  # the shell will say so
            return {}
    at = next((position for position, word in enumerate(words) if os.path.basename(word) in _SUBMITTERS), None)
    found: Dict[str, str] = {}
    words = [] if at is None else words[at + 1 :]
    while words and words[0].startswith("-"):
        option, has_value, value = words.pop(0).partition("=")
        if option in _WITHOUT_VALUE:
            continue
        if not has_value:
            value = words.pop(0) if words else ""
        if option in ("--conf", "-c"):
            name, _, value = value.partition("=")
            found[name.strip()] = value.strip()
        elif option in _OF_OPTIONS:
            found[_OF_OPTIONS[option]] = value
    return found


def parse_properties(text: str) -> Dict[str, str]:
    """Return the settings of a file as spark-defaults.conf. A line that ends with a backslash goes on in the next one."""
    found = {}
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\(?:\r?\n[ \t\f]*|$)", r"\1", text).splitlines():
        match = re.fullmatch(r"\s*([^#!\s:=][^\s:=]*)\s*[\s:=]\s*(.*?)\s*", line)
        if match:
            found[match.group(1)] = match.group(2)
    return found


def parse_mib(name: str, text: str) -> int:
    """Return an amount of memory as Spark reads it: a number with a unit, without one in MiB."""
    match = re.fullmatch(r"([0-9]{1,18})\s*(?:([bkmgtp])b?)?", text.strip().lower())
    if match is None:
        raise SizeError(f"{name} {text} is no amount of memory; write one such as 3g or 3072m")
    return int(match.group(1)) * _UNITS[match.group(2) or "m"] // MIB


def cores(resources: Mapping[str, float]) -> int:
    """Return how many tasks an executor runs at a time."""
    return max(1, math.floor(resources.get("CPU", 0)))


def daemon_mib(name: str) -> int:
    """Return how much memory the Java program of Master or Worker may use."""
    return MASTER_MIB if name == MASTER else WORKER_MIB


def place_mib(resources: Mapping[str, float]) -> int:
    """Return the memory of a place in MiB, 0 where it reserves none."""
    return math.floor(resources.get("memory", 0) / MIB)


def most_heap(role: str, memory: int, given: Mapping[str, str] = EMPTY) -> int:
    """Return how many MiB a role may have so that it fits a memory beside its overhead."""
    if f"spark.{role}.memoryOverhead" in given:
        return max(0, memory - overhead_mib(role, 0, given))
    return max(0, min(memory - OVERHEAD_MIB, math.floor(memory / (1 + _factor(role, given)))))


def plan(
    name: str, at: Tuple[str, str], ports: Mapping[str, int], roles: Mapping[str, Mapping[str, Any]], arguments: str = ""
) -> Dict[str, Any]:
    """Return what an agent needs to write the settings of a process, but the secret.

    at has the address of its place, and that of the Master with its port. arguments are what the user has in SUBMIT_ARGUMENTS.
    """
    host, master = at
    driver, executor = roles[DRIVER], roles[EXECUTOR]
    return {
        "fixed": fixed(name, host, master, ports, executor["resources"]),
        "driver": dict(driver["resources"]),
        "executor": dict(executor["resources"]),
        "command": settings_of(driver["command"], driver["entrypoint"], arguments) if name.startswith(DRIVER) else {},
        # The application gives its executors all settings but this one, which each place has for itself.
        "java": [f"-Dspark.blockManager.port={ports[blocks_key(name)]}"] if name.startswith(EXECUTOR) else [],
    }
