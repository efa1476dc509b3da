"""What a place finds on its host: addresses, devices, programs, memory, and Ray's folder of logs.

It must never import Ray at its own import, and works without Ray, where only Ray's names are missing.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import struct
import sys
import tempfile
from typing import Any, Dict, List, Mapping, Optional

# The entry of PYTHONPATH that this package is imported from.
LAUNCHER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEEPER = os.path.join(LAUNCHER, "heliostat_gang", "keeper.py")

_SIOCGIFADDR = 0x8915
_FIRST_LINE_BYTES = 256


class NotFoundError(Exception):
    """A program that cannot run here. Its text is for the user."""


def describe() -> Dict[str, Any]:
    """Return where this process is: node_id, ip, host, pod, loopback, interface, gpus, python, pid."""
    ip = address()
    return {
        "node_id": _node_id(),
        "ip": ip,
        "host": socket.gethostname(),
        "pod": pod(),
        "loopback": is_loopback(socket.gethostname()),
        "interface": interface(ip),
        "gpus": gpus(),
        "python": sys.executable,
        "pid": os.getpid(),
    }


def pod() -> str:
    """Return the pod's name, which is its host name unless it has the network of its node."""
    return os.environ.get("HELIOSTAT_POD_NAME") or socket.gethostname()


def address() -> str:
    """Return the address that Ray has for this host, else the one that packets leave from."""
    ray = _ray()
    if ray is not None:
        return ray.util.get_node_ip_address()
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))  # sends nothing
            return probe.getsockname()[0]
    return "127.0.0.1"


def is_loopback(name: str) -> bool:
    """Return whether a host name leads to this host alone. Without an address it does, as Gloo uses loopback then."""
    try:
        first = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError:
        return True
    return first.startswith("127.") or first == "::1"


def interface(ip: str) -> str:
    """Return the name of the network interface that has an address, or no text."""
    if ":" in ip:
        wanted = socket.inet_pton(socket.AF_INET6, ip.partition("%")[0]).hex()
        with contextlib.suppress(OSError), open("/proc/net/if_inet6") as file:
            return next((line.split()[5] for line in file if line.startswith(wanted)), "")
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(answer[20:24]) == ip:
                    return name
    return ""


def gpus() -> List[str]:
    """Return the GPUs that Ray gave to this actor, as CUDA_VISIBLE_DEVICES names them."""
    ray = _ray()
    if ray is not None:
        return [str(gpu) for gpu in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])]
    return [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]


def log_dir() -> str:
    """Return the folder of Ray's logs on this host, which Ray's API of logs reads."""
    if _ray() is None:
        return tempfile.gettempdir()
    from ray._private import worker

    return worker._global_node.get_logs_dir_path()


def initial_environment() -> Dict[str, str]:
    """Return the environment that this process was started with."""
    with open("/proc/self/environ", "rb") as file:
        entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry]
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries}


def find_program(name: str, env: Mapping[str, str], cwd: str) -> str:
    """Return the path of a program as execvp finds it. It raises NotFoundError where that, or its interpreter, is not there."""
    if not os.path.isdir(cwd):
        raise NotFoundError(f"working directory {cwd} is not in the image; correct working_dir or add it to the image")
    path = _which(name, env, cwd)
    if path is None:
        where = "" if "/" in name else f"; its PATH is {_path(env)}"
        remedy = "add it to the image or to the runtime environment"
        raise NotFoundError(f"program {name} is not in the image, or not executable; {remedy}{where}")
    missing = _missing_interpreter(path, env, cwd)
    if missing:
        remedy = "add it to the image or correct the first line of the program"
        raise NotFoundError(f"program {path} needs {missing}, which is not in the image; {remedy}")
    return path


def remove(directory: str) -> None:
    """Remove a directory with all that is in it, as far as that is possible. No directory has an empty name."""
    if directory:
        shutil.rmtree(directory, ignore_errors=True)


def is_disk_full(number: Optional[int]) -> bool:
    """Report whether an error number means that a disk, or the user's share of it, takes nothing more."""
    return number in (errno.ENOSPC, errno.EDQUOT)


def describe_full(error: OSError) -> str:
    """Return a text for a disk that is full."""
    return f"write {error.filename or 'a file'}: {error.strerror}"


def memory_kills() -> int:
    """Return how many processes of this container the kernel has killed because its memory ran out; 0 if that is not known."""
    for path in _memory_files():
        with contextlib.suppress(OSError), open(path) as file:
            for line in file:
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def _memory_files() -> List[str]:
    """Return where the count of memory kills may be, with version 2 of control groups and with version 1."""
    found = []
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if not controllers:
                found.append(f"/sys/fs/cgroup{path}/memory.events")
            elif "memory" in controllers.split(","):
                found.append(f"/sys/fs/cgroup/memory{path}/memory.oom_control")
    return [*found, "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"]


def _which(name: str, env: Mapping[str, str], cwd: str) -> Optional[str]:
    if "/" in name:
        path = os.path.join(cwd, name)
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
    entries = [os.path.join(cwd, entry) for entry in _path(env).split(":")]
    return shutil.which(name, path=":".join(entries))


def _path(env: Mapping[str, str]) -> str:
    return env.get("PATH") or os.defpath


def _missing_interpreter(path: str, env: Mapping[str, str], cwd: str) -> str:
    """Return the program that the first line of a script names, if that is not there."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        line = file.read(_FIRST_LINE_BYTES).partition(b"\n")[0]
        words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
        if words and not os.path.exists(words[0]):
            return words[0]
        if len(words) > 1 and os.path.basename(words[0]) == "env" and not words[1].startswith("-") and "=" not in words[1]:
            return "" if _which(words[1], env, cwd) else words[1]
    return ""


def _ray() -> Any:
    """Return Ray, if this process is one of its workers."""
    ray = sys.modules.get("ray")
    return ray if ray is not None and ray.is_initialized() else None


def _node_id() -> str:
    ray = _ray()
    return ray.get_runtime_context().get_node_id() if ray is not None else ""
