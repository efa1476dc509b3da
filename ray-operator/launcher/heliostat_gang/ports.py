"""Reserves ports of this node for processes that have not started yet.

Each port has a file in a directory of the pod. Who holds a lock on it has the port, so that a port is free when its last
holder is gone, however that ended. The time of the file is when the port was last seen in use.

Ports are below those that the kernel gives to connections (from 32768), and above those that Ray gives to its workers (10002 to 19999).
"""

import contextlib
import errno
import fcntl
import itertools
import os
import random
import socket
import time
from typing import Collection, Dict, Optional

DIRECTORY = "/tmp/heliostat-gang-ports"
FIRST, LAST = 20000, 29999


def reserve(count: int, avoid: Collection[int] = ()) -> Dict[int, int]:
    """Return free ports, and for each the descriptor that holds it. The one that was unused for longest comes first."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(DIRECTORY)
        os.chmod(DIRECTORY, 0o1777)  # programs of other users share it
    names = {str(port): port for port in range(FIRST, LAST + 1)}  # a program may have put other files there
    used = {names[entry.name]: entry.stat().st_mtime_ns for entry in os.scandir(DIRECTORY) if entry.name in names}
    fresh = [port for port in names.values() if port not in used]
    random.shuffle(fresh)  # pods that share a network have directories of their own
    taken: Dict[int, int] = {}
    try:
        for port in itertools.chain(fresh, sorted(used, key=used.__getitem__)):
            if len(taken) == count:
                break
            descriptor = None if port in avoid else _take(port)
            if descriptor is not None:
                taken[port] = descriptor
    except BaseException:  # such as a disk that is full
        release(taken)
        raise
    if len(taken) < count:
        free = len(taken)
        release(taken)
        raise OSError(f"reserve {count} ports: {free} of {FIRST} to {LAST} are free; end other programs of this pod")
    return taken


def release(taken: Dict[int, int]) -> None:
    """Close the descriptors of ports. Others may still hold them."""
    for descriptor in taken.values():
        with contextlib.suppress(OSError):  # of a disk that takes nothing more, not even a time
            touch(descriptor)
        os.close(descriptor)
    taken.clear()


def touch(descriptor: int) -> None:
    """Note that a port is in use now, more exactly than the kernel does by itself."""
    now = time.time_ns()
    os.utime(descriptor, ns=(now, now))


def listener(port: int) -> socket.socket:
    """Return a socket that listens at a port, for all addresses of both families."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # a kernel without IPv6, though Python has it
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _take(port: int) -> Optional[int]:
    """Return a descriptor that holds a port, None where another one has it."""
    try:
        descriptor = os.open(f"{DIRECTORY}/{port}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except PermissionError:  # it is another user's
        return None
    is_taken = False
    try:
        touch(descriptor)
        is_taken = _has_lock(descriptor) and _is_free(port)
    finally:
        if not is_taken:
            os.close(descriptor)
    return descriptor if is_taken else None


def _has_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    """Return whether a program can listen at a port, even one that does not share addresses of closed connections."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            probe = socket.socket(family, socket.SOCK_STREAM)
        except OSError:  # a kernel without that family
            continue
        with probe:
            try:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:  # which IPv6 has where it is switched off
                    return False
    return True
