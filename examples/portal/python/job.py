#!/usr/bin/env python3
"""Runs a job on a cluster, shows its output, and exits as its driver does.

The cluster is that of an earlier run. Where there is none, it is made from the preset "small", or else from a manifest.
README.md says how to generate heliostat_client.

usage: SERVER=https://HOST TOKEN=… CA=ca.crt NAMESPACE=team-a python job.py [ENTRYPOINT]
"""

import os
import ssl
import sys
import time
import uuid

import httpx
from heliostat_client import AuthenticatedClient
from heliostat_client.api.portal import portal_create_object, portal_get_object, portal_list_presets, portal_read_log
from heliostat_client.models import (
    PortalCreateObjectBody,
    PortalCreateObjectBodyObject,
    PortalCreateObjectBodyOptions,
    Problem,
)

NAMESPACE = os.environ["NAMESPACE"]
PRESET = "small"
SIZE = {"cpu": "300m", "memory": "2Gi"}
# For so long a replica of the server may not know of a job that was just created.
PATIENCE = 15  # seconds
# Text has no sign of life while a driver is silent. After so long ask again, which costs nothing.
SILENCE = 60  # seconds
# So often in a row the output may break without a new byte.
BREAKS = 20


class Failed(Exception):
    """The server refused a call, or cannot answer it."""


def connect() -> AuthenticatedClient:
    """Return a client that trusts the authority CA, and that signs in with TOKEN."""
    return AuthenticatedClient(
        base_url=os.environ["SERVER"].rstrip("/"),
        token=os.environ["TOKEN"],
        verify_ssl=ssl.create_default_context(cafile=os.environ["CA"]),
        timeout=httpx.Timeout(30),
    )


def refused(problem: Problem) -> Failed:
    lines = [f"{problem.status} {problem.reason}: {problem.detail}", problem.remedy or ""]
    lines += [f"{one.field}: {one.message}" for one in problem.errors or []]
    return Failed("\n  ".join(line for line in lines if line))


def wait(headers: httpx.Headers) -> None:
    """Wait as long as the server asks for."""
    after = headers.get("Retry-After", "")
    time.sleep(int(after) if after.isdigit() else 1)


def ask(call, *args, **kwargs):
    """Return what a call answers. It is repeated after a break, and where the server says that it may be."""
    start, patience = time.monotonic(), {429: 60, 503: 60}
    if call is portal_get_object:
        patience[404] = PATIENCE
    while True:
        passed = time.monotonic() - start
        try:
            answer = call.sync_detailed(*args, **kwargs)
        except httpx.TransportError as error:
            if passed > 60:
                raise Failed(f"cannot reach the server: {error}") from error
            time.sleep(1)
            continue
        if not isinstance(answer.parsed, Problem):
            return answer.parsed
        if passed >= patience.get(answer.status_code, 0):
            raise refused(answer.parsed)
        wait(answer.headers)


def create(client: AuthenticatedClient, body: PortalCreateObjectBody):
    """Create an object and return it. Its idempotency key makes that safe to repeat."""
    answer = ask(portal_create_object, NAMESPACE, client=client, body=body)
    for warning in answer.warnings or []:
        print(f"warning: {warning}", file=sys.stderr)
    return answer.object_


def name_of(made) -> str:
    return made.metadata["name"]


def ensure_cluster(client: AuthenticatedClient) -> str:
    """Return the name of the cluster. Each run has the same key, so it finds the cluster of the first run."""
    body = PortalCreateObjectBody(idempotency_key="job.py")
    presets = ask(portal_list_presets, NAMESPACE, client=client).presets or []
    small = next((one for one in presets if one.name == PRESET and not one.error), None)
    if small:
        fields = small.schema.to_dict().get("properties", {}) if small.schema else {}
        options = {"name": "job-py"} if "name" in fields else {}
        body.preset, body.options = PRESET, PortalCreateObjectBodyOptions.from_dict(options)
    else:
        body.object_ = PortalCreateObjectBodyObject.from_dict(
            {
                "apiVersion": "heliostat.dev/v1beta1",
                "kind": "ComputeCluster",
                "spec": {
                    "rayVersion": "2.60.0",
                    "head": {"size": SIZE},
                    "workerGroups": [{"name": "cpu", "replicas": 1, "size": SIZE}],
                },
            }
        )
    return name_of(create(client, body))


def submit(client: AuthenticatedClient, cluster: str, entrypoint: str) -> str:
    """Submit a job and return its name. Each run has a key of its own, so it submits a job of its own."""
    job = {
        "apiVersion": "heliostat.dev/v1beta1",
        "kind": "ClusterJob",
        # For a cluster of the job's own: "clusterTemplate": {"spec": {"rayVersion": "2.60.0"}}
        "spec": {"entrypoint": entrypoint, "clusterRef": {"name": cluster}},
    }
    body = PortalCreateObjectBody(
        object_=PortalCreateObjectBodyObject.from_dict(job), idempotency_key=str(uuid.uuid4())
    )
    return name_of(create(client, body))


def copy(client: AuthenticatedClient, name: str, attempt: int, offset: int, out) -> int:
    """Copy the output from an offset on, and return the offset at its end or at its break.

    The generated call returns a text when it is whole, so only its path and query are used here.
    """
    request = portal_read_log._get_kwargs(NAMESPACE, name, attempt=attempt, offset=offset, follow=True)
    headers = {"Accept": "text/plain", "Accept-Encoding": "identity"}  # an offset counts the bytes of the output
    timeout = httpx.Timeout(30, read=SILENCE)
    with client.get_httpx_client().stream(**request, headers=headers, timeout=timeout) as answer:
        if answer.status_code != 200:
            answer.read()
            if answer.status_code in (429, 503):
                wait(answer.headers)
                raise Broken(offset)
            problem = refused(Problem.from_dict(answer.json()))
            raise Missing(str(problem)) if answer.status_code == 404 else problem
        try:
            for part in answer.iter_raw():
                out.write(part)
                out.flush()
                offset += len(part)
        except httpx.TransportError as error:
            raise Broken(offset) from error
    return offset


class Missing(Failed):
    """There is no such job, or none yet."""


class Broken(Exception):
    """The output broke at an offset, from which it can be asked for again."""

    def __init__(self, offset: int):
        super().__init__(offset)
        self.offset = offset


def follow(client: AuthenticatedClient, name: str, attempt: int, out) -> None:
    """Copy the output of an attempt to its end, through each break of a connection.

    A text that is not whole ends with a broken connection, which httpx reports. So one that ends is whole.
    """
    offset, breaks, start = 0, 0, time.monotonic()
    while True:
        try:
            copy(client, name, attempt, offset, out)
            return
        except Missing:
            if offset > 0 or time.monotonic() > start + PATIENCE:
                raise
        except httpx.ReadTimeout:
            continue  # the driver is silent, or waits for its cluster
        except httpx.TransportError:
            breaks += 1
        except Broken as broken:
            is_silent = isinstance(broken.__cause__, httpx.ReadTimeout)
            breaks = 0 if broken.offset > offset or is_silent else breaks + 1
            offset = broken.offset
        if breaks >= BREAKS:
            print(f"job.py: cannot read the output of {name} beyond byte {offset}", file=sys.stderr)
            return
        time.sleep(1)


def run(entrypoint: str) -> int:
    """Return the exit code of the driver."""
    out = sys.stdout.buffer
    with connect() as client:
        cluster = ensure_cluster(client)
        name = submit(client, cluster, entrypoint)
        print(f"job.py: job {name} on cluster {cluster}", file=sys.stderr)
        followed = 0
        while True:
            # The end of a text does not say how the job ended (httpx keeps no trailers), so the job itself is asked.
            job = ask(portal_get_object, NAMESPACE, "jobs", name, client=client) if followed else None
            status = job.object_.status if job else None
            attempts = (status.attempts or []) if status else []
            last = attempts[-1] if attempts else None
            if last and last.number > followed or not followed:
                followed = last.number if last else 1
                follow(client, name, followed, out)  # a retry has an output of its own
                continue
            if status and status.end_time:
                break
            time.sleep(1)  # the output may end before the operator has seen it
        if last and isinstance(last.exit_code, int):
            return last.exit_code
        line = job.line
        raise Failed(f"job {name}: {line.phase or ''} {line.code or ''}: {line.message or ''} {line.remedy or ''}")


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1] if len(sys.argv) > 1 else """python -c 'print("hello from Ray")'"""))
    except Failed as failure:
        sys.exit(f"job.py: {failure}")
