"""Finds the ranks of MPI among the descendants of a guard.

mpirun of Open MPI and its daemons end ranks by SIGKILL one second after they got SIGTERM. So ranks get it instead: they
can save, and mpirun ends after them.
"""

from typing import Any, List, Sequence

# What Open MPI, MPICH and Intel MPI set for a rank.
VARIABLES = (b"\0OMPI_COMM_WORLD_RANK=", b"\0PMIX_RANK=", b"\0PMI_RANK=")
# The name of the agent program, which waits as long as a daemon runs in another place.
LAUNCH_AGENT_NAME = "gang-launch"


def find_receivers(program: int, below: Sequence[Any]) -> List[Any]:
    """Return which of a guard's descendants get SIGTERM: ranks, and where there are none the program.

    None gets it where mpirun has ranks in other places alone. Each of below has pid, parent and name.
    """
    ranks = {process.pid for process in below if _is_rank(process.pid)}
    if ranks:
        return [process for process in below if process.pid in ranks and process.parent not in ranks]
    if any(process.name == LAUNCH_AGENT_NAME for process in below):
        return []
    return [process for process in below if process.pid == program]


def _is_rank(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = b"\0" + file.read()
    except OSError:  # it has ended
        return False
    return any(variable in variables for variable in VARIABLES)
