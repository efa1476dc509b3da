"""What a gang needs of the Ray cluster: placement groups, agents in their bundles, nodes, and the report.

In: what the driver wants. Out: calls of the driver's functions with the results, in the driver's thread.

Calls to agents go from process to process. Everything else asks the GCS, which may be away for a minute while a head is replaced:
a thread of its own does that, one after the other, so that the driver waits for nothing.
"""

import queue
import re
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

import ray
from ray._private import state
from ray._private import worker as ray_worker
from ray.core.generated import autoscaler_pb2
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.experimental import internal_kv
from ray.util.placement_group import (
    PlacementGroup,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
    validate_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from . import host
from .agent import Agent
from .capacity import Node
from .driver import Failure
from .groups import SPAN

NAMESPACE = "heliostat"
NODE_LABEL = "ray.io/node-id"
STRATEGIES = {"Pack": "PACK", "Spread": "SPREAD", "StrictPack": "STRICT_PACK", "StrictSpread": "STRICT_SPREAD"}
# Calls of an agent that are open at a time: one waits for events, and start may wait for processes of a former round.
CALLS = 8
# How often groups are looked at while the gang gathers: soon at first, then less often.
SOON_SECONDS, LATER_SECONDS, SOON_FOR = 0.05, 0.5, 10.0
DRAIN_SECONDS = 3.0
NODES_SECONDS = 3.0
PROBE_SECONDS = 3.0
RETRY_SECONDS = 1.0
MANY_GROUPS = 8

Handler = Callable[..., None]


class _RefusedError(Exception):
    """Ray takes no such group or agent, whatever is free."""


class Cluster:
    """Asks Ray for what a gang needs."""

    def __init__(self, gang: Mapping[str, Any], post: Callable[..., None]) -> None:
        """Connect. post takes a function with its arguments, and has the driver's thread call it."""
        ray.init(log_to_driver=False, logging_level="error")
        self._gang = gang
        self._post = post
        self._submission = gang["submission"]
        self._agent = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=CALLS)(Agent)
        self._groups: Dict[int, PlacementGroup] = {}
        self._states: Dict[int, str] = {}
        self._actors: Dict[int, Any] = {}
        self._closed: Set[int] = set()
        self._commands: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        self._is_gathering = True
        self._asked = 0.0  # when a group was asked for last
        self._due = {"groups": 0.0, "drain": 0.0, "nodes": 0.0}
        self.on_group: Handler = _ignore
        self.on_drain: Handler = _ignore
        self.on_nodes: Handler = _ignore
        self.on_refused: Handler = _ignore
        threading.Thread(target=self._run, name="gang-gcs", daemon=True).start()

    # What the driver wants.

    def gather(self, is_gathering: bool) -> None:
        """Look at groups and at what nodes have free, or no longer."""
        if is_gathering != self._is_gathering:
            self._is_gathering = is_gathering
            self._commands.put(_ignore)

    def ask(
        self, group: int, bundles: Sequence[Mapping[str, Any]], selectors: Sequence[Mapping[str, str]], avoid: Sequence[str]
    ) -> None:
        """Create a placement group.

        Ray may have made one though the call that asked for it failed. Then its name finds it, and Ray makes no other one of
        that name: that the name is taken is no refusal.
        """
        labels = [_selector(selector, avoid) for selector in selectors]
        name = f"{self._submission}-{group}"
        given = {
            "bundles": [dict(bundle) for bundle in bundles],
            "strategy": STRATEGIES[self._gang["placement"]],
            "bundle_label_selector": labels if any(labels) else None,
        }
        has_failed = False

        def create() -> None:
            nonlocal has_failed
            self._asked = time.monotonic()
            self._due["groups"] = 0.0
            found = _find_group(name, given["bundles"]) if has_failed else None
            if found is None:
                _check(validate_placement_group, **given)
                has_failed = True  # unless the next line returns
                found = placement_group(name=name, **given)
            self._groups[group] = found

        self._commands.put(create)

    def release(self, group: int) -> None:
        """Remove a placement group, with the agents in it."""

        def remove() -> None:
            found = self._groups.get(group)
            if found is not None:
                remove_placement_group(found)  # it is called again where this fails
            self._groups.pop(group, None)
            self._states.pop(group, None)

        self._commands.put(remove)

    def open(self, place: int, group: int, bundle: int, resources: Mapping[str, float], then: Handler) -> None:
        """Start an agent in a bundle, and call then with a place, what the agent says of itself, and a failure."""

        def create() -> None:
            if place in self._closed or group not in self._groups:
                return
            others = {name: value for name, value in resources.items() if name not in ("CPU", "GPU", "memory")}
            shaped = _check(
                self._agent.options,
                num_cpus=resources.get("CPU", 0),
                num_gpus=resources.get("GPU", 0),
                memory=int(resources["memory"]) if "memory" in resources else None,
                resources=others or None,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._groups[group], placement_group_bundle_index=bundle),
            )
            self._actors[place] = _check(
                shaped.remote,
                {"uid": self._gang["uid"], "attempt": self._gang["attempt"], "child": place // SPAN},
                self._gang["graceSeconds"],
                submission=self._submission,
            )
            self.call(place, "describe", (), take)

        def take(place: int, found: Any, failure: Optional[Failure]) -> None:
            if failure is None:
                then(place, found, None)
            else:  # the agent is not there to name its pod
                full = re.search(_FULL, failure.message)
                if full:  # of its runtime environment, behind a traceback
                    failure = failure._replace(message=f"its files cannot be unpacked: {full.group()}")
                self._commands.put(lambda: self._post(then, place, None, failure.located(self._where(group, bundle))))

        self._commands.put(create)

    def _where(self, group: int, bundle: int) -> str:
        """Return in which pod a bundle is, for the end of a text; no text where Ray does not have it."""
        try:
            node = placement_group_table(self._groups[group])["bundles_to_node_id"][bundle]
            return f" (pod {next(found['NodeManagerHostname'] for found in ray.nodes() if found['NodeID'] == node)})"
        except Exception:  # the group is gone, or the head is away: the text is enough without it
            return ""

    def close(self, place: int) -> None:
        """End an agent."""

        def end() -> None:
            self._closed.add(place)
            actor = self._actors.get(place)
            if actor is not None:
                ray.kill(actor)
            self._actors.pop(place, None)

        self._commands.put(end)

    def call(self, place: int, method: str, arguments: Sequence[Any], then: Handler) -> None:
        """Call an agent, and call then with the place, the result, and a failure."""
        actor = self._actors.get(place)
        if actor is None:
            self._post(then, place, None, Failure("its agent was ended"))
            return
        future = getattr(actor, method).remote(*arguments).future()
        future.add_done_callback(lambda done: self._post(then, place, *_outcome(done)))

    def probe(self, node: str, then: Handler) -> None:
        """Look whether the raylet of a node takes connections, and call then with the node where it does not."""

        def find() -> None:
            for found in ray.nodes():
                if found["NodeID"] == node:
                    address = found["NodeManagerAddress"], found["NodeManagerPort"]
                    threading.Thread(target=look, args=address, daemon=True).start()

        def look(host: str, port: int) -> None:
            try:
                socket.create_connection((host, port), PROBE_SECONDS).close()
            except OSError:
                self._post(then, node)

        self._commands.put(find)

    def put_report(self, report: bytes) -> None:
        """Write the report. It may wait for long, and raise any error."""
        internal_kv._internal_kv_put(f"gang/{self._submission}", report, overwrite=True, namespace=NAMESPACE)

    def shut_down(self) -> None:
        """Leave the cluster. Ray ends the agents, and removes the groups."""
        ray.shutdown()

    # The thread that asks the GCS.

    def _run(self) -> None:
        while True:
            try:
                command = self._commands.get(timeout=max(0.0, self._next() - time.monotonic()))
            except queue.Empty:
                command = _ignore
            self._do(command)
            now = time.monotonic()
            for name, do in (("groups", self._look_at_groups), ("drain", self._look_for_drains), ("nodes", self._look_at_nodes)):
                if now >= self._due[name] and (self._is_gathering or name == "drain"):
                    self._try(do)
                    self._due[name] = time.monotonic() + self._period(name)

    def _next(self) -> float:
        return min(due for name, due in self._due.items() if self._is_gathering or name == "drain")

    def _period(self, name: str) -> float:
        if name == "groups":
            is_soon = time.monotonic() - self._asked < SOON_FOR
            return SOON_SECONDS if is_soon and not self._is_all_placed() else LATER_SECONDS
        return DRAIN_SECONDS if name == "drain" else NODES_SECONDS

    def _is_all_placed(self) -> bool:
        return all(self._states.get(group) == "placed" for group in self._groups)

    def _do(self, command: Callable[[], None]) -> None:
        """Do what the driver wants, again and again while the head is away."""
        while True:
            try:
                command()
                return
            except _RefusedError as error:
                self._post(self.on_refused, f"Ray refuses a place: {_in_a_line(error)}")
                return
            except (TypeError, AttributeError, LookupError) as error:  # this Ray has not what is called, and will not have it later
                self._post(self.on_refused, f"this version of Ray cannot run a gang: {error!r}")
                return
            except Exception:  # whatever Ray raises while its head is away
                time.sleep(RETRY_SECONDS)

    @staticmethod
    def _try(look: Callable[[], None]) -> None:
        try:
            look()
        except Exception:  # as above; it looks again later
            pass

    def _look_at_groups(self) -> None:
        if len(self._groups) > MANY_GROUPS:
            table = placement_group_table()
            found = {group: table.get(one.id.hex(), {}) for group, one in self._groups.items()}
        else:
            found = {group: placement_group_table(one) for group, one in self._groups.items()}
        for group, entry in found.items():
            now = {"CREATED": "placed", "REMOVED": "gone"}.get(entry.get("state", "REMOVED"), "waiting")
            if now != self._states.get(group, "waiting"):
                self._states[group] = now
                self._post(self.on_group, group, now)

    def _look_for_drains(self) -> None:
        self._post(self.on_drain, list(state.state.get_draining_nodes()))

    def _look_at_nodes(self) -> None:
        reply = autoscaler_pb2.GetClusterStatusReply()
        reply.ParseFromString(ray_worker.global_worker.gcs_client.get_cluster_status(timeout_s=10))
        scaling = reply.autoscaling_state
        is_coming = bool(scaling.pending_instances) or any(one.count for one in scaling.pending_instance_requests)
        nodes: List[Node] = [
            Node(dict(node.labels), dict(node.available_resources))
            for node in reply.cluster_resource_state.node_states
            if node.status in (autoscaler_pb2.NodeStatus.RUNNING, autoscaler_pb2.NodeStatus.IDLE)
        ]
        self._post(self.on_nodes, is_coming, nodes)


def _ignore(*_: Any) -> None:
    """Do nothing."""


def _check(call: Callable[..., Any], *arguments: Any, **given: Any) -> Any:
    """Call what raises these errors for its arguments alone, and others where the head is away."""
    try:
        return call(*arguments, **given)
    except (TypeError, ValueError) as error:
        raise _RefusedError(str(error)) from error


def _find_group(name: str, bundles: Sequence[Mapping[str, Any]]) -> Optional[PlacementGroup]:
    """Return the group that has a name, None where there is none."""
    try:
        found = get_placement_group(name)
    except ValueError:  # so Ray says that there is none
        return None
    # With its bundles, which Ray would ask the GCS for.
    return PlacementGroup(found.id, [{key: float(value) for key, value in bundle.items()} for bundle in bundles])


def _in_a_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _selector(selector: Mapping[str, str], avoid: Sequence[str]) -> Dict[str, str]:
    """Return a label selector that excludes nodes, unless it names nodes itself."""
    if not avoid or NODE_LABEL in selector:
        return dict(selector)
    return {**selector, NODE_LABEL: f"!in({','.join(avoid)})"}


def _outcome(done: Any) -> tuple:
    """Return the result of a call and its failure."""
    error = done.exception()
    if error is None:
        return done.result(), None
    cause = getattr(error, "cause", None) or error  # what the agent raised
    text = _in_a_line(cause)
    if isinstance(cause, OSError) and host.is_disk_full(cause.errno):
        return None, Failure(host.describe_full(cause), is_disk_full=True)
    is_memory = isinstance(error, OutOfMemoryError) or (isinstance(error, RayActorError) and "running low on memory" in text)
    if is_memory:  # behind the figures are the object store's, and a list of all workers
        text = text.partition(" Object store memory usage")[0]
    elif isinstance(error, RayActorError):
        text = _shorten(text)
    return None, Failure(text, is_memory)


def _shorten(text: str) -> str:
    """Return what matters of the paragraph in which Ray says why an actor died."""
    for pattern, start in _ENDS:
        found = re.search(pattern, text)
        if found:
            return start + found.group(1)[:200].rstrip(" .")
    return text


# What errors of a full disk, or of a full share of it, are as texts.
_FULL = r"\[Errno (28\] No space left on device|122\] Disk quota exceeded)(: '[^']*')?"
# Where Ray's texts have the cause, and what stands before it in ours.
_ENDS = (
    (r"the actor's node was (.*)", "its node was "),
    (r"Worker exit detail: (.*?)(?: Some common causes include|$)", "its agent died: "),
    (r"is unavailable: (.*?)(?: The task may or may not|$)", "its agent cannot be reached: "),
)
