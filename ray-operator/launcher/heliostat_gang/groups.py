"""Which placement groups and places a gang has, asks for, and gives back.

In: the roles of the description, what was seen of groups and places, and the time. Out: actions on groups and places.

A group is placed as a whole or not at all. Nothing here ends a place that is used by a round: gather, which releases what it has,
is called between rounds. Where processes join while a round runs, grow is called instead, and leaves groups of the round alone.
"""

from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from . import contracts

# How long places in hand are kept while others are missing.
HOLD_SECONDS = 60.0
# How long a node that does not answer is avoided, and how long a group may wait because of that.
AVOID_SECONDS = 90.0
AVOIDING_SECONDS = 30.0
# How long a look at a node takes at most.
PROBE_SECONDS = 5.0
# How long an agent may take to start where another one was: one that is stopped keeps what its bundle has.
SUCCESSOR_SECONDS = 20.0
# How often in a row an agent may fail to start in one place, and the longest pause between.
AGENT_FAILURES = 8
AGENT_PAUSE = 8.0

# Groups and places of child gang N have numbers from N × SPAN on, on the cluster that they share. A gang of its own is 0.
SPAN = 1_000_000_000

Replica = Tuple[str, int]


class Ask(NamedTuple):
    """Create a placement group with a bundle for each of these roles, on none of the nodes to avoid."""

    group: int
    roles: Tuple[str, ...]
    avoid: Tuple[str, ...]


class Release(NamedTuple):
    """Remove a placement group."""

    group: int


class Open(NamedTuple):
    """Start an agent in a bundle."""

    place: int
    group: int
    bundle: int
    role: str


class Close(NamedTuple):
    """End an agent, and make no further call to it."""

    place: int


class Probe(NamedTuple):
    """Look whether a node answers; call unreachable where it does not."""

    node: str


class Facts(NamedTuple):
    """Where a place is."""

    node: str
    pod: str
    host: str


class Place:
    """A bundle with an agent, from the start of the agent to its end."""

    def __init__(self, number: int, group: int, bundle: int, role: str) -> None:
        self.number, self.group, self.bundle, self.role = number, group, bundle, role
        self.facts = Facts("", "", "")
        self.opened = 0.0
        self.is_ready = False
        self.is_used = False  # has a replica in the round
        self.is_decommissioned = False  # is given up once its process has ended
        self.is_joining = False  # its process is prepared while the round runs
        self.seat: Optional[Replica] = None  # its replica in the last round
        self.first = ""  # its first process in the round
        self.running: Set[str] = set()
        self.left = 0  # processes that its agent counts, descendants included
        self.beat = 0.0  # time of the last beat
        self.asked = float("-inf")  # time of the latest call that it answered


class _Bundle:
    def __init__(self, role: str) -> None:
        self.role = role
        self.place: Optional[int] = None
        self.node = ""  # of the last agent here
        self.not_before = 0.0
        self.failures = 0
        self.message = ""


class _Group:
    def __init__(self, roles: Tuple[str, ...], avoid: Tuple[str, ...], now: float) -> None:
        self.bundles = [_Bundle(role) for role in roles]
        self.avoid = avoid
        self.asked = now
        self.is_placed = False


class Hand:
    """The groups and places of a gang."""

    def __init__(self, description: Mapping[str, Any], now: float) -> None:
        self.roles: Dict[str, Mapping[str, Any]] = {role["name"]: role for role in description["roles"]}
        self.replicas = sum(role["replicas"] for role in self.roles.values())
        self.is_mpi = description["framework"] == "MPI"
        self.alone = contracts.role_alone(description)
        self.places: Dict[int, Place] = {}
        self.draining: FrozenSet[str] = frozenset()
        self.since = now  # of the wait for places
        self.minimum_since = now  # while the minimum is ready: since when, less the time for which it was ready before
        self._minimum_seconds = 0.0  # for how long of this wait it was ready before
        self._groups: Dict[int, _Group] = {}
        self._base: Optional[int] = None  # the group of the minimum
        self._made = 0  # groups and places, ever
        self._held: Optional[float] = None  # since when places in hand wait for others
        self._is_cautious = False  # asks for more than the minimum only after it is placed
        self._avoided: Dict[str, float] = {}
        self._had_minimum = False
        self.refusal = ""  # why Ray takes no such group
        self.fitting: Mapping[str, int] = {}  # how many places of a role that wait would fit now

    # What was seen.

    def set_placed(self, group: int, is_placed: bool) -> None:
        """Take whether Ray has all bundles of a group placed."""
        found = self._groups.get(group)
        if found is None:
            return
        if is_placed and not found.is_placed:
            for bundle in found.bundles:
                bundle.failures, bundle.not_before = 0, 0.0
        found.is_placed = is_placed

    def set_ready(self, place: int, facts: Facts, now: float) -> None:
        """Take that an agent answers."""
        found = self.places.get(place)
        if found is None:
            return
        found.is_ready, found.facts, found.beat = True, facts, now
        bundle = self._bundle(found)
        if bundle:
            bundle.failures = 0

    def avoid(self, node: str, now: float) -> None:
        """Take that a node does not answer."""
        self._avoided[node] = now

    def delay(self, place: Place, now: float) -> None:
        """Start no agent in the bundle of a place before its node was looked at."""
        bundle = self._bundle(place)
        if bundle:
            bundle.not_before = now + PROBE_SECONDS

    def drop(self, number: int, message: str, now: float) -> None:
        """Forget a place whose agent ended or was given up."""
        place = self.places.pop(number)
        bundle = self._bundle(place)
        if bundle is None:
            return
        bundle.place, bundle.node = None, place.facts.node or bundle.node
        if not place.is_ready:
            bundle.failures += 1
            bundle.message = message
            bundle.not_before = max(bundle.not_before, now + min(AGENT_PAUSE, 2.0 ** (bundle.failures - 1)))

    def forget(self, group: int) -> List[int]:
        """Forget a group that Ray has removed, and return its places."""
        self._groups.pop(group, None)
        if self._base == group:
            self._base = None
        return [place.number for place in self.places.values() if place.group == group]

    def restart(self, now: float) -> None:
        """Begin another wait for places."""
        self.since, self._held, self._had_minimum, self._minimum_seconds = now, None, False, 0.0

    # What is there.

    def has_draining(self) -> bool:
        """Report whether a node of a place drains."""
        return bool(self.draining) and any(place.facts.node in self.draining for place in self.places.values())

    def is_minimum_ready(self) -> bool:
        """Report whether each role has its minimum of agents."""
        ready = self._ready()
        return all(ready[name] >= role["minReplicas"] for name, role in self.roles.items())

    def wait_seconds(self, now: float) -> float:
        """Return how long this wait lacks the minimum. Time with the minimum is a wait for more, which has a bound of its own."""
        return now - self.since - self._minimum_seconds

    def is_all_ready(self) -> bool:
        """Report whether each role has all its agents."""
        ready = self._ready()
        return all(ready[name] >= role["replicas"] for name, role in self.roles.items())

    def is_starting(self) -> bool:
        """Report whether a bundle is placed whose agent does not answer yet."""
        return any(not self._is_ready(bundle) for group in self._groups.values() if group.is_placed for bundle in group.bundles)

    def trouble(self) -> str:
        """Return why places cannot be had, or an empty text."""
        if self.refusal:
            return self.refusal
        for bundle in self._bundles():
            if bundle.failures >= AGENT_FAILURES:
                return f"the agent of a {bundle.role} has not started, {bundle.failures} times in a row: {bundle.message}"
        return ""

    def unplaced(self) -> List[str]:
        """Return the roles of bundles that Ray has not placed."""
        return [
            bundle.role
            for group in self._groups.values()
            for bundle in group.bundles
            if not group.is_placed and not self._is_ready(bundle)
        ]

    def missing_text(self) -> str:
        """Return how many places are missing, for people. Those that would fit now are not, but for one of them all."""
        parts = []
        waiting = self.unplaced()
        for name, role in self.roles.items():
            missing = max(0, role["replicas"] - sum(not wait for wait in self._placements(name)))
            free = min(self.fitting.get(name, 0), max(0, waiting.count(name) - (1 if len(self.roles) == 1 else 0)))
            missing -= min(free, missing)
            if missing:
                shape = ", ".join(f"{key}: {_quantity(key, value)}" for key, value in role["resources"].items())
                prefix = f"{name}: " if len(self.roles) > 1 else ""
                parts.append(f"{prefix}{missing} of {role['replicas']} × {{{shape}}} missing")
        return "; ".join(parts)

    # What follows.

    def gather(self, now: float) -> List[Any]:
        """Return what brings the places that are missing, or gives back what must not be held."""
        actions: List[Any] = []
        self._release_draining(list(self._groups), actions)
        self._release_unreachable(list(self._groups), actions, now)
        self._release_stuck(list(self._groups), actions, now)
        self._release_held(actions, now)
        self._ask(actions, now)
        self._open(actions, now, frozenset())
        has = self.is_minimum_ready()
        if has and not self._had_minimum:
            self.minimum_since = now - self._minimum_seconds
        elif self._had_minimum and not has:
            self._minimum_seconds = now - self.minimum_since
        self._had_minimum = has
        return actions

    def grow(self, now: float) -> List[Any]:
        """Return what brings places that are missing while a round runs, or gives back what the round does not use."""
        actions: List[Any] = []
        busy = {place.group for place in self.places.values() if place.is_used} | {self._base}
        free = [number for number in self._groups if number not in busy]
        self._release_draining(free, actions)
        self._release_unreachable(free, actions, now)
        self._release_lost(free, actions, now)
        self._release_stuck(free, actions, now)
        self._ask(actions, now)
        self._open(actions, now, self.draining)
        return actions

    def give_up(self, number: int) -> List[Any]:
        """Give up a place whose process has ended. Ray places a bundle of the minimum again when its node has gone."""
        place = self.places[number]
        actions: List[Any] = []
        if place.group != self._base:
            self._release(place.group, actions)
        else:
            self.drop(number, "its node drains", 0.0)
            actions.append(Close(number))
        return actions

    def joiners(self) -> List[Place]:
        """Return the places whose replicas may join the round, as many as are missing."""
        role = self.roles[self.alone]
        has = sum(place.is_used for place in self.places.values() if place.role == self.alone)
        waiting = [place for place in self.places.values() if place.role == self.alone and place.is_ready and not place.is_used]
        fit = [place for place in waiting if place.facts.node not in self.draining]
        return fit[: max(0, role["replicas"] - has)]

    def is_growing(self) -> bool:
        """Report whether a round that runs has fewer replicas than there may be."""
        if not self.alone:
            return False
        has = sum(place.is_used and not place.is_decommissioned for place in self.places.values() if place.role == self.alone)
        return has < self.roles[self.alone]["replicas"]

    def release_unready(self) -> List[Any]:
        """Give back groups that the round starts without, unless their replicas may join it later."""
        actions: List[Any] = []
        self._is_cautious = False
        if self.alone:
            return actions
        for number, group in list(self._groups.items()):
            if not any(self._is_ready(bundle) for bundle in group.bundles):
                self._release(number, actions)
        return actions

    def release_all(self) -> List[Any]:
        """Give back all groups, with the places in them."""
        actions: List[Any] = []
        for number in list(self._groups):
            self._release(number, actions)
        return actions

    def assign(self) -> List[Tuple[str, int, int]]:
        """Return role, replica and place of each replica. A place keeps the replica that it had, where there is no gap."""
        seats = []
        for name in self.roles:
            ready = [place for place in self.places.values() if place.role == name and place.is_ready]
            ready.sort(key=lambda place: (place.facts.host, place.number))
            taken: Dict[int, Place] = {}
            for place in ready:
                if place.seat and place.seat[1] < len(ready):
                    taken.setdefault(place.seat[1], place)
            kept = {place.number for place in taken.values()}
            others = iter([place for place in ready if place.number not in kept])
            for replica in range(len(ready)):
                place = taken.get(replica) or next(others)
                place.seat, place.is_used = (name, replica), True
                seats.append((name, replica, place.number))
        return seats

    # Internals.

    def _release_draining(self, groups: Sequence[int], actions: List[Any]) -> None:
        for place in list(self.places.values()):
            if place.facts.node in self.draining and place.number in self.places and place.group in groups:
                self._release(place.group, actions)

    def _release_unreachable(self, groups: Sequence[int], actions: List[Any], now: float) -> None:
        """Ask again for groups that have lost a place on a node that does not answer, as Ray takes long to see that."""
        self._avoided = {node: since for node, since in self._avoided.items() if now - since < AVOID_SECONDS}
        for number, group in self._some(groups):
            if group.avoid and not group.is_placed and now - group.asked >= AVOIDING_SECONDS:
                self._avoided.clear()  # there may be no other node that fits
                self._release(number, actions)
        for number, group in self._some(groups):
            if any(bundle.place is None and bundle.node in self._avoided for bundle in group.bundles):
                self._release(number, actions)

    def _release_lost(self, groups: Sequence[int], actions: List[Any], now: float) -> None:
        """Ask again for groups that have lost a place, once its node was looked at: Ray may keep what was there until it ends itself."""
        for number, group in self._some(groups):
            if any(bundle.place is None and bundle.node and now >= bundle.not_before for bundle in group.bundles):
                self._release(number, actions)

    def _release_stuck(self, groups: Sequence[int], actions: List[Any], now: float) -> None:
        """Ask again for groups in which no agent starts where another one was. Ray ends that one only with its group."""
        for number, group in self._some(groups):
            for bundle in group.bundles if group.is_placed else ():
                place = self.places.get(bundle.place) if bundle.place is not None else None
                if place and bundle.node and not place.is_ready and now - place.opened >= SUCCESSOR_SECONDS:
                    self._release(number, actions)
                    break

    def _release_held(self, actions: List[Any], now: float) -> None:
        """Give everything back where places in hand have waited for long: another gang may wait for them."""
        has_some = bool(self.places) or any(group.is_placed for group in self._groups.values())
        if not has_some or self._is_minimum_placed():
            self._held = None
            return
        if self._held is None:
            self._held = now
        if now - self._held >= HOLD_SECONDS:
            for number in list(self._groups):
                self._release(number, actions)
            self._held, self._is_cautious = None, True

    def _ask(self, actions: List[Any], now: float) -> None:
        if self._base is None:
            roles = tuple(name for name, role in self.roles.items() for _ in range(role["minReplicas"]))
            self._base = self._add(roles, actions, now)
        if self._is_cautious and not self._groups[self._base].is_placed:
            return
        for name, role in self.roles.items():
            has = sum(group.bundles[0].role == name for number, group in self._groups.items() if number != self._base)
            for _ in range(role["replicas"] - role["minReplicas"] - has):
                self._add((name,), actions, now)

    def _add(self, roles: Tuple[str, ...], actions: List[Any], now: float) -> int:
        self._made += 1
        avoid = tuple(sorted(self._avoided))
        self._groups[self._made] = _Group(roles, avoid, now)
        actions.append(Ask(self._made, roles, avoid))
        return self._made

    def _open(self, actions: List[Any], now: float, shunned: FrozenSet[str]) -> None:
        for number, group in self._groups.items():
            for position, bundle in enumerate(group.bundles if group.is_placed else ()):
                if bundle.place is None and now >= bundle.not_before and bundle.node not in shunned:
                    self._made += 1
                    bundle.place = self._made
                    self.places[self._made] = place = Place(self._made, number, position, bundle.role)
                    place.opened = now
                    actions.append(Open(self._made, number, position, bundle.role))

    def _release(self, number: int, actions: List[Any]) -> None:
        for place in self.forget(number):
            del self.places[place]
            actions.append(Close(place))
        actions.append(Release(number))

    def _some(self, numbers: Sequence[int]) -> List[Tuple[int, _Group]]:
        return [(number, self._groups[number]) for number in numbers if number in self._groups]

    def _bundle(self, place: Place) -> Optional[_Bundle]:
        group = self._groups.get(place.group)
        return group.bundles[place.bundle] if group else None

    def _bundles(self) -> Iterator[_Bundle]:
        return (bundle for group in self._groups.values() for bundle in group.bundles)

    def _is_ready(self, bundle: _Bundle) -> bool:
        return bundle.place is not None and self.places[bundle.place].is_ready

    def _ready(self) -> Dict[str, int]:
        ready = dict.fromkeys(self.roles, 0)
        for place in self.places.values():
            ready[place.role] += place.is_ready
        return ready

    def _placements(self, role: str) -> List[bool]:
        """Return for each bundle of a role whether it still has to be placed."""
        return [
            not group.is_placed and not self._is_ready(bundle)
            for group in self._groups.values()
            for bundle in group.bundles
            if bundle.role == role
        ]

    def _is_minimum_placed(self) -> bool:
        return all(
            sum(not wait for wait in self._placements(name)) >= role["minReplicas"] for name, role in self.roles.items()
        )


def _quantity(name: str, value: float) -> str:
    """Return an amount of a resource as people write it."""
    if name in ("memory", "object_store_memory"):
        for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20)):
            if value >= size and value % size == 0:
                return f"{value / size:.0f}{unit}"
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"
