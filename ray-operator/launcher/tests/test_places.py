"""Tests of what the driver asks of Ray, with modules in place of Ray's."""

import errno
import importlib
import pathlib
import sys
import types
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

from histories import description, role  # noqa: E402  the paths above are where these are


class RayError(Exception):
    """What Ray raises while its head is away, and for many other reasons."""


class PlacementGroup:
    """A group of Ray's."""

    def __init__(self, number, bundles=None):
        """Take the ID, and the bundles where they are known."""
        self.id, self.bundles = number, bundles


class Ray:
    """Has the placement groups of a cluster."""

    def __init__(self):
        """Have none."""
        self.groups = {}  # by name
        self.calls = []
        self.failures = []  # what the next creations raise once they are done

    def placement_group(self, bundles, strategy, name, bundle_label_selector):
        """Create a group, whose name must be free."""
        self.calls.append(name)
        if name in self.groups:
            raise ValueError(f"the name {name} is taken")
        self.groups[name] = PlacementGroup(len(self.groups) + 1)
        if self.failures:
            raise self.failures.pop(0)
        return self.groups[name]

    def get_placement_group(self, name):
        """Return a group."""
        if name not in self.groups:
            raise ValueError("no such group")
        return self.groups[name]

    def validate_placement_group(self, bundles, strategy, bundle_label_selector):
        """Refuse what Ray refuses."""
        if not all(any(bundle.values()) for bundle in bundles):
            raise ValueError("Bundles cannot be an empty dictionary\nor resources with only 0 values")

    def modules(self):
        """Return modules in place of those of Ray."""
        names = (
            "ray", "ray._private", "ray._private.state", "ray._private.worker", "ray.core", "ray.core.generated",
            "ray.core.generated.autoscaler_pb2", "ray.exceptions", "ray.experimental", "ray.experimental.internal_kv", "ray.util",
            "ray.util.placement_group", "ray.util.scheduling_strategies",
        )
        found = {name: mock.MagicMock() for name in names}
        found["ray.exceptions"] = types.SimpleNamespace(
            OutOfMemoryError=type("OutOfMemoryError", (RayError,), {}), RayActorError=type("RayActorError", (RayError,), {})
        )
        groups = found["ray.util.placement_group"]
        groups.PlacementGroup = PlacementGroup
        for name in ("placement_group", "get_placement_group", "validate_placement_group"):
            setattr(groups, name, getattr(self, name))
        return found


class Case(unittest.TestCase):
    """Has a cluster whose thread does not run, so that a test runs what it would."""

    def setUp(self):
        """Import the module under test with another Ray."""
        self.ray = Ray()
        with mock.patch.dict(sys.modules, self.ray.modules()):  # which forgets the import
            self.places = importlib.import_module("heliostat_gang.places")
        self.posted = []
        with mock.patch.object(self.places.threading, "Thread"):
            self.cluster = self.places.Cluster(description(role("worker", 2)), lambda *call: self.posted.append(call))
        self.cluster.on_refused = "refused"
        patch = mock.patch.object(self.places.time, "sleep")
        self.sleep = patch.start()
        self.addCleanup(patch.stop)

    def ask(self, *bundles):
        """Ask for group 1, and do what the thread does for that."""
        self.cluster.ask(1, bundles, [{} for _ in bundles], [])
        self.cluster._do(self.cluster._commands.get())
        return self.cluster._groups.get(1)


class Groups(Case):
    def test_one_is_asked_for_by_its_name(self):
        group = self.ask({"CPU": 1})
        self.assertEqual((group, self.ray.calls, self.posted), (self.ray.groups["s-1"], ["s-1"], []))

    def test_what_ray_refuses_ends_the_wait(self):
        self.assertIsNone(self.ask({"CPU": 0}))
        text = "Ray refuses a place: Bundles cannot be an empty dictionary or resources with only 0 values"
        self.assertEqual((self.posted, self.ray.calls), ([("refused", text)], []))

    def test_one_that_was_made_though_its_call_failed_is_used(self):
        for failure in (RayError("timed out"), ValueError("the answer was not found"), OSError("unreachable")):
            with self.subTest(repr(failure)):
                self.ray.groups, self.ray.calls, self.ray.failures = {}, [], [failure]
                group = self.ask({"CPU": 1})
                self.assertEqual((group.id, group.bundles), (self.ray.groups["s-1"].id, [{"CPU": 1.0}]))
                self.assertEqual((self.ray.calls, self.posted), (["s-1"], []))

    def test_one_that_comes_late_is_used(self):
        late = self.ray.placement_group

        def create(**given):
            if not self.ray.calls:
                self.ray.calls.append("lost")
                raise RayError("timed out")
            if "s-1" not in self.ray.groups:
                self.ray.groups["s-1"] = PlacementGroup(7)  # the first call arrives after all
            return late(**given)

        self.places.placement_group = create
        self.assertEqual((self.ask({"CPU": 1}).id, self.ray.calls, self.posted), (7, ["lost", "s-1"], []))

    def test_a_ray_that_lacks_what_is_called_ends_the_wait(self):
        self.ray.failures = [AttributeError("no such method")]
        self.ask({"CPU": 1})
        self.assertEqual(self.posted, [("refused", "this version of Ray cannot run a gang: AttributeError('no such method')")])


class Agents(Case):
    def open(self, **failures):
        """Start an agent in group 1, where methods of its class raise errors once."""
        made = self.cluster._agent
        for name, error in failures.items():
            target = made.options if name == "options" else made.options.return_value.remote
            target.side_effect = [error, mock.DEFAULT]
        self.cluster.open(2, 1, 0, {"CPU": 1, "x": 2}, "described")
        self.cluster._do(self.cluster._commands.get())
        return made.options.return_value.remote

    def test_one_is_started_in_its_bundle(self):
        self.ask({"CPU": 1})
        remote = self.open()
        remote.assert_called_once_with({"uid": "u", "attempt": 1, "child": 0}, 10, submission="s")
        self.assertIn(2, self.cluster._actors)

    def test_one_that_ray_refuses_ends_the_wait(self):
        for name in ("options", "remote"):
            with self.subTest(name):
                self.posted.clear()
                self.ask({"CPU": 1})
                self.open(**{name: ValueError("cannot fit into any bundles")})
                self.assertEqual(self.posted, [("refused", "Ray refuses a place: cannot fit into any bundles")])

    def test_one_that_fails_to_start_is_named_with_its_pod(self):
        self.ask({"CPU": 1})
        self.places.placement_group_table = lambda group: {"bundles_to_node_id": {0: "n1"}}
        self.places.ray.nodes = lambda: [
            {"NodeID": "n0", "NodeManagerHostname": "a"}, {"NodeID": "n1", "NodeManagerHostname": "demo-gpu-1"},
        ]
        for full in ("[Errno 28] No space left on device: '/tmp/x'", "[Errno 122] Disk quota exceeded"):
            with self.subTest(full):
                self.open()
                done = self.cluster._actors[2].describe.remote().future().add_done_callback.call_args[0][0]
                text = f"Failed to set up runtime environment.\nTraceback\nOSError: {full}\n"
                done(types.SimpleNamespace(exception=lambda text=text: RayError(text)))
                take, *arguments = self.posted.pop()
                take(*arguments)
                self.cluster._do(self.cluster._commands.get())
                then, place, found, failure = self.posted.pop()
                self.assertEqual((then, place, found, self.posted), ("described", 2, None, []))
                self.assertEqual(failure.message, f"its files cannot be unpacked: {full} (pod demo-gpu-1)")

    def test_one_is_started_again_where_the_head_was_away(self):
        self.ask({"CPU": 1})
        self.assertEqual(self.open(remote=RayError("away")).call_count, 2)
        self.assertEqual((self.sleep.call_count, self.posted), (1, []))


class Outcomes(Case):
    def outcome(self, error):
        """Return the failure of a call of an agent."""
        return self.places._outcome(types.SimpleNamespace(exception=lambda: error))[1]

    def test_a_full_disk_is_named(self):
        error = RayError("a traceback")
        error.cause = OSError(errno.ENOSPC, "No space left on device", "/tmp/x")
        found = self.outcome(error)
        self.assertEqual((found.message, found.is_disk_full), ("write /tmp/x: No space left on device", True))

    def test_a_text_with_a_full_disk_is_not_about_files_to_unpack(self):
        text = "the program wrote [Errno 28] No space left on device"
        self.assertEqual(self.outcome(RayError(text)).message, text)

    def test_others_have_the_text_of_what_the_agent_raised(self):
        error = RayError("a traceback")
        error.cause = OSError(errno.EPERM, "Operation\nnot permitted")
        found = self.outcome(error)
        self.assertEqual((found.message, found.is_disk_full), ("[Errno 1] Operation not permitted", False))


if __name__ == "__main__":
    unittest.main()
