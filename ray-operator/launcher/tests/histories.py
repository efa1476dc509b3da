"""Random histories of a gang: a world with nodes, groups and processes that gives rounds what a cluster would.

What is checked: never processes of two rounds at once, never a round below a role's minimum, no call to a place that was given
up, no more restarts than allowed, and an end for every gang. Processes join a round only where the framework has a role for that,
never two of one name at once, nor more than its replicas, nor after three early ends in a row in one place.
"""

import heapq
import random

from heliostat_gang import contracts, groups, rounds

QUIET = 250.0  # after this time nothing fails, and nodes are there
HORIZON = 6000.0
UP, DRAINING, CUT, DEAD = "up", "draining", "cut", "dead"


class Violation(AssertionError):
    """What a history must never have."""


def role(name, replicas, minimum=None, **more):
    """Return a role of a description."""
    return {
        "name": name, "replicas": replicas, "minReplicas": replicas if minimum is None else minimum, "processes": 1,
        "start": "PerProcess", "resources": {"CPU": 1}, "labelSelector": {}, "command": ["x"], "entrypoint": "", "env": [],
        "success": "All", **more,
    }


def description(*roles, **more):
    """Return a description."""
    return {
        "version": 1, "job": "train", "uid": "u", "attempt": 1, "submission": "s", "framework": "Generic", "placement": "Pack",
        "output": "First", "graceSeconds": 10, "firstGatherSeconds": 0, "gatherSeconds": 600, "minReplicasAfterSeconds": 300,
        "maxRestarts": 3, "lossesLeft": 3, "retryOnExitCodes": {"in": [], "notIn": []}, "env": [], "roles": list(roles), **more,
    }


def draw(chance):
    """Return a random description."""
    replicas = chance.randint(1, 4)
    minimum = chance.randint(1, replicas) if chance.random() < 0.5 else replicas
    is_spark = chance.random() < 0.3
    roles = [role("worker", replicas, minimum, processes=chance.choice([1, 1, 2]))]
    if is_spark:
        roles = [role("driver", 1), role("executor", replicas, minimum, success="Ignore")]
    elif chance.random() < 0.3:
        roles.append(role("ps", chance.randint(1, 2), success=chance.choice(["Ignore", "All", "First"])))
    codes = {"in": [], "notIn": []}
    if chance.random() < 0.3:
        codes[chance.choice(["in", "notIn"])] = [3]
    return description(
        *roles,
        framework="Spark" if is_spark else "Generic",
        graceSeconds=chance.choice([0, 1, 10, 40]),
        firstGatherSeconds=chance.choice([0, 0, 100]),
        gatherSeconds=chance.choice([0, 90, 200]),
        minReplicasAfterSeconds=chance.choice([0, 20, 60]),
        maxRestarts=chance.randint(0, 3),
        lossesLeft=chance.randint(0, 3),
        retryOnExitCodes=codes,
    )


class Place:
    """What is really there of a place."""

    def __init__(self, node):
        """Stand for an agent on a node."""
        self.node = node
        self.is_ready = self.is_closed = self.is_gone = False
        self.processes = {}  # name -> round of those that live, descendants included
        self.answered = 0.0


class World:
    """A cluster with one gang."""

    def __init__(self, seed):
        """Draw a gang, and what happens to it."""
        self.chance = random.Random(seed)
        self.now = 0.0
        self.queue = []
        self.count = 0
        self.gang = draw(self.chance)
        self.grace = self.gang["graceSeconds"]
        self.roles = {role["name"]: role for role in self.gang["roles"]}
        self.total = sum(role["replicas"] for role in self.gang["roles"])
        self.nodes = {}
        self.groups = {}  # number -> {roles, avoid, nodes, is_told}
        self.places = {}
        self.seats, self.counted = (), []
        self.end = None
        self.launches = self.joins = 0
        self.exited = {}
        self.rounds = rounds.Rounds(self.gang, 0.0)
        for _ in range(max(1, self.total + self.chance.randint(-2, 1))):
            self.add_node()
        self.at(self.chance.uniform(1, 5), self.tick)
        for _ in range(self.chance.randint(0, 6)):
            self.at(self.chance.uniform(0, QUIET), self.fault)
        if self.chance.random() < 0.1:
            self.at(self.chance.uniform(0, 2 * QUIET), self.rounds.stop)
        self.at(QUIET, self.recover)

    def at(self, delay, do, *arguments):
        """Do something later."""
        self.count += 1
        heapq.heappush(self.queue, (self.now + delay, self.count, do, arguments))

    def run(self):
        """Run until the gang ends, and return the world."""
        self.step()
        while self.end is None:
            self.now, _, do, arguments = heapq.heappop(self.queue)
            if self.now > HORIZON:
                raise Violation(f"no end in {HORIZON} s, in phase {self.rounds.phase}")
            do(*arguments)
            self.step()
        return self

    def step(self):
        """Do what rounds wants."""
        for action in self.rounds.step(self.now):
            getattr(self, type(action).__name__.lower())(*action)

    def tick(self):
        """Let time pass."""
        self.at(self.chance.uniform(1, 6), self.tick)

    # The cluster.

    def add_node(self):
        """Add a node that holds one place."""
        self.nodes[f"n{len(self.nodes)}"] = UP
        self.place()

    def recover(self):
        """Heal the cluster: from now on the whole gang fits."""
        for _ in range(self.total):
            self.add_node()

    def place(self):
        """Place groups that fit."""
        for number, group in self.groups.items():
            if all(group["nodes"]):
                continue
            busy = {node for other in self.groups.values() for node in other["nodes"]}
            free = [node for node, state in self.nodes.items() if state == UP and node not in busy and node not in group["avoid"]]
            if len(free) >= group["nodes"].count(None):
                group["nodes"] = [node or free.pop() for node in group["nodes"]]
                self.at(self.chance.uniform(0.2, 1.5), self.tell_placed, number)

    def tell_placed(self, number):
        """Let rounds know of a group."""
        if number in self.groups:
            state = "placed" if all(self.groups[number]["nodes"]) else "waiting"
            self.rounds.placed(number, state, self.now)

    def fault(self):
        """Let something go wrong."""
        up = [node for node, state in self.nodes.items() if state == UP]
        kind = self.chance.choice(["agent", "memory", "node", "cut", "stopped", "drain", "process", "coming"])
        if kind == "coming":
            self.rounds.is_coming = not self.rounds.is_coming
        elif kind == "process":
            running = [(number, name) for number, place in self.places.items() for name in place.processes if not place.is_closed]
            if running:
                self.exit(*self.chance.choice(running), self.chance.choice([1, 3, 137]))
        elif up:
            node = self.chance.choice(up)
            if kind in ("agent", "memory"):
                for number, place in self.places.items():
                    if place.node == node and place.is_ready and not place.is_gone:
                        self.lose(number, kind == "memory")
            else:
                self.nodes[node] = {"node": DEAD, "drain": DRAINING}.get(kind, CUT)
                self.hit(node, kind)

    def hit(self, node, kind):
        """Let a node go."""
        if kind == "node":
            self.die(node)
        elif kind == "drain":
            self.rounds.draining([node for node, state in self.nodes.items() if state == DRAINING])
            self.at(self.chance.uniform(30, 90), self.die, node)
        else:
            for place in self.places.values():
                if place.node == node and not place.is_gone:
                    place.is_gone = True
                    self.expire(place)
            self.at(65 if kind == "cut" else 20, self.die, node)
        if self.chance.random() < 0.7:
            self.at(self.chance.uniform(5, 90), self.add_node)

    def expire(self, place):
        """End the processes of a place when its lease ends."""
        delay = max(0.0, place.answered + rounds.LEASE_SECONDS - self.now)
        for name in list(place.processes):
            self.at(delay + self.chance.uniform(0, 1) * self.grace, place.processes.pop, name, None)

    def die(self, node):
        """End a node, as Ray sees it after a while."""
        self.nodes[node] = DEAD
        self.rounds.draining([node for node, state in self.nodes.items() if state == DRAINING])
        for number, place in self.places.items():
            if place.node == node:
                place.processes.clear()
                place.is_gone = True
                self.at(self.chance.uniform(0, 5), self.rounds_lost, number, "the node died")
        self.at(self.chance.uniform(0, 20), self.lose_bundles, node)

    def lose_bundles(self, node):
        """Have Ray place bundles of a dead node again."""
        for number, group in self.groups.items():
            if node in group["nodes"]:
                group["nodes"] = [None if had == node else had for had in group["nodes"]]
                self.rounds.placed(number, "waiting", self.now)
        self.place()

    def lose(self, number, is_memory=False):
        """Kill an agent: its guards end what they guard within the grace."""
        place = self.places[number]
        place.is_gone = True
        for name in list(place.processes):
            self.at(self.chance.uniform(0, 1) * self.grace, place.processes.pop, name, None)
        self.at(self.chance.uniform(0, 3), self.rounds_lost, number, "the agent died", is_memory)

    def rounds_lost(self, number, message, is_memory=False):
        """Let rounds know of a lost place."""
        self.rounds.lost(number, message, self.now, is_memory)

    # Places.

    def answer(self, number):
        """Let an agent come up."""
        place = self.places[number]
        if self.nodes[place.node] in (CUT, DEAD) or self.chance.random() < 0.02:
            self.at(self.chance.uniform(1, 20), self.rounds_lost, number, "the actor died")
        elif not place.is_closed:
            place.is_ready = True
            place.answered = self.now
            self.rounds.ready(number, groups.Facts(place.node, f"pod-{place.node}", place.node), self.now)
            self.at(5, self.beat, number)

    def beat(self, number):
        """Let an agent send a beat."""
        place = self.places[number]
        if not place.is_gone and not place.is_closed:
            place.answered = self.now
            self.rounds.beat(number, len(place.processes), self.now)
            self.at(5, self.beat, number)

    def exit(self, number, name, code):
        """End a process. Its descendants may be there for a while."""
        place = self.places[number]
        if name not in place.processes or name in self.exited or place.is_gone or place.is_closed:
            return
        lingers = self.chance.random() < 0.2
        if not lingers:
            del place.processes[name]
        else:
            self.at(self.chance.uniform(0, 2), self.leave, number, name)
        self.exited[name] = code
        if name.startswith("executor"):
            is_early = self.now - self.begun[number] < rounds.EARLY_SECONDS
            self.early[number] = self.early.get(number, 0) + 1 if is_early else 0
        self.rounds.beat(number, len(place.processes), self.now)
        place.answered = self.now
        self.rounds.ended(number, name, code, self.now, ["EADDRINUSE"] if code == 1 and self.chance.random() < 0.3 else ["last"])

    def leave(self, number, name):
        """End the descendants of a process."""
        place = self.places[number]
        place.processes.pop(name, None)
        if not place.is_gone and not place.is_closed:
            self.rounds.beat(number, len(place.processes), self.now)

    # Actions.

    def ask(self, number, roles, avoid):
        """Take a group."""
        self.groups[number] = {"roles": roles, "avoid": avoid, "nodes": [None] * len(roles)}
        asked = [name for group in self.groups.values() for name in group["roles"]]
        for name, one in self.roles.items():
            if asked.count(name) > one["replicas"]:
                raise Violation(f"{asked.count(name)} places of {name} are asked for")
        self.place()

    def release(self, number):
        """Take a group away."""
        del self.groups[number]
        self.place()

    def open(self, number, group, bundle, name):
        """Start an agent."""
        node = self.groups[group]["nodes"][bundle]
        if node is None:  # Ray has lost the bundle, and rounds has not heard of that
            node = next(iter(self.nodes))
            self.places[number] = Place(node)
            self.at(1, self.rounds_lost, number, "no bundle")
            return
        self.places[number] = Place(node)
        self.at(self.chance.uniform(0.5, 5), self.answer, number)

    def close(self, number):
        """End an agent."""
        place = self.places[number]
        place.is_closed = True
        if not place.is_gone and place.processes:
            place.is_gone = True
            for name in list(place.processes):
                self.at(self.chance.uniform(0, 1) * self.grace, place.processes.pop, name, None)

    def probe(self, node):
        """Look at a node."""
        if self.nodes[node] in (CUT, DEAD):
            self.at(self.chance.uniform(0, 3), lambda: self.rounds.unreachable(node, self.now))

    def check_places(self, numbers):
        """Refuse calls to places that were given up."""
        for number in numbers:
            if self.places[number].is_closed:
                raise Violation(f"place {number} is used and was given up")

    def prepare(self, serial, number, seats):
        """Prepare a round."""
        self.check_places([seat.place for seat in seats])
        for name, one in self.roles.items():
            replicas = sorted(seat.replica for seat in seats if seat.role == name)
            if replicas != list(range(len(replicas))) or not one["minReplicas"] <= len(replicas) <= one["replicas"]:
                raise Violation(f"round {number} has replicas {replicas} of {name}")
        self.seats = seats
        draw = self.chance.random()
        if draw < 0.01:
            self.at(1, lambda: self.rounds.fail(seats[0].place, "Unreachable", "no route", self.now))
        elif draw < 0.97:
            self.at(self.chance.uniform(0, 1), lambda: self.rounds.prepared(serial))

    def launch(self, number):
        """Start the processes of a round."""
        living = self.living()
        if living:
            raise Violation(f"round {number} starts beside {living}")
        self.check_places([seat.place for seat in self.seats])
        self.launches += 1
        self.exited, self.begun, self.early = {}, {}, {}
        members = contracts.processes(self.gang, [contracts.Place(seat.role, seat.replica, "") for seat in self.seats])
        self.counted = [member.name for member in members if member.is_counted]
        self.rounds.has_started(self.now)
        for member in members:
            number = self.seats[member.place].place
            self.begin(number, member.name)

    def begin(self, number, name):
        """Start a process, and choose its end."""
        place = self.places[number]
        place.processes[name] = self.launches
        self.begun[number] = self.now
        if place.is_gone:
            self.expire(place)
        code = 0 if self.now > QUIET or self.chance.random() < 0.9 else self.chance.choice([1, 2, 3, 139])
        if name.startswith("master") and self.chance.random() < 0.9:  # it ends with the others
            return
        longest = 30 if name.startswith("executor") and self.chance.random() < 0.5 else 100
        self.at(self.chance.uniform(0.1, longest), self.end_later, number, name, code, self.launches)

    def living(self):
        """Return the processes that live."""
        return [name for place in self.places.values() for name in place.processes]

    def join(self, number, seat):
        """Prepare a process that joins the round."""
        if seat.role != "executor" or self.gang["framework"] != "Spark" or number != self.rounds.round:
            raise Violation(f"{seat} joins round {number}")
        self.check_places([seat.place])
        draw = self.chance.random()
        if draw < 0.95:
            self.at(self.chance.uniform(0, 2), self.enter, number, seat)
        else:
            self.at(1, self.lose_if_there, seat.place)

    def lose_if_there(self, number):
        """Lose a place that is not lost yet."""
        if not self.places[number].is_gone and not self.places[number].is_closed:
            self.lose(number)

    def enter(self, number, seat):
        """Start a process that joins the round, where it may."""
        name = f"{seat.role}/{seat.replica}"
        if number != self.rounds.round or not self.rounds.joined(seat.place, name, self.now):
            return
        self.check_places([seat.place])
        living = [one for one in self.living() if one.startswith("executor")]
        if name in living:
            raise Violation(f"{name} joins beside itself")
        if self.early.get(seat.place, 0) >= rounds.EARLY_ENDS:
            raise Violation(f"{name} joins after {self.early[seat.place]} early ends")
        used = [place for place in self.rounds.hand.places.values() if place.role == "executor" and place.running]
        if len(used) > self.roles["executor"]["replicas"]:
            raise Violation(f"{len(used)} executors of {self.roles['executor']['replicas']}")
        self.exited.pop(name, None)
        self.joins += 1
        self.begin(seat.place, name)

    def decommission(self, number, place, process):
        """Have a process move what it has, and end."""
        self.check_places([place])
        self.at(self.chance.uniform(0, self.grace), self.end_later, place, process, 0, self.launches)

    def end_later(self, number, name, code, launch):
        """End a process of a round, if it lives."""
        if self.places[number].processes.get(name) == launch:
            self.exit(number, name, code)

    def stop(self, number, places):
        """End the processes of a round."""
        self.check_places(places)
        for number in places:
            place = self.places[number]
            if place.is_gone:
                continue
            self.at(self.chance.uniform(0, 0.2), self.prove, number, self.now)
            for name in list(place.processes):
                delay = min(self.grace, self.chance.uniform(0, 1.5 * self.grace))
                self.at(delay, self.end_later, number, name, self.chance.choice([0, 143, 1]), self.launches)

    def prove(self, number, asked):
        """Let a place answer a call."""
        if not self.places[number].is_gone:
            self.rounds.answered(number, asked)

    def kill(self, number, places):
        """Kill the processes of a round."""
        self.check_places(places)
        for number in places:
            for name in list(self.places[number].processes):
                self.end_later(number, name, 137, self.launches)

    def finish(self, code, signal):
        """End the driver."""
        self.end = (code, signal)
        living = self.living()
        if living:
            raise Violation(f"the driver ends before {living}")
        found = self.rounds
        if found.restarts > self.gang["maxRestarts"] or found.losses > self.gang["lossesLeft"] or found.drains > rounds.FREE_DRAINS:
            raise Violation(f"{found.restarts} restarts, {found.losses} losses, {found.drains} drains")
        if self.launches > 2 + found.restarts + found.losses + found.drains:
            raise Violation(f"{self.launches} rounds with {found.restarts} restarts, {found.losses} losses, {found.drains} drains")
        if (code, signal) == (0, 0) and any(self.exited.get(name) != 0 for name in self.counted):
            raise Violation("success without what has to succeed")


def play(seed):
    """Run one history."""
    world = World(seed)
    return world.run()
