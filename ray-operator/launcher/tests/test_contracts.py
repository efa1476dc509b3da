"""Tests of what processes of a gang find.

The golden file has the environments of each framework. This file with --update as its argument writes it.
"""

import json
import pathlib
import sys
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))

import variables  # noqa: E402  the path above is where it is
from heliostat_gang import contracts  # noqa: E402

GOLDEN = LAUNCHER / "tests" / "environments.golden"
SIZES = (1, 2, 7)
REFERENCES = [
    "$(server.addresses)",
    "$(server.0.host)",
    "$(scheduler.0.port)",
    "$(server.count)",
    "$(role)-$(index)",
    "$$(server.count)",
    "$(date +%s)",
]


def role(name, replicas, processes=1, start="PerProcess", success="All", **more):
    """Return a role of a description."""
    return {
        "name": name,
        "replicas": replicas,
        "minReplicas": replicas,
        "processes": processes,
        "start": start,
        "resources": {"CPU": 4},
        "labelSelector": {},
        "command": ["python", "train.py"],
        "entrypoint": "",
        "env": [],
        "success": success,
        **more,
    }


def describe(framework, *roles, **more):
    """Return a description, with what contracts reads of it."""
    return {"version": 1, "uid": "uid", "attempt": 2, "framework": framework, "env": [], "roles": list(roles), **more}


def places_of(description, host="10.0.0.{}"):
    """Return places for all replicas of a gang, each on a host of its own."""
    replicas = [(each["name"], replica) for each in description["roles"] for replica in range(each["replicas"])]
    return [contracts.Place(name, replica, host.format(at + 1)) for at, (name, replica) in enumerate(replicas)]


def ports_of(description, places):
    """Return a port for each key, from 20001."""
    return {key: 20001 + at for at, (key, _) in enumerate(contracts.needed_ports(description, places))}


def start(description, places=None, number=1):
    """Return what the processes of a round are started with, by their names."""
    places = places or places_of(description)
    found = contracts.starts(description, places, ports_of(description, places), number)
    return {one.process.name: one for one in found}


def cases(size):
    """Return the gangs of the golden file with so many replicas."""
    yield describe("PyTorch", role("worker", size))
    yield describe("PyTorch", role("worker", size), role("master", 1))
    yield describe("PyTorch", role("worker", size, 2))
    yield describe("PyTorch", role("worker", size, 2, "PerReplica"))
    yield describe("TensorFlow", role("worker", size, success="First"))
    yield describe("TensorFlow", role("worker", size, success="First"), role("evaluator", 1))
    yield describe("TensorFlow", role("ps", size, success="Ignore"), role("worker", size), role("chief", 1))
    yield describe("JAX", role("worker", size))
    yield describe("JAX", role("worker", size, 2))
    yield describe("XGBoost", role("worker", size))
    yield describe("XGBoost", role("worker", size, success="Ignore"), role("master", 1))
    yield describe("MPI", role("worker", size, 2))
    yield describe("MPI", role("worker", size, 2), role("launcher", 1))
    sized = {"resources": {"CPU": 2, "memory": 4 << 30}}
    submit = ["spark-submit", "--conf", "spark.executor.memory=2g", "main.py"]
    yield describe("Spark", role("executor", size, success="Ignore", **sized), role("driver", 1, command=submit, **sized))
    yield describe("Generic", role("scheduler", 1), role("server", size), role("worker", size, command=REFERENCES))
    yield describe("Generic", role("worker", size, 2, "PerReplica", entrypoint="run $(worker.count)", command=[]))


def render():
    """Return the golden file: for each gang its processes, with variables that all have once."""
    return "\n".join(line for size in SIZES for gang in cases(size) for line in render_gang(gang))


def render_gang(description):
    """Return the lines of one gang."""
    places = places_of(description)
    found = list(start(description, places).values())
    shared = dict(set.intersection(*(set({**one.defaults, **one.env}.items()) for one in found)))
    title = " ".join(f"{each['name']}={each['replicas']}x{each['processes']}" for each in description["roles"])
    yield f"# {description['framework']} {title} {description['roles'][0]['start']}"
    yield "ports " + " ".join(f"{key}@{places[at].host}" for key, at in contracts.needed_ports(description, places))
    yield "all " + " ".join(f"{name}={value}" for name, value in sorted(shared.items()))
    for one in found:
        process = one.process
        marks = [mark for mark, has in (("counted", process.is_counted), ("daemon", process.is_daemon)) if has]
        own = sorted({**one.defaults, **one.env}.items() - shared.items())
        variables_of = (f"{name}={value}" for name, value in own)
        planned = {name: value for name, value in one.spark.items() if value}
        variables_of = (*variables_of, *([json.dumps(planned)] if planned else []))
        yield " ".join([process.name, "at", places[process.place].host, *marks, json.dumps(one.argv), *variables_of])
    yield ""


class Golden(unittest.TestCase):
    """Environments of each framework."""

    maxDiff = None

    def test_environments_are_those_of_the_file(self):
        self.assertEqual(GOLDEN.read_text(encoding="utf-8"), render(), "update it, and read the difference")

    def test_tables_are_up_to_date(self):
        for name, text in variables.render().items():
            self.assertEqual((LAUNCHER.parents[1] / name).read_text(encoding="utf-8"), text, f"{name}: make generate")

    def test_meanings_are_of_variables_that_there_are(self):
        names = {name for found in variables.variables() for each in found.values() for name in each}
        self.assertEqual(names, set(variables.MEANINGS))


class Order(unittest.TestCase):
    """Ranks, and what counts."""

    def test_master_is_first_then_roles_replicas_and_processes(self):
        gang = describe("PyTorch", role("b", 2, 2), role("a", 1), role("master", 1))
        places = list(reversed(places_of(gang)))
        found = contracts.processes(gang, places)
        self.assertEqual([one.name for one in found], ["master/0", "b/0", "b/1", "b/2", "b/3", "a/0"])
        self.assertEqual([one.rank for one in found], [0, 1, 2, 3, 4, 5])
        self.assertEqual([one.local_rank for one in found], [0, 0, 1, 0, 1, 0])
        self.assertEqual([one.node_rank for one in found], [0, 1, 1, 2, 2, 3])
        self.assertEqual([places[one.place].replica for one in found], [0, 0, 0, 1, 1, 0])

    def test_a_chief_is_no_first_role_of_other_frameworks(self):
        gang = describe("Generic", role("worker", 1), role("master", 1))
        self.assertEqual(contracts.processes(gang, places_of(gang))[0].name, "worker/0")

    def test_missing_replicas_make_a_smaller_gang(self):
        gang = describe("PyTorch", role("worker", 4, 2))
        found = list(start(gang, places_of(gang)[:2]).values())
        self.assertEqual((len(found), found[3].env["WORLD_SIZE"], found[3].env["PET_NNODES"]), (4, "4", "2"))

    def test_success_is_when_each_policy_is_met(self):
        roles = role("worker", 2), role("chief", 2, success="First"), role("ps", 1, success="Ignore")
        gang = describe("Generic", *roles)
        members = contracts.processes(gang, places_of(gang))
        for exited, met in (
            ({}, {"ps"}),
            ({"worker/0": 0, "worker/1": 0}, {"ps", "worker"}),
            ({"worker/0": 0, "worker/1": 1, "chief/1": 0}, {"ps"}),
            ({"worker/0": 0, "worker/1": 0, "chief/0": 0, "ps/0": 1}, {"ps", "worker", "chief"}),
        ):
            with self.subTest(exited=exited):
                self.assertEqual(contracts.judge_success(members, exited), met)

    def test_success_waits_for_all_where_every_role_is_ignored(self):
        gang = describe("Generic", role("a", 1, success="Ignore"), role("b", 1, success="Ignore"))
        members = contracts.processes(gang, places_of(gang))
        self.assertEqual(contracts.judge_success(members, {"a/0": 0}), {"a"})

    def test_success_of_mpi_is_that_of_the_command(self):
        gang = describe("MPI", role("worker", 2), role("launcher", 1))
        members = contracts.processes(gang, places_of(gang))
        self.assertEqual(contracts.judge_success(members, {}), {"worker"})
        self.assertEqual(contracts.judge_success(members, {"launcher/0": 0}), {"worker", "launcher"})


class Variables(unittest.TestCase):
    """What the golden file does not show."""

    def test_tf_config_is_what_tensorflow_reads(self):
        gang = describe("TensorFlow", role("chief", 1), role("worker", 2), role("ps", 1), role("evaluator", 1))
        found = {name: json.loads(one.env["TF_CONFIG"]) for name, one in start(gang).items()}
        for name, config in found.items():
            kind, index = config["task"]["type"], config["task"]["index"]
            self.assertEqual(f"{kind}/{index}", name)
            self.assertEqual(config["environment"], "cloud")
            own = start(gang)[name].process.place
            self.assertTrue(config["cluster"][kind][index].startswith(f"10.0.0.{own + 1}:"))
        others = {name for name, config in found.items() if "evaluator" not in config["cluster"]}
        self.assertEqual(others, {"chief/0", "worker/0", "worker/1", "ps/0"})
        self.assertEqual(len({json.dumps(found[name]["cluster"]) for name in others}), 1)

    def test_task_ids_sort_as_numbers(self):
        for size in (10, 11, 101):
            ids = [one.env["DMLC_TASK_ID"] for one in start(describe("XGBoost", role("worker", size))).values()]
            self.assertEqual(ids, sorted(ids))

    def test_ipv6_has_brackets_where_a_port_follows(self):
        def env(framework, name="worker/1", **more):
            gang = describe(framework, role("worker", 2, **more))
            return start(gang, places_of(gang, "fd00::{}"))[name]

        self.assertEqual(env("PyTorch").env["MASTER_ADDR"], "fd00::1")
        self.assertEqual(env("JAX").env["JAX_COORDINATOR_ADDRESS"], "[fd00::1]:20001")
        config = json.loads(env("TensorFlow").env["TF_CONFIG"])
        self.assertEqual(config["cluster"]["worker"], ["[fd00::1]:20002", "[fd00::2]:20003"])
        argv = env("Generic", command=["$(worker.addresses)", "$(worker.1.host)"]).argv
        self.assertEqual(argv, ["[fd00::1]:20001,[fd00::2]:20002", "fd00::2"])

    def test_torchelastic_counts_restarts(self):
        found = start(describe("PyTorch", role("worker", 1)), number=3)["worker/0"]
        self.assertEqual(found.env["TORCHELASTIC_RESTART_COUNT"], "2")
        self.assertEqual(found.env["HELIOSTAT_ROUND"], "200003")
        self.assertEqual(found.env["HELIOSTAT_GANG"], "uid/2/0/3")

    def test_threads_are_the_share_of_cpus(self):
        for cpu, processes, threads in ((4, 1, "4"), (4, 3, "1"), (0.5, 1, "1"), (7.5, 2, "3")):
            gang = describe("PyTorch", role("worker", 1, processes, resources={"CPU": cpu}))
            self.assertEqual(start(gang)["worker/0"].defaults["OMP_NUM_THREADS"], threads)
        gang = describe("PyTorch", role("worker", 1, resources={"GPU": 1}))
        self.assertEqual(start(gang)["worker/0"].defaults["OMP_NUM_THREADS"], "1")

    def test_interfaces_are_set_where_the_name_is_loopback(self):
        gang = describe("PyTorch", role("worker", 2))
        places = places_of(gang)
        places[1] = places[1]._replace(is_loopback=True, interface="eth1")
        found = start(gang, places)
        self.assertNotIn("GLOO_SOCKET_IFNAME", found["worker/0"].defaults)
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HYDRA_IFACE"):
            self.assertEqual(found["worker/1"].defaults[name], "eth1")

    def test_mpi_has_a_slot_for_each_rank_and_the_devices_of_all_places_of_a_host(self):
        gang = describe("MPI", role("launcher", 1), role("worker", 3, 2))
        hosts = ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2")
        gpus = ((), ("1",), ("2",), ("3",))
        places = [one._replace(host=host, gpus=has) for one, host, has in zip(places_of(gang), hosts, gpus)]
        self.assertEqual(contracts.mpi_slots(gang, places), {"10.0.0.2": 4, "10.0.0.1": 2})
        found = start(gang, places)
        self.assertEqual(found["launcher/0"].env["CUDA_VISIBLE_DEVICES"], "2")
        self.assertEqual(found["worker/0"].env["CUDA_VISIBLE_DEVICES"], "1,3")
        self.assertEqual(found["launcher/0"].env["MASTER_ADDR"], "10.0.0.2")

    def test_mpirun_does_not_hide_devices_of_ranks(self):
        gang = describe("MPI", role("launcher", 1), role("worker", 2))
        places = [one._replace(gpus=("0",) if one.role == "worker" else ()) for one in places_of(gang)]
        command = start(gang, places)["launcher/0"]
        self.assertEqual(command.env["CUDA_VISIBLE_DEVICES"], "0")
        self.assertNotIn("HYDRA_ENV", command.defaults)
        places[2] = places[2]._replace(gpus=("1",))
        self.assertEqual(start(gang, places)["launcher/0"].defaults["HYDRA_ENV"], "none")

    def test_variables_of_the_user_win_over_defaults_alone(self):
        job = [{"name": "OMP_NUM_THREADS", "value": "9"}, {"name": "A", "value": "job"}, {"name": "RANK", "value": "x"}]
        gang = describe("PyTorch", role("worker", 1, env=[{"name": "A", "value": "role"}]), env=job)
        one = start(gang)["worker/0"]
        found = contracts.environment({"PATH": "/bin", "A": "image", "PYTHONUNBUFFERED": "0"}, one)
        self.assertEqual(found["OMP_NUM_THREADS"], "9")
        self.assertEqual(found["A"], "role")
        self.assertEqual(found["RANK"], "0")
        self.assertEqual(found["PYTHONUNBUFFERED"], "0")
        self.assertEqual(found["PATH"], "/bin")


class References(unittest.TestCase):
    """Names in commands and variables."""

    def expand(self, text):
        gang = describe("Generic", role("server", 2), role("my-worker", 2, command=[text]))
        return start(gang)["my-worker/1"].argv[0]

    def test_known_names_are_replaced(self):
        for text, expanded in (
            ("--n=$(server.count)", "--n=2"),
            ("$(server.1.host):$(server.1.port)", "10.0.0.2:20002"),
            ("$(my-worker.1.host)", "10.0.0.4"),
            ("$(role)/$(index)", "my-worker/1"),
            ("$(server.addresses)", "10.0.0.1:20002,10.0.0.2:20003"),
        ):
            with self.subTest(text):
                self.assertEqual(self.expand(text), expanded)

    def test_other_texts_stay(self):
        for text in ("$(date)", "$(cat a.b | wc)", "$(HOME)", "$()", "$(a.b.c.d)", "${a.count}", "$(server.count", "$$HOME"):
            with self.subTest(text):
                self.assertEqual(self.expand(text), text)

    def test_two_dollars_stand_for_one(self):
        for text, expanded in (
            ("$$(server.count)", "$(server.count)"),
            ("$$(nothing.here)", "$(nothing.here)"),
            ("$$(server.count)$(server.count)", "$(server.count)2"),
        ):
            with self.subTest(text):
                self.assertEqual(self.expand(text), expanded)

    def test_unknown_names_are_refused_with_what_helps(self):
        for text, words in (
            ("$(ps.count)", r"\$\(ps\.count\) names no role of the gang \(server, my-worker\); correct it"),
            ("$(server.hosts)", "must be one of server.INDEX.host, .*; correct it"),
            ("$(server.0.hots)", "must be one of"),
            ("$(server.x.host)", "must be one of"),
            ("$(server.2.host)", "names a process that is not there, as server has 2; use a lower index"),
        ):
            with self.subTest(text), self.assertRaisesRegex(contracts.ContractError, words):
                self.expand(text)

    def test_an_entrypoint_is_the_shell_s(self):
        gang = describe("Generic", role("worker", 1, command=[], entrypoint="echo $(worker.nothing)"))
        self.assertEqual(start(gang)["worker/0"].argv, ["sh", "-c", "echo $(worker.nothing)"])

    def test_values_of_variables_are_replaced(self):
        gang = describe("Generic", role("worker", 2), env=[{"name": "PEERS", "value": "$(worker.count) $(index)"}])
        self.assertEqual(start(gang)["worker/1"].env["PEERS"], "2 1")

    def test_ports_are_needed_where_they_are_named(self):
        gang = describe("Generic", role("server", 2), role("worker", 1, command=["$(server.1.port)"]))
        self.assertEqual(contracts.needed_ports(gang, places_of(gang)), [("master", 0), ("server/1", 1)])

    def test_names_of_mpi_are_those_of_ranks(self):
        gang = describe("MPI", role("worker", 2, 2, command=["$(worker.count)", "$(worker.3.host)"]))
        self.assertEqual(start(gang)["worker/0"].argv, ["4", "10.0.0.2"])


class Inherited(unittest.TestCase):
    """What is left of an actor's environment."""

    def test_variables_of_ray_and_of_the_launcher_are_left_out(self):
        environ = {
            "PATH": "/bin",
            "RAY_JOB_ID": "1",
            "RAYON_NUM_THREADS": "3",
            "PYTHONPATH": "/mine:/launcher:/yours",
            "SPT_NOENV": "1",
            "OMP_NUM_THREADS": "4",
            "PYTHONBREAKPOINT": "ray.util.rpdb.set_trace",
            "CUDA_VISIBLE_DEVICES": "0,1",
        }
        self.assertEqual(
            contracts.inherited(environ, {"PATH": "/bin"}, "/launcher"),
            {"PATH": "/bin", "RAYON_NUM_THREADS": "3", "PYTHONPATH": "/mine:/yours", "CUDA_VISIBLE_DEVICES": "0,1"},
        )

    def test_what_the_image_sets_stays(self):
        environ = {"OMP_NUM_THREADS": "8", "PYTHONBREAKPOINT": "0"}
        self.assertEqual(contracts.inherited({**environ, "PYTHONPATH": "/launcher"}, environ, "/launcher"), environ)


class Large(unittest.TestCase):
    """The largest gang that is accepted."""

    def test_addresses_of_many_are_made_once(self):
        gang = describe("Generic", role("worker", 1024, 4, command=["$(worker.addresses)"]))
        found = start(gang)
        self.assertIs(found["worker/0"].argv[0], found["worker/4095"].argv[0])
        found = start(describe("XGBoost", role("worker", 1024, 4)))
        self.assertIs(found["worker/0"].env["WORKER_ADDRS"], found["worker/4095"].env["WORKER_ADDRS"])


if __name__ == "__main__":
    if "--update" in sys.argv:
        GOLDEN.write_text(render(), encoding="utf-8")
    else:
        unittest.main()
