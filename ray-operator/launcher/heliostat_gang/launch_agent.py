"""Stands for ssh: has a line run in another place of the gang, for mpirun, and ends with its exit code.

In: arguments as those of ssh: options, a host, and a line. Out: the exit code, and on stderr why the line failed.

It is copied to where mpirun runs, and must need nothing but the standard library.
"""

import json
import os
import socket
import sys

OPTIONS_WITH_VALUES = "BbcDEeFIiJLlmOopQRSWw"  # of ssh


def main() -> None:
    """Send the request, and wait for the answer."""
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("gang-launch")  # by which a guard finds that ranks run elsewhere
    words = sys.argv[1:]
    while words and words[0].startswith("-"):
        option = words.pop(0)
        del words[: len(option) == 2 and option[1] in OPTIONS_WITH_VALUES]
    # What programs need before they can read an environment of their own does not go along by itself.
    env = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    directory = os.path.dirname(os.path.abspath(__file__))
    # Daemons of Open MPI end at once where this agent program is not, and never call it.
    line = " ".join(words[1:]).replace(os.path.join(directory, "agent"), "/bin/sh")
    request = {"host": words[0].strip("[]"), "line": line, "env": env}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.join(directory, "socket"))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as file:
            answer = json.loads(file.readline() or '{"code": 255, "message": "the round has ended"}')
    if answer["message"]:
        print(f"{request['host']}: {answer['message']}", file=sys.stderr)
    sys.exit(answer["code"])


if __name__ == "__main__":
    main()
