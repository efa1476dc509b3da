"""Tests of how the driver starts Spark's processes, with a cluster that answers at once."""

import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import clusters  # noqa: E402  the paths above are where these are
from heliostat_gang import driver, rounds  # noqa: E402
from heliostat_gang.console import Console  # noqa: E402
from histories import description, role  # noqa: E402


class Cluster(clusters.Scripted):
    """Places the group of the minimum, and others when a test wants it. Spark's Master takes connections from the start on."""

    def __init__(self, gang, post):
        super().__init__(gang, post)
        self.waiting = []
        self.answers.update(connect=lambda *_: True, decommission=lambda *_: None)

    def ask(self, group, resources, *_):
        if len(resources) == 1:
            self.waiting.append(group)
        else:
            self.post(self.on_group, group, "placed")

    def place_all(self):
        """Place what waits."""
        for group in self.waiting:
            self.post(self.on_group, group, "placed")
        self.waiting = []


class Spark(unittest.TestCase):
    """A gang of a driver and of up to three executors, whose minimum is one."""

    def setUp(self):
        with open(os.devnull, "w", encoding="ascii") as nothing:
            self.console = Console(False, os.dup(nothing.fileno()), os.dup(nothing.fileno()))
        self.addCleanup(self.console.close)

    def start(self, restarts=1, **answers):
        """Start the gang."""
        roles = role("driver", 1), role("executor", 3, 1, success="Ignore")
        gang = description(*roles, framework="Spark", maxRestarts=restarts, minReplicasAfterSeconds=0)
        self.driver = driver.Driver(gang, Cluster, self.console)
        self.cluster = self.driver.cluster
        self.cluster.answers.update(answers)
        self.turn()

    def turn(self):
        """Let the driver do all that is posted."""
        for _ in range(10):
            self.driver.step()
            for _ in range(self.driver.posted.qsize()):
                do, arguments = self.driver.posted.get()
                do(*arguments)

    def started(self):
        """Return the names of the processes that were started since the last time, with their places and programs."""
        calls, self.cluster.calls = self.cluster.calls, []
        return [(place, program) for place, name, arguments in calls if name == "start" for program in arguments[1]]

    def names(self):
        return [program["name"] for _, program in self.started()]

    def place(self, name, replica=0):
        return next(seat.place for seat in self.driver.seats if (seat.role, seat.replica) == (name, replica))

    def ends(self, process, code, *where):
        """Have a process end."""
        self.cluster.reply(self.place(*where), events=[clusters.event(process, code)], running=0)
        self.turn()

    def test_the_master_starts_first_and_all_others_when_it_takes_connections(self):
        takes = []
        self.start(connect=lambda *_: bool(takes))
        self.assertEqual(self.names(), ["master/0"])
        takes.append(True)
        self.turn()
        self.assertEqual(self.names(), ["driver/0", "executor/0"])

    def test_a_master_that_takes_no_connections_ends_the_attempt(self):
        self.addCleanup(setattr, driver, "MASTER_SECONDS", driver.MASTER_SECONDS)
        driver.MASTER_SECONDS = 0
        self.start(connect=lambda *_: False)
        self.ends("master/0", 143, "driver")
        self.turn()
        self.assertEqual((self.driver.rounds.phase, self.driver.rounds.blockers()), (rounds.ENDING, []))
        self.assertIn("takes no connections at port", self.driver.rounds.report()["last"].message)

    def test_a_master_that_ends_leaves_nothing_to_wait_for(self):
        self.start(restarts=0, connect=lambda *_: False)
        self.ends("master/0", 1, "driver")
        self.assertEqual((self.driver.rounds.blockers(), self.names()), ([], ["master/0"]))

    def test_all_processes_of_a_round_have_one_secret_and_each_round_another(self):
        self.start()
        first = {program["spark"]["secret"] for _, program in self.started()}
        self.ends("driver/0", 1, "driver")
        self.ends("master/0", 143, "driver")
        self.ends("executor/0", 143, "executor")
        second = {program["spark"]["secret"] for _, program in self.started()}
        self.assertEqual((len(first), len(second), len(first | second)), (1, 1, 2))
        self.assertEqual({len(secret) for secret in first | second}, {64})

    def test_executors_join_when_places_appear(self):
        self.start()
        self.started()
        self.cluster.place_all()
        self.turn()
        found = self.started()
        self.assertEqual([program["name"] for _, program in found], ["executor/1", "executor/2"])
        ports = [program["argv"][program["argv"].index("--port") + 1] for _, program in found]
        self.assertEqual(len(set(ports)), 2)
        masters = {program["argv"][-1] for _, program in found}
        self.assertEqual(masters, {f"spark://10.0.0.{self.place('driver')}:{self.driver.ports['master']}"})

    def test_one_that_ends_starts_again_with_other_ports(self):
        self.start()
        before = self.driver.ports["executor/0"]
        self.started()
        self.ends("executor/0", 1, "executor")
        self.assertEqual(self.names(), ["executor/0"])
        self.assertNotEqual(self.driver.ports["executor/0"], before)
        self.assertEqual(self.driver.rounds.phase, rounds.RUNNING)

    def test_one_that_cannot_start_again_ends_the_round_the_third_time(self):
        self.start()
        missing = {"kind": "NotFound", "message": "Java is not in the image"}
        self.cluster.answers["start"] = lambda place, number, programs: [missing for _ in programs]
        self.ends("executor/0", 1, "executor")
        self.assertEqual(self.driver.rounds.phase, rounds.ENDING)
        last = self.driver.rounds.report()["last"]
        self.assertEqual((last.process, last.message), ("executor/0", "Java is not in the image, 3 times in a row within 60 s of its start"))

    def test_an_image_without_spark_ends_the_attempt(self):
        missing = {"kind": "NotFound", "message": "Spark is not in the image"}
        self.start(start=lambda place, number, programs: [missing for _ in programs])
        last = self.driver.rounds.report()["last"]
        self.assertEqual((last.kind, last.process, last.pod), ("NotFound", "master/0", f"pod-{self.place('driver')}"))

    def test_an_executor_on_a_draining_node_is_decommissioned(self):
        self.start()
        place = self.place("executor")
        self.driver.take_drain([f"node-{place}"])
        self.turn()
        self.assertEqual([call for call in self.cluster.calls if call[1] == "decommission"], [(place, "decommission", (1, "executor/0"))])
        self.ends("executor/0", 0, "executor")
        self.assertIn(place, self.cluster.closed)

    def test_one_that_has_not_started_is_decommissioned_when_it_has(self):
        takes = []
        self.start(connect=lambda *_: bool(takes))
        place = self.place("executor")
        self.driver.take_drain([f"node-{place}"])
        self.turn()
        self.assertNotIn("decommission", [method for _, method, _ in self.cluster.calls])
        takes.append(True)
        self.turn()
        there = [method for one, method, _ in self.cluster.calls if one == place and method in ("start", "decommission")]
        self.assertEqual(there, ["start", "decommission"])

    def test_the_report_has_the_page_while_the_program_runs(self):
        self.start()
        page = json.loads(self.driver.encode())["page"]
        self.assertEqual(page, {"pod": f"pod-{self.place('driver')}", "port": self.driver.ports["driver/0:page"]})
        self.ends("driver/0", 0, "driver")
        self.assertIsNone(json.loads(self.driver.encode())["page"])


# Stands for Spark: a Master that takes connections, and Workers that wait.
SPARK_CLASS = """#!/bin/sh
case $1 in
*Master) exec python3 -c 'import socket, sys, time; s = socket.create_server((sys.argv[1], int(sys.argv[2]))); time.sleep(600)' "$3" "$5" ;;
*) echo "worker of $(ls "$SPARK_CONF_DIR" | tr "\\n" " ")" && touch "$SPARK_HOME/worker$$" && exec sleep 600 ;;
esac
"""


class Programs(unittest.TestCase):
    """Gangs of Spark whose programs run on this machine, with a program that stands for Spark."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("spark/bin/spark-class", SPARK_CLASS)
        self.write("java/bin/java", "#!/bin/sh\n")
        self.write("spark/conf/log4j2.properties", "")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        path.chmod(0o755)

    def run_gang(self, code="", java="java", command=None, **more):
        """Run a gang, and return how it ended, and why."""
        environ = {"SPARK_HOME": str(self.folder / "spark"), "JAVA_HOME": str(self.folder / java)}
        place = {"resources": {"CPU": 1, "memory": 2 << 30}}
        roles = role("driver", 1, command=command or ["sh", "-c", code], **place), role("executor", 2, success="Ignore", **place)
        gang = description(*roles, framework="Spark", uid=f"test-{os.getpid()}-{self.id()}", maxRestarts=0, **more)
        out = tempfile.TemporaryFile()
        self.addCleanup(out.close)
        console = Console(False, os.dup(out.fileno()), os.dup(out.fileno()))
        self.addCleanup(console.close)
        with mock.patch.dict(os.environ, environ):
            made = driver.Driver(gang, clusters.Local, console)
            self.addCleanup(made.cluster.shut_down)
            result = made.run()
        self.logs = {path.name: path.read_text(encoding="utf-8") for path in pathlib.Path(made.cluster.logs).iterdir()}
        out.seek(0)
        return result, made.rounds.last, out.read().decode()

    def test_the_program_finds_settings_that_go_with_it(self):
        wait = 'until [ "$(ls "$SPARK_HOME" | grep -c worker)" = 2 ]; do sleep 0.1; done; '
        code = wait + 'stat -c "%a" "$SPARK_CONF_DIR/spark-defaults.conf"; grep -c secret "$SPARK_CONF_DIR/spark-defaults.conf"; echo "$SPARK_CONF_DIR"'
        result, _, output = self.run_gang(code)
        mode, secrets, conf = output.splitlines()[-3:]
        self.assertEqual((result, mode, secrets), ((0, 0), "600", "1"))
        for _ in range(100):
            if not os.path.exists(conf):
                break
            time.sleep(0.1)
        self.assertFalse(os.path.exists(conf))
        self.assertIn("worker of java-opts log4j2.properties spark-defaults.conf", self.logs["job-driver-s-executor-1-r1.log"])
        self.assertIn("job-driver-s-master-0-r1.log", self.logs)

    def test_settings_go_with_a_process_whose_guard_is_killed(self):
        kill = """*) if mkdir "$SPARK_HOME/once" 2>/dev/null; then
  dirname "$SPARK_CONF_DIR" >"$SPARK_HOME/killed.new" && mv "$SPARK_HOME/killed.new" "$SPARK_HOME/killed"
  kill -KILL "$(cut -d " " -f 4 "/proc/$PPID/stat")"
fi
"""
        self.write("spark/bin/spark-class", SPARK_CLASS.replace("*) ", kill, 1))
        code = 'for _ in $(seq 200); do [ ! -e "$SPARK_HOME/killed" ] || [ -e "$(cat "$SPARK_HOME/killed")" ] || exit 0; sleep 0.1; done; exit 1'
        result, _, output = self.run_gang(code)
        self.assertEqual(result, (0, 0))
        self.assertRegex(output, r"replaces executor/\d on .*: its guard was killed")

    def test_an_image_without_java_ends_the_attempt(self):
        result, last, _ = self.run_gang("true", java="nothing")
        self.assertEqual((result, last.kind, last.process), ((2, 0), "NotFound", "master/0"))
        self.assertIn("has no bin/java", last.message)

    def test_a_size_that_does_not_fit_ends_the_attempt_with_the_arithmetic(self):
        result, last, _ = self.run_gang(command=["spark-submit", "--executor-memory", "2g", "main.py"])
        self.assertEqual((result, last.kind, last.process), ((2, 0), "Exit", "driver/0"))
        self.assertIn("spark.executor.memory of 2048 MiB with an overhead of 384 MiB does not fit the 2048 MiB", last.message)

    def test_the_code_of_the_program_is_the_attempt_s(self):
        self.assertEqual(self.run_gang("exit 7")[0], (7, 0))


if __name__ == "__main__":
    unittest.main()
