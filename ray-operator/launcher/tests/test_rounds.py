"""Tests of what a gang does next.

HELIOSTAT_HISTORIES is how many random histories are played; `make accept` plays 100,000.
"""

import os
import pathlib
import signal
import sys
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import histories  # noqa: E402  the paths above are where these are
from heliostat_gang import groups, rounds  # noqa: E402
from histories import description, role  # noqa: E402

HISTORIES = int(os.environ.get("HELIOSTAT_HISTORIES", "500"))
LOST = int(signal.SIGUSR2)


class Gang:
    """A gang on nodes of which each holds a place, and the actions that it wanted."""

    def __init__(self, gang):
        """Take a description."""
        self.now = 0.0
        self.rounds = rounds.Rounds(gang, 0.0)
        self.groups, self.places, self.silent = {}, {}, set()
        self.nodes, self.launched, self.end, self.seats = 0, [], None, ()
        self.asked, self.released, self.probed, self.stopped, self.killed, self.closed = [], [], [], [], [], []
        self.joined, self.decommissioned = [], []
        self.prepares, self.agents_start, self.joins = True, True, True
        self.step()

    def step(self, seconds=0.0):
        """Let time pass, with beats of all places each second, and carry out what follows."""
        until = self.now + seconds
        while True:
            for number in self.places:
                if number not in self.silent:
                    self.rounds.beat(number, 0, self.now)
            for _ in range(4):
                for action in self.rounds.step(self.now):
                    getattr(self, type(action).__name__.lower())(*action)
            if self.now >= until:
                return self
            self.now = min(until, self.now + 1.0)

    def ask(self, number, roles, avoid):
        self.asked.append((roles, avoid))
        self.groups[number] = roles

    def release(self, number):
        self.released.append(self.groups.pop(number))

    def open(self, number, group, bundle, role):
        self.places[number] = role
        self.nodes += 1
        if self.agents_start:
            self.rounds.ready(number, groups.Facts(f"n{self.nodes}", f"pod-{self.nodes}", f"10.0.0.{self.nodes}"), self.now)

    def close(self, number):
        self.closed.append(number)
        del self.places[number]

    def probe(self, node):
        self.probed.append(node)

    def prepare(self, serial, number, seats):
        self.seats = seats
        if self.prepares:
            self.rounds.prepared(serial)

    def launch(self, number):
        self.launched.append((number, self.now, len(self.seats)))
        self.rounds.has_started(self.now)

    def join(self, number, seat):
        self.seats = (*(one for one in self.seats if one.place != seat.place), seat)
        if self.joins and self.rounds.joined(seat.place, f"{seat.role}/{seat.replica}", self.now):
            self.joined.append((f"{seat.role}/{seat.replica}", seat.place))

    def decommission(self, number, place, process):
        self.decommissioned.append((place, process))

    def stop(self, number, places):
        self.stopped.append(number)
        for place in places:
            if place not in self.silent:
                self.rounds.answered(place, self.now)

    def kill(self, number, places):
        self.killed.append(self.now)

    def finish(self, code, signal_number):
        self.end = (code, signal_number)

    def place_all(self, state="placed"):
        """Have Ray place all groups."""
        for number in list(self.groups):
            self.rounds.placed(number, state, self.now)
        return self.step()

    def place_of(self, name):
        """Return the place of a process of a role with one process a replica."""
        if name == "master/0":  # Spark's
            name = "driver/0"
        role_name, index = name.partition("-")[0].split("/")  # a daemon of MPI may be worker/0-2
        return next(seat.place for seat in self.seats if (seat.role, seat.replica) == (role_name, int(index)))

    def exits(self, code, *names, lines=(), step=True):
        """End processes."""
        for name in names:
            self.rounds.ended(self.place_of(name), name, code, self.now, lines)
        return self.step() if step else self

    def others_end(self):
        """End what still runs."""
        return self.exits(143, *self.rounds.blockers())

    def loses(self, name, message="the node died", **more):
        """Lose a place."""
        self.rounds.lost(self.place_of(name), message, self.now, **more)
        return self.step()


def start(*roles, **more):
    """Return a gang whose first round runs."""
    return Gang(description(*(roles or (role("worker", 2),)), **more)).place_all()


class Start(unittest.TestCase):
    def test_gathers_all_or_none(self):
        gang = Gang(description(role("worker", 3), role("ps", 1)))
        self.assertEqual(gang.asked, [(("worker", "worker", "worker", "ps"), ())])
        gang.step(1000)
        self.assertEqual((gang.launched, gang.rounds.report()["state"]), ([], "Gathering"))
        gang.place_all()
        self.assertEqual([round_number for round_number, _, _ in gang.launched], [1])
        report = gang.rounds.report()
        self.assertEqual((report["state"], report["replicas"], report["ready"], report["started"]), ("Running", 4, 4, 1000.0))

    def test_prepares_for_as_long_as_what_is_left_may_take_to_end(self):
        gang = Gang(description(role("worker", 1), graceSeconds=600))
        prepared = []
        gang.prepare = lambda *arguments: prepared.append(arguments)
        gang.place_all()
        gang.step(rounds.PREPARE_SECONDS + 599)
        self.assertEqual(len(prepared), 1)
        gang.step(2)
        self.assertEqual(len(prepared), 2)

    def test_ends_where_no_round_can_be_prepared(self):
        gang = Gang(description(role("worker", 1)))
        gang.prepares = False
        gang.place_all()
        for _ in range(groups.AGENT_FAILURES):
            self.assertIsNone(gang.end)
            gang.rounds.lost(gang.seats[0].place, "no space is left", gang.now)
            gang.step()
        self.assertEqual(gang.end, (0, LOST))
        self.assertIn("8 times in a row; the last time on pod-8: no space is left", gang.rounds.report()["last"].message)

    def test_a_place_that_is_lost_before_the_first_start_does_not_end_the_first_wait(self):
        gang = Gang(description(role("worker", 2), firstGatherSeconds=0, gatherSeconds=600))
        gang.step(700)
        gang.prepares = False
        gang.place_all()
        gang.agents_start = False
        gang.rounds.lost(gang.seats[0].place, "the node died", gang.now)
        gang.step(30)
        self.assertEqual((gang.end, gang.rounds.report()["state"]), (None, "Gathering"))

    def test_ends_when_the_first_wait_is_over(self):
        gang = Gang(description(role("worker", 3, resources={"CPU": 4, "memory": 2 << 30}), firstGatherSeconds=30)).step(29)
        self.assertIsNone(gang.end)
        gang.step(1)
        self.assertEqual(gang.end, (0, LOST))
        last = gang.rounds.report()["last"]
        self.assertEqual((last.kind, last.message), ("Gather", "3 of 3 × {CPU: 4, memory: 2Gi} missing after 30 s"))

    def test_the_message_counts_what_would_fit(self):
        gang = Gang(description(role("worker", 4, resources={"CPU": 4, "GPU": 1})))
        gang.rounds.hand.fitting = {"worker": 1}
        self.assertEqual(gang.rounds.hand.missing_text(), "3 of 4 × {CPU: 4, GPU: 1} missing")
        gang.rounds.hand.fitting = {"worker": 4}
        self.assertEqual(gang.rounds.hand.missing_text(), "1 of 4 × {CPU: 4, GPU: 1} missing")
        gang = Gang(description(role("a", 2), role("b", 1, resources={"GPU": 0.5})))
        gang.rounds.hand.fitting = {"a": 1}
        self.assertEqual(gang.rounds.hand.missing_text(), "a: 1 of 2 × {CPU: 1} missing; b: 1 of 1 × {GPU: 0.5} missing")

    def test_a_place_that_is_not_reached_ends_the_attempt(self):
        gang = Gang(description(role("worker", 2)))
        gang.prepares = False
        gang.place_all()
        gang.rounds.fail(gang.place_of("worker/1"), "Unreachable", "does not reach 10.0.0.1", gang.now)
        gang.step(4)
        self.assertEqual((gang.launched, gang.end, gang.rounds.report()["last"].pod), ([], (2, 0), "pod-2"))

    def test_a_place_that_is_not_reached_and_then_lost_is_replaced(self):
        gang = Gang(description(role("worker", 2), lossesLeft=0))
        gang.prepares = False
        gang.place_all()
        gang.rounds.fail(gang.place_of("worker/1"), "Unreachable", "does not reach 10.0.0.1", gang.now)
        gang.prepares = True
        gang.step(1).loses("worker/1").step(2)
        self.assertEqual((len(gang.launched), gang.end), (1, None))

    def test_a_program_that_is_not_there_ends_the_attempt(self):
        gang = start(maxRestarts=5)
        gang.rounds.fail(gang.place_of("worker/1"), "NotFound", "no such file: train", gang.now, "worker/1")
        gang.step(4).others_end()
        self.assertEqual((gang.end, gang.rounds.report()["last"].kind), ((2, 0), "NotFound"))

    def test_an_agent_that_never_starts_ends_the_attempt(self):
        gang = Gang(description(role("worker", 1)))
        gang.open = lambda number, *_: gang.rounds.lost(number, "no module named x", gang.now)
        gang.close = lambda number: None
        gang.place_all().step(60)
        self.assertEqual(gang.end, (0, LOST))
        self.assertIn("no module named x", gang.rounds.report()["last"].message)


class Success(unittest.TestCase):
    def test_all_processes_of_each_role_have_to_succeed(self):
        gang = start(maxRestarts=5).exits(0, "worker/0")
        self.assertEqual(gang.stopped, [])
        gang.exits(0, "worker/1")
        self.assertEqual(gang.end, (0, 0))

    def test_the_first_one_decides_and_others_are_stopped(self):
        gang = start(role("worker", 2, success="First"), role("ps", 1, success="Ignore")).exits(0, "worker/0")
        self.assertEqual((gang.stopped, gang.end), ([1], None))
        gang.others_end()
        self.assertEqual(gang.end, (0, 0))

    def test_what_is_stopped_is_killed_after_the_grace_and_given_up_after_that(self):
        gang = start(role("worker", 2, success="First"), graceSeconds=10).exits(0, "worker/0").step(30)
        self.assertEqual((gang.killed, gang.end), ([10.0], None))
        gang.step(1 + 20 + 10 + 2)
        self.assertEqual(gang.end, (0, 0))

    def test_a_place_whose_processes_have_succeeded_may_go(self):
        gang = start(lossesLeft=0).exits(0, "worker/1").loses("worker/1").exits(0, "worker/0")
        self.assertEqual(gang.end, (0, 0))


class Failure(unittest.TestCase):
    def test_restarts_in_the_same_places_at_once(self):
        gang = start(maxRestarts=1)
        places = [seat.place for seat in gang.seats]
        gang.exits(3, "worker/1").others_end()
        self.assertEqual(gang.launched, [(1, 0.0, 2), (2, 0.0, 2)])
        self.assertEqual([seat.place for seat in gang.seats], places)

    def test_ends_with_the_code_of_the_first_one_when_no_restart_is_left(self):
        gang = start(maxRestarts=1).exits(3, "worker/1").others_end()
        gang.exits(139, "worker/1", lines=["a", "b"]).exits(1, "worker/0").step(4)
        self.assertEqual((gang.end, gang.rounds.report()["restarts"]), ((139, 0), 1))
        last = gang.rounds.report()["last"]
        self.assertEqual((last.kind, last.process, last.pod, last.message, last.lines),
                         ("Exit", "worker/1", "pod-2", "ended by SIGSEGV", ("a", "b")))

    def test_exit_codes_decide_whether_it_restarts(self):
        for codes, expected in (
            ({"in": [], "notIn": []}, None), ({"in": [3], "notIn": []}, None), ({"in": [4], "notIn": []}, (3, 0)),
            ({"in": [], "notIn": [3]}, (3, 0)), ({"in": [], "notIn": [4]}, None),
        ):
            with self.subTest(codes):
                gang = start(maxRestarts=1, retryOnExitCodes=codes).exits(3, "worker/1").others_end().step(4)
                self.assertEqual(gang.end, expected)

    def test_rounds_that_end_early_pause(self):
        gang = start(role("worker", 1), maxRestarts=100)
        pauses = []
        for _ in range(9):
            ended = gang.exits(1, "worker/0").now
            while gang.rounds.phase != rounds.RUNNING:
                gang.step(1)
            pauses.append(gang.now - ended)
        self.assertEqual(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60])
        gang.step(10).exits(1, "worker/0")
        self.assertEqual(gang.rounds.phase, rounds.RUNNING)

    def test_a_port_that_is_taken_counts_from_the_second_time(self):
        gang = start(role("worker", 1), maxRestarts=1)
        for expected in ((0, None), (1, None), (1, (1, 0))):
            gang.exits(1, "worker/0", lines=["OSError: [Errno 98] Address already in use"]).step(5)
            self.assertEqual((gang.rounds.report()["restarts"], gang.end), expected)

    def test_running_out_of_memory_is_the_failure_of_the_program(self):
        gang = start(maxRestarts=0, graceSeconds=10).exits(1, "worker/0").loses("worker/1", "used 9.5 of 10 GB", is_memory=True).step(40)
        last = gang.rounds.report()["last"]
        self.assertEqual((gang.end, last.kind, last.process, last.message), ((137, 0), "OutOfMemory", "worker/1", "used 9.5 of 10 GB"))

    def test_descendants_are_waited_for(self):
        gang = start(role("worker", 1), maxRestarts=1)
        place = gang.place_of("worker/0")
        gang.silent.add(place)
        gang.rounds.beat(place, 1, gang.now)
        gang.exits(1, "worker/0")
        gang.rounds.answered(place, gang.now)
        gang.step(5)
        self.assertEqual(len(gang.launched), 1)
        gang.rounds.beat(place, 0, gang.now)
        self.assertEqual(len(gang.step().launched), 2)


class Loss(unittest.TestCase):
    def test_restarts_after_the_lease(self):
        gang = start(lossesLeft=1, graceSeconds=10).step(100)
        gang.loses("worker/1").others_end().step(31)
        self.assertEqual((len(gang.launched), gang.rounds.report()["ready"]), (1, 2))
        gang.step(1)
        self.assertEqual(gang.launched[1:], [(2, 132.0, 2)])
        report = gang.rounds.report()
        self.assertEqual((report["restarts"], report["losses"], report["last"].kind, report["lost"]), (0, 1, "Lost", ["pod-2"]))

    def test_ends_by_the_signal_when_no_loss_is_left(self):
        gang = start(lossesLeft=0, maxRestarts=5).step(100).loses("worker/1").others_end().step(60)
        self.assertEqual((gang.end, gang.rounds.report()["losses"]), ((0, LOST), 0))

    def test_has_not_ended_while_processes_of_the_place_may_run(self):
        gang = start(lossesLeft=0, graceSeconds=10).step(100).loses("worker/1").others_end().step(31)
        self.assertEqual((gang.end, gang.rounds.report()["state"]), (None, "Running"))
        gang.step(1)
        self.assertEqual((gang.end, gang.rounds.report()["state"]), ((0, LOST), "Ended"))

    def test_is_the_cause_of_a_failure_before_it(self):
        gang = start(lossesLeft=1, maxRestarts=1).step(100)
        gang.silent.add(gang.place_of("worker/1"))
        gang.step(10).exits(1, "worker/0").step(12)
        report = gang.rounds.report()
        self.assertEqual((report["restarts"], report["losses"], report["last"].process), (0, 1, "worker/1"))

    def test_twice_early_in_the_same_place_fails_the_attempt(self):
        gang = start(lossesLeft=5).step(30).loses("worker/1").others_end().step(60)
        self.assertEqual((gang.end, len(gang.launched)), (None, 2))
        gang.loses("worker/1").others_end().step(60)
        self.assertEqual(gang.end, (137, 0))
        self.assertIn("second time in a row", gang.rounds.report()["last"].message)

    def test_a_node_that_does_not_answer_is_avoided(self):
        gang = start(lossesLeft=5).step(100)
        gang.silent.add(gang.place_of("worker/1"))
        gang.step(20).others_end()
        self.assertEqual(gang.probed, ["n2"])
        gang.rounds.unreachable("n2", gang.now)
        gang.step()
        self.assertEqual((gang.released, gang.asked[1:]), ([("worker", "worker")], [(("worker", "worker"), ("n2",))]))
        gang.step(groups.AVOIDING_SECONDS)
        self.assertEqual(gang.asked[2:], [(("worker", "worker"), ())])

    def test_a_node_that_answers_keeps_its_place(self):
        gang = start(lossesLeft=5).step(100)
        gang.silent.add(gang.place_of("worker/1"))
        gang.step(20).others_end().step(60)
        self.assertEqual((gang.released, len(gang.launched)), ([], 2))

    def test_a_bundle_that_a_stopped_agent_keeps_is_asked_for_again(self):
        gang = start(lossesLeft=5).step(100)
        gang.agents_start = False
        gang.loses("worker/1").others_end().step(groups.SUCCESSOR_SECONDS - 1)
        self.assertEqual(gang.released, [])
        gang.step(1)
        self.assertEqual((gang.released, len(gang.asked)), ([("worker", "worker")], 2))

    def test_places_in_hand_are_given_back_after_a_minute(self):
        gang = start(lossesLeft=5, gatherSeconds=200).step(100)
        number = next(iter(gang.groups))
        gang.rounds.placed(number, "waiting", gang.now)
        gang.loses("worker/1").others_end().step(59)
        self.assertEqual((gang.released, len(gang.places)), ([], 1))
        gang.step(1)
        self.assertEqual((gang.released, len(gang.places), len(gang.asked)), ([("worker", "worker")], 0, 2))
        gang.step(150)
        self.assertEqual((gang.end, gang.rounds.report()["last"].kind), ((0, LOST), "Gather"))


class Drain(unittest.TestCase):
    def test_counts_only_after_twenty(self):
        gang = start(lossesLeft=1)
        for _ in range(22):
            gang.step(100)
            gang.rounds.draining([f"n{gang.nodes}"])
            gang.step().others_end().place_all()
            if gang.end:
                break
        report = gang.rounds.report()
        self.assertEqual((gang.rounds.drains, report["losses"], report["restarts"], gang.end), (20, 1, 0, (0, LOST)))
        self.assertEqual(report["last"].kind, "Drained")

    def test_gathers_elsewhere(self):
        gang = start().step(100)
        gang.rounds.draining(["n1"])
        gang.step()
        self.assertEqual((gang.stopped, gang.released), ([1], []))
        gang.others_end()
        self.assertEqual((gang.released, len(gang.places), len(gang.asked)), ([("worker", "worker")], 0, 2))
        gang.place_all()
        self.assertEqual(len(gang.launched), 2)


class Minimum(unittest.TestCase):
    def gang(self, **more):
        """Return a gang of two to four, whose minimum is placed."""
        gang = Gang(description(role("worker", 4, 2), **more))
        gang.rounds.placed(1, "placed", 0.0)
        return gang.step()

    def test_one_group_of_the_minimum_and_one_a_further_replica(self):
        self.assertEqual(self.gang().asked, [(("worker", "worker"), ()), (("worker",), ()), (("worker",), ())])

    def test_starts_with_less_after_a_time(self):
        gang = self.gang(minReplicasAfterSeconds=300).step(200)
        gang.rounds.placed(2, "placed", gang.now)
        gang.step(99)
        self.assertEqual(gang.launched, [])
        gang.step(1)
        self.assertEqual((gang.launched, gang.released), ([(1, 300.0, 3)], [("worker",)]))

    def test_a_restart_after_a_failure_takes_only_what_fits_now(self):
        gang = self.gang(minReplicasAfterSeconds=300, maxRestarts=9).step(300)
        gang.rounds.is_coming = True
        gang.step(100).exits(1, "worker/0").others_end()
        self.assertEqual(len(gang.asked), 3 + 2)
        gang.rounds.placed(max(gang.groups), "placed", gang.now)
        gang.step(3)
        self.assertEqual([size for _, _, size in gang.launched], [2, 3])
        self.assertLessEqual(gang.launched[1][1] - 400, rounds.PLACING_SECONDS)

    def test_a_restart_after_a_loss_waits_while_nodes_come(self):
        gang = Gang(description(role("worker", 4, 2), minReplicasAfterSeconds=300, lossesLeft=9, graceSeconds=0)).place_all().step(100)
        gang.rounds.is_coming = True
        group = max(gang.groups)
        gang.rounds.placed(group, "waiting", gang.now)
        gang.loses("worker/3").others_end().step(200)
        self.assertEqual(len(gang.launched), 1)
        gang.rounds.is_coming = False
        gang.step(1)
        self.assertEqual([size for _, _, size in gang.launched], [4, 3])

    def test_time_with_the_minimum_is_no_wait_for_it(self):
        gang = self.gang(minReplicasAfterSeconds=3000, firstGatherSeconds=100).step(2000)
        gang.rounds.placed(1, "waiting", gang.now)
        gang.agents_start = False
        gang.rounds.lost(1 + len(gang.asked), "the node died", gang.now)
        self.assertEqual((gang.step(99).end, gang.launched), (None, []))
        self.assertEqual(gang.step(1).end, (0, LOST))
        self.assertIn("missing after 100 s", gang.rounds.report()["last"].message)

    def test_a_minimum_that_comes_and_goes_does_not_lengthen_the_wait_for_more(self):
        gang = self.gang(minReplicasAfterSeconds=300, firstGatherSeconds=100).step(200)
        gang.rounds.placed(1, "waiting", gang.now)
        gang.rounds.lost(1 + len(gang.asked), "the node died", gang.now)
        gang.step(50).rounds.placed(1, "placed", gang.now)
        self.assertEqual(gang.step(99).launched, [])
        self.assertEqual(gang.step(1).launched, [(1, 350.0, 2)])

    def test_the_place_of_rank_0_may_go(self):
        gang = Gang(description(role("worker", 4, 2), minReplicasAfterSeconds=0, lossesLeft=9, graceSeconds=0)).place_all().step(100)
        gang.rounds.placed(1, "waiting", gang.now)
        gang.loses("worker/0").others_end().step(30)
        self.assertEqual([size for _, _, size in gang.launched], [4, 3])
        self.assertEqual([seat.replica for seat in gang.seats], [0, 1, 2])

    def test_more_than_the_minimum_is_not_held_against_it(self):
        gang = Gang(description(role("worker", 4, 2)))
        gang.rounds.placed(2, "placed", 0.0)
        gang.step(60)
        self.assertEqual(gang.asked[3:], [(("worker", "worker"), ())])
        gang.rounds.placed(max(gang.groups), "placed", gang.now)
        gang.step()
        self.assertEqual(gang.asked[4:], [(("worker",), ()), (("worker",), ())])


class MPI(unittest.TestCase):
    def start(self, **more):
        """Return a gang whose command has started two daemons, one of them in its own place."""
        gang = start(role("worker", 2), framework="MPI", **more)
        for name, place in (("worker/1", "worker/1"), ("worker/0-2", "worker/0")):
            gang.rounds.began(gang.place_of(place), name)
        return gang

    def test_success_waits_for_daemons(self):
        gang = self.start().exits(0, "worker/0").exits(0, "worker/1")
        self.assertEqual((gang.stopped, gang.end), ([], None))
        gang.rounds.ended(gang.place_of("worker/0"), "worker/0-2", 7, gang.now)
        self.assertEqual((gang.step().stopped, gang.end), ([1], (0, 0)))

    def test_a_command_that_hides_a_lost_daemon_has_failed(self):
        gang = self.start(maxRestarts=0).exits(255, "worker/1", lines=["Killed"]).exits(0, "worker/0")
        gang.rounds.ended(gang.place_of("worker/0"), "worker/0-2", 0, gang.now)
        gang.step(5)
        last = gang.rounds.report()["last"]
        self.assertEqual((gang.end, last.process, last.lines), ((255, 0), "worker/1", ("Killed",)))

    def test_a_command_that_hides_a_lost_place_has_lost_it(self):
        gang = self.start(lossesLeft=0).exits(0, "worker/0").loses("worker/1")
        gang.others_end().step(40)
        self.assertEqual((gang.end, gang.rounds.report()["last"].kind), ((0, LOST), "Lost"))

    def test_a_lost_daemon_is_the_cause_of_what_the_command_ends_with(self):
        gang = self.start(maxRestarts=0).exits(137, "worker/1").exits(205, "worker/0").others_end().step(5)
        self.assertEqual((gang.end, gang.rounds.report()["last"].process), ((137, 0), "worker/1"))

    def test_a_daemon_that_stays_is_not_waited_for_long(self):
        gang = self.start().exits(0, "worker/0").step(20)
        self.assertEqual(gang.stopped, [])
        gang.step(3).others_end()
        self.assertEqual((gang.stopped, gang.end), ([1], (0, 0)))


class End(unittest.TestCase):
    def test_a_stop_lets_processes_finish_within_the_grace(self):
        gang = start(graceSeconds=60).step(10)
        gang.rounds.stop()
        gang.step(50)
        self.assertEqual((gang.stopped, gang.killed, gang.end), ([1], [], None))
        gang.others_end()
        self.assertEqual(gang.end, (143, 0))

    def test_a_stop_ends_a_wait(self):
        gang = Gang(description(role("worker", 2)))
        gang.rounds.stop()
        self.assertEqual(gang.step().end, (143, 0))


class Alone(unittest.TestCase):
    """A role whose processes start, end and join alone: that of Spark's executors."""

    def start(self, executors=2, minimum=None, placed=True, **more):
        """Return a gang of a driver and executors whose first round runs, with a minimum of one group."""
        roles = role("driver", 1), role("executor", executors, minimum, success="Ignore")
        gang = Gang(description(*roles, framework="Spark", **{"minReplicasAfterSeconds": 0, **more}))
        if placed:
            gang.place_all()
        else:
            gang.rounds.placed(1, "placed", gang.now)
            gang.step()
        return gang

    def seats(self, gang):
        """Return the executors of the round."""
        return sorted(seat.replica for seat in gang.rounds._seats if seat.role == "executor")

    def test_the_command_alone_decides_on_success(self):
        gang = self.start().exits(0, "driver/0")
        self.assertEqual((gang.stopped, gang.end), ([1], None))
        gang.others_end()
        self.assertEqual(gang.end, (0, 0))

    def test_the_master_ends_the_round_with_any_code(self):
        for code, expected in ((1, 1), (0, 1), (143, 143)):
            gang = self.start(maxRestarts=0)
            gang.rounds.ended(gang.place_of("driver/0"), "master/0", code, gang.now)
            gang.step().others_end().step(4)
            self.assertEqual((gang.end, gang.rounds.report()["last"].process), ((expected, 0), "master/0"))

    def test_one_that_ends_starts_again_alone_with_any_code(self):
        for code in (0, 1, 137):
            gang = self.start().exits(code, "executor/1")
            self.assertEqual((gang.joined, gang.stopped, len(gang.launched)), ([("executor/1", gang.place_of("executor/1"))], [], 1))
            self.assertEqual((gang.rounds.restarts, gang.rounds.losses, self.seats(gang)), (0, 0, [0, 1]))

    def test_it_starts_again_when_all_its_descendants_are_gone(self):
        gang = self.start()
        place = gang.place_of("executor/1")
        gang.rounds.beat(place, 1, gang.now)
        gang.rounds.ended(place, "executor/1", 1, gang.now)
        for _ in range(3):
            gang.rounds.step(gang.now)
        self.assertEqual(gang.joined, [])
        gang.step(1)
        self.assertEqual(len(gang.joined), 1)

    def test_three_early_ends_in_a_row_end_the_round(self):
        gang = self.start(maxRestarts=0)
        gang.exits(7, "executor/1").step(50).exits(7, "executor/1").step(61).exits(7, "executor/1")  # the last one is late
        gang.step(1).exits(7, "executor/1", lines=["why"]).step(1).exits(7, "executor/1")
        self.assertEqual(gang.stopped, [])
        gang.step(1).exits(7, "executor/1").others_end().step(4)
        last = gang.rounds.report()["last"]
        self.assertEqual((gang.end, last.process, last.message),
                         ((7, 0), "executor/1", "ended with exit code 7, 3 times in a row within 60 s of its start"))

    def test_early_ends_count_along_lost_places(self):
        gang = self.start(lossesLeft=0)
        for _ in range(3):
            self.assertEqual(gang.stopped, [])
            number = max(self.seats(gang))
            gang.loses(f"executor/{number}").step(1)
        gang.others_end().step(60)
        self.assertEqual((gang.end, gang.rounds.report()["last"].kind), ((0, LOST), "Lost"))

    def test_a_lost_place_is_replaced_and_counts_as_no_loss(self):
        gang = self.start(3, 1, lossesLeft=0)
        before = gang.place_of("executor/1")
        gang.step(100).loses("executor/1").place_all()
        self.assertEqual((gang.stopped, self.seats(gang)), ([], [0, 2, 3]))
        self.assertNotEqual(gang.joined[0][1], before)
        self.assertEqual((gang.rounds.losses, gang.rounds.report()["ready"]), (0, 4))

    def test_a_number_is_free_again_when_its_processes_must_have_ended(self):
        gang = self.start(3, 1).step(100).loses("executor/1").place_all()
        self.assertEqual(self.seats(gang), [0, 2, 3])
        gang.step(100).loses("executor/0")
        self.assertEqual(self.seats(gang), [1, 2, 3])

    def test_a_lost_place_of_the_minimum_waits_for_ray_and_never_releases_its_group(self):
        gang = self.start(2)
        gang.agents_start = False
        gang.loses("executor/1").step(200)
        self.assertEqual((gang.released, gang.stopped, self.seats(gang)), ([], [], [0]))
        waiting = max(gang.places)
        gang.rounds.ready(waiting, groups.Facts("n9", "pod-9", "10.0.0.9"), gang.now)
        gang.step()
        self.assertEqual([place for _, place in gang.joined], [waiting])

    def test_the_group_of_a_further_place_that_is_lost_is_released_and_another_one_asked_for(self):
        gang = self.start(3, 1)
        gang.step(100).loses("executor/2")
        self.assertEqual((gang.released, gang.asked[-1], len(gang.groups)), ([("executor",)], (("executor",), ()), 3))

    def test_it_is_released_only_after_its_node_was_looked_at(self):
        gang = self.start(3, 1).step(100)
        place = gang.place_of("executor/2")
        node = gang.rounds.hand.places[place].facts.node
        gang.silent.add(place)
        gang.step(21)
        self.assertEqual((gang.probed, gang.released), ([node], []))
        gang.rounds.unreachable(node, gang.now)
        gang.step(1)
        self.assertEqual((gang.released, gang.asked[-1]), ([("executor",)], (("executor",), (node,))))

    def test_it_starts_with_the_minimum_and_grows(self):
        gang = self.start(3, 1, placed=False)
        self.assertEqual((gang.launched, self.seats(gang)), ([(1, 0.0, 2)], [0]))
        self.assertEqual((len(gang.groups), gang.rounds.report()["replicas"], gang.rounds.report()["ready"]), (3, 4, 2))
        gang.step(500).place_all()
        self.assertEqual((self.seats(gang), len(gang.launched), gang.rounds.report()["ready"]), ([0, 1, 2], 1, 4))

    def test_no_other_framework_grows_or_restarts_one(self):
        gang = Gang(description(role("driver", 1), role("executor", 3, 1), minReplicasAfterSeconds=0))
        gang.rounds.placed(1, "placed", gang.now)
        gang.step(10)
        self.assertEqual((len(gang.launched), len(gang.groups), gang.rounds.hand.is_growing()), (1, 1, False))
        gang.exits(1, "executor/0")
        self.assertEqual((gang.joined, gang.stopped), ([], [1]))

    def test_one_on_a_draining_node_is_decommissioned_before_its_place_is_given_up(self):
        gang = self.start(2, 1)
        place = gang.place_of("executor/1")
        gang.rounds.draining([gang.rounds.hand.places[place].facts.node])
        gang.step(15)
        self.assertEqual((gang.decommissioned, gang.released, gang.closed), ([(place, "executor/1")], [], []))
        gang.exits(0, "executor/1").step(1)
        self.assertEqual((gang.released, gang.closed, gang.stopped, gang.rounds.drains), ([("executor",)], [place], [], 0))
        gang.place_all()
        self.assertEqual(self.seats(gang), [0, 1])

    def test_no_agent_starts_on_a_node_that_drains(self):
        gang = self.start(2)
        place = gang.place_of("executor/1")
        gang.rounds.draining([gang.rounds.hand.places[place].facts.node])
        gang.step().exits(0, "executor/1").step(5)
        self.assertEqual((gang.closed, gang.released, len(gang.places)), ([place], [], 2))
        gang.rounds.draining([])
        gang.step()
        self.assertEqual(len(gang.places), 3)

    def test_a_draining_driver_ends_the_round(self):
        gang = self.start()
        gang.rounds.draining([gang.rounds.hand.places[gang.place_of("driver/0")].facts.node])
        gang.step()
        self.assertEqual(gang.stopped, [1])
        gang.others_end().place_all()
        self.assertEqual((gang.rounds.drains, [number for number, _, _ in gang.launched]), (1, [1, 2]))

    def test_what_joins_while_the_round_ends_does_not_start(self):
        gang = self.start()
        gang.joins = False
        gang.exits(1, "executor/1").exits(0, "driver/0")
        self.assertFalse(gang.rounds.joined(gang.place_of("executor/1"), "executor/1", gang.now))
        gang.others_end()
        self.assertEqual(gang.end, (0, 0))

    def test_one_that_joins_a_draining_place_gives_it_up(self):
        gang = self.start(2, 1)
        gang.joins = False
        place = gang.place_of("executor/1")
        gang.exits(1, "executor/1")
        gang.rounds.draining([gang.rounds.hand.places[place].facts.node])
        gang.step()
        self.assertFalse(gang.rounds.joined(place, "executor/1", gang.now))
        gang.step()
        self.assertEqual(gang.closed, [place])

    def test_one_that_is_not_reached_and_then_lost_is_replaced_before_the_start(self):
        roles = role("driver", 1), role("executor", 2, success="Ignore")
        gang = Gang(description(*roles, framework="Spark", lossesLeft=0))
        gang.prepares = False
        gang.place_all()
        gang.rounds.fail(gang.place_of("executor/1"), "Unreachable", "does not reach 10.0.0.1", gang.now)
        gang.prepares = True
        gang.step(1).loses("executor/1").step(2)
        self.assertEqual((len(gang.launched), gang.end), (1, None))

    def test_a_loss_of_one_does_not_excuse_the_command(self):
        gang = self.start(lossesLeft=1, maxRestarts=0).exits(4, "driver/0").loses("executor/1").others_end().step(60)
        self.assertEqual(gang.end, (4, 0))


class Histories(unittest.TestCase):
    def test_random_ones_keep_the_rules(self):
        for seed in range(HISTORIES):
            try:
                histories.play(seed)
            except histories.Violation as violation:
                self.fail(f"history {seed}: {violation}")


if __name__ == "__main__":
    unittest.main()
