"""Tests of commands, settings and sizes of Spark."""

import errno
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))

from heliostat_gang import host, spark, spark_files  # noqa: E402  the path above is where these are

GIB = 1 << 30
PLACE = {"CPU": 2, "memory": 4 * GIB}
FIXED = {"spark.master": "spark://10.0.0.1:20001", "spark.authenticate": "true"}


class Compose(unittest.TestCase):
    """The text of spark-defaults.conf."""

    def settings(self, image, fixed=None, weak=None):
        return spark.parse_properties(spark.compose(image, "s3cret", FIXED if fixed is None else fixed, weak or {}))

    def test_what_is_fixed_replaces_the_image_s(self):
        found = self.settings("spark.master local[*]\nspark.authenticate false\nspark.eventLog.enabled true\n")
        self.assertEqual(found, {**FIXED, "spark.authenticate.secret": "s3cret", "spark.eventLog.enabled": "true"})

    def test_no_setting_of_authentication_of_the_image_is_left(self):
        found = self.settings("spark.authenticate.secret theirs\nspark.authenticate.secret.file /etc/secret\n")
        self.assertEqual(found, {**FIXED, "spark.authenticate.secret": "s3cret"})

    def test_no_setting_of_the_image_moves_a_process(self):
        image = "spark.blockManager.port 7000\nspark.driver.bindAddress 127.0.0.1\nspark.port.maxRetries 3\n"
        self.assertEqual(self.settings(image), {**FIXED, "spark.authenticate.secret": "s3cret"})
        self.assertEqual(self.settings(image, {"spark.port.maxRetries": "0"})["spark.port.maxRetries"], "0")

    def test_what_is_weak_counts_where_the_image_has_nothing(self):
        weak = {"spark.executor.memory": "3200m", "spark.local.dir": "/tmp/x/local"}
        found = self.settings("spark.executor.memory=2g", weak=weak)
        self.assertEqual((found["spark.executor.memory"], found["spark.local.dir"]), ("2g", "/tmp/x/local"))

    def test_the_settings_of_all_processes_close_the_master(self):
        for name in ("driver/0", spark.MASTER, "executor/1"):
            ports = {key: 20000 for key in spark.port_keys(name)}
            found = spark.fixed(name, "10.0.0.1", "10.0.0.1:20001", ports, PLACE)
            self.assertEqual((found["spark.authenticate"], found["spark.master.rest.enabled"]), ("true", "false"), name)
            self.assertEqual((found["spark.ui.killEnabled"], found["spark.master.ui.decommission.allow.mode"]), ("false", "DENY"), name)

    def test_the_master_recovers_nothing(self):
        fixed = spark.fixed(spark.MASTER, "10.0.0.1", "10.0.0.1:20001", {}, PLACE)
        self.assertEqual(self.settings("spark.deploy.recoveryMode ZOOKEEPER\n", fixed)["spark.deploy.recoveryMode"], "NONE")

    def test_an_address_of_ipv6_stands_in_brackets(self):
        command = spark.worker_command("fd00::2", 20001, 20002, PLACE, "[fd00::1]:20003")
        self.assertEqual((command[3], command[-1]), ("[fd00::2]", "spark://[fd00::1]:20003"))
        self.assertEqual(spark.master_command("fd00::1", 20001, 20002)[3], "[fd00::1]")
        ports = {key: 20000 for key in spark.port_keys("driver/0")}
        self.assertEqual(spark.fixed("driver/0", "fd00::1", "[fd00::1]:20001", ports, PLACE)["spark.driver.host"], "[fd00::1]")


class Properties(unittest.TestCase):
    """Files of settings, as java.util.Properties reads them."""

    def test_reads_each_form_of_a_line(self):
        text = "# a comment\n! another\n\nspark.a 1\nspark.b=2\nspark.c : 3\n  spark.d   four five \nspark.e\n"
        self.assertEqual(spark.parse_properties(text), {"spark.a": "1", "spark.b": "2", "spark.c": "3", "spark.d": "four five"})


    def test_a_line_goes_on_after_a_backslash(self):
        text = "spark.a one,\\\n   two\nspark.b c:\\\\\nspark.d e\\"
        self.assertEqual(spark.parse_properties(text), {"spark.a": "one,two", "spark.b": "c:\\\\", "spark.d": "e"})


class Command(unittest.TestCase):
    """Settings in the options of spark-submit."""

    def test_reads_options_in_front_of_the_program(self):
        for words in (
            ["spark-submit", "--executor-memory", "2g", "--conf", "spark.executor.memoryOverhead=1g", "--verbose", "main.py"],
            ["/opt/spark/bin/spark-submit", "--executor-memory=2g", "-c", "spark.executor.memoryOverhead=1g", "main.py"],
        ):
            self.assertEqual(spark.settings_of(words, ""), {"spark.executor.memory": "2g", "spark.executor.memoryOverhead": "1g"})

    def test_the_program_s_own_options_are_not_spark_s(self):
        self.assertEqual(spark.settings_of(["spark-submit", "main.py", "--executor-memory", "9t"], ""), {})
        self.assertEqual(spark.settings_of(["python", "main.py", "--executor-memory", "9t"], ""), {})

    def test_reads_what_a_variable_gives_to_pyspark(self):
        found = spark.settings_of(["python", "main.py"], "", "--executor-memory 9g pyspark-shell")
        self.assertEqual(found, {"spark.executor.memory": "9g"})

    def test_reads_the_words_of_an_entrypoint(self):
        self.assertEqual(spark.settings_of([], "cd /app && spark-submit --driver-memory 3g main.py"), {"spark.driver.memory": "3g"})

    def test_takes_nothing_of_a_line_that_only_the_shell_can_read(self):
        self.assertEqual(spark.settings_of([], "spark-submit 'main.py"), {})


class Sizes(unittest.TestCase):
    """What fits a place."""

    def test_amounts_are_as_spark_reads_them(self):
        for text, expected in (("512", 512), ("3g", 3072), ("3072m", 3072), ("1GB", 1024), ("1048576k", 1024), ("1t", 1 << 20)):
            self.assertEqual(spark.parse_mib("x", text), expected, text)
        with self.assertRaisesRegex(spark.SizeError, "x 3 gigs is no amount"):
            spark.parse_mib("x", "3 gigs")

    def test_defaults_leave_room_for_worker_master_and_overhead(self):
        found = spark.weak("/tmp/x", {"CPU": 1, "memory": 2 * GIB}, PLACE)
        self.assertEqual((found["spark.driver.memory"], found["spark.executor.memory"]), ("1152m", "3456m"))
        found = spark.weak("/tmp/x", {"CPU": 1}, {"CPU": 1, "memory": 900 << 20})
        self.assertEqual((found.get("spark.driver.memory"), found["spark.executor.memory"]), (None, "512m"))

    def test_what_a_default_gives_fits_what_a_worker_offers(self):
        for mib in range(896, 70000, 997):
            heap = spark.parse_mib("", spark.weak("", {}, {"memory": mib << 20})["spark.executor.memory"])
            self.assertGreaterEqual(heap, spark.LEAST_MIB)
            self.assertLessEqual(heap, spark.most_heap("executor", mib))
            spark.check_sizes({"spark.executor.memory": f"{heap}m"}, {}, {"memory": mib << 20})

    def test_the_overhead_that_is_set_counts(self):
        for mib, settings, expected in (
            (4452, {"spark.executor.memoryOverhead": "100m"}, 4352),
            (4452, {"spark.executor.memoryOverhead": "1g"}, 3428),
            (8192, {"spark.executor.memoryOverheadFactor": "0.4"}, 5851),
        ):
            place = {"CPU": 1, "memory": mib << 20}
            self.assertEqual(spark.most_heap("executor", mib, settings), expected)
            spark.check_sizes({**settings, "spark.executor.memory": f"{expected}m"}, {}, place)
            with self.assertRaisesRegex(spark.SizeError, f"lower it to at most {expected}m"):
                spark.check_sizes({**settings, "spark.executor.memory": f"{expected + 2}m"}, {}, place)
            offered = spark.parse_mib("", spark.worker_command("h", 1, 2, place, "m:3")[-2])
            self.assertGreaterEqual(offered, expected)
            heap = spark.parse_mib("", spark.weak("", {}, place, settings)["spark.executor.memory"])
            spark.check_sizes({**settings, "spark.executor.memory": f"{heap + 150}m"}, {}, place)

    def test_refuses_what_does_not_fit(self):
        for settings, says in (
            ({"spark.executor.memory": "4g"}, "4096 MiB with an overhead of 409 MiB does not fit the 4096 MiB"),
            ({"spark.executor.memory": "3g", "spark.executor.memoryOverhead": "2g"}, "overhead of 2048 MiB"),
            ({"spark.executor.memory": "3g", "spark.executor.memoryOverheadFactor": "0.4"}, "overhead of 1228 MiB"),
            ({"spark.executor.memory": "much"}, "much is no amount"),
        ):
            with self.assertRaisesRegex(spark.SizeError, says):
                spark.check_sizes(settings, {}, PLACE)

    def test_refuses_an_overhead_that_leaves_no_executor(self):
        says = "a place of 4096 MiB holds no executor of Spark beside an overhead of 10240 MiB; raise .* to at least 10752Mi"
        with self.assertRaisesRegex(spark.SizeError, says):
            spark.check_sizes({"spark.executor.memoryOverhead": "10g"}, {}, PLACE)

    def test_refuses_a_driver_that_does_not_fit(self):
        for given, says in (
            ({"spark.driver.memory": "4g"}, "spark.driver.memory of 4096 MiB .* lower it to at most 3712m, .* memory of role driver"),
            ({"spark.driver.memoryOverhead": "4g"}, "holds no driver of Spark beside an overhead of 4096 MiB"),
        ):
            spark.check_sizes(given, {"CPU": 1}, PLACE)
            with self.assertRaisesRegex(spark.SizeError, says):
                spark.check_sizes(given, PLACE, PLACE)

    def test_refuses_a_factor_that_is_none(self):
        for text in ("10%", "", "inf", "nan", "-0.1", "1e308"):
            given = {"spark.executor.memory": "1g", "spark.executor.memoryOverheadFactor": text}
            with self.assertRaisesRegex(spark.SizeError, "memoryOverheadFactor .* is no factor from 0 to 100; write one such as 0.1"):
                spark.check_sizes(given, {}, PLACE)
        with self.assertRaisesRegex(spark.SizeError, "is no amount"):
            spark.check_sizes({"spark.executor.memory": "9" * 5000}, {}, PLACE)

    def test_refuses_a_place_that_holds_no_executor(self):
        with self.assertRaisesRegex(spark.SizeError, "raise memory of role executor to at least 896Mi"):
            spark.check_sizes({}, {}, {"memory": 895 << 20})

    def test_without_memory_spark_has_its_own_default(self):
        spark.check_sizes({"spark.executor.memory": "900g"}, {}, {"CPU": 1})
        self.assertNotIn("--memory", spark.worker_command("h", 1, 2, {"CPU": 1}, "m:3"))


class Files(unittest.TestCase):
    """What is in a place."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.java = self.program("java/bin/java")
        self.env = {"PATH": "/usr/bin:/bin", "SPARK_HOME": f"{self.folder}/spark", "JAVA_HOME": f"{self.folder}/java"}

    def program(self, name):
        """Make a program."""
        path = pathlib.Path(self.folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n", encoding="ascii")
        path.chmod(0o755)
        return str(path)

    def prepare(self, name="executor/3", argv=("spark-class", "Worker", "spark://m:1"), command=("spark-submit", "main.py"), **env):
        """Prepare a process."""
        ports = {key: 20000 + at for at, key in enumerate(spark.port_keys(name))}
        role = {"resources": PLACE, "command": command, "entrypoint": ""}
        plan = spark.plan(name, ("10.0.0.1", "10.0.0.1:20001"), ports, {"driver": role, "executor": role})
        program = {"name": name, "argv": list(argv), "spark": {**plan, "secret": "s3cret"}}
        found = spark_files.prepare(program, {**self.env, **env}, self.folder)
        self.addCleanup(shutil.rmtree, found.directory)
        return found

    def test_the_secret_is_in_a_file_of_its_user_alone(self):
        self.program("spark/bin/spark-class")
        found = self.prepare()
        conf = found.env["SPARK_CONF_DIR"]
        path = os.path.join(conf, "spark-defaults.conf")
        modes = [stat.S_IMODE(os.stat(one).st_mode) for one in (found.directory, conf, path)]
        self.assertEqual(modes, [0o700, 0o700, 0o600])
        self.assertIn("spark.authenticate.secret s3cret", pathlib.Path(path).read_text(encoding="ascii"))
        self.assertNotIn("s3cret", str(found))

    def test_the_image_s_settings_are_there_too(self):
        self.program("spark/bin/spark-class")
        self.program("spark/conf/log4j2.properties")
        self.program("spark/conf/..data/x")
        pathlib.Path(self.folder, "spark/conf/spark-defaults.conf").write_text("spark.eventLog.enabled true\n", encoding="ascii")
        pathlib.Path(self.folder, "spark/conf/java-opts").write_text("-Dx=y", encoding="ascii")
        conf = pathlib.Path(self.prepare().env["SPARK_CONF_DIR"])
        self.assertEqual(sorted(os.listdir(conf)), ["java-opts", "log4j2.properties", "spark-defaults.conf"])
        self.assertIn("spark.eventLog.enabled true", (conf / "spark-defaults.conf").read_text(encoding="ascii"))
        self.assertEqual((conf / "java-opts").read_text(encoding="ascii"), "-Dx=y\n-Dspark.blockManager.port=20001\n")

    def test_what_of_the_image_s_settings_cannot_be_read_is_left_out(self):
        self.program("spark/bin/spark-class")
        secret = self.program("spark/conf/sub/keytab")
        self.program("spark/conf/sub/hive-site.xml")
        os.symlink("/nowhere", f"{self.folder}/spark/conf/dangling")
        access = os.access
        with mock.patch("os.access", side_effect=lambda path, mode: path != secret and access(path, mode)):
            conf = pathlib.Path(self.prepare().env["SPARK_CONF_DIR"])
        found = sorted(os.listdir(conf)), os.listdir(conf / "sub")
        self.assertEqual(found, (["java-opts", "spark-defaults.conf", "sub"], ["hive-site.xml"]))

    def test_a_disk_that_is_full_is_no_file_that_is_missing(self):
        self.program("spark/bin/spark-class")
        self.program("spark/conf/log4j2.properties")
        for number, kind, says in (
            (errno.ENOSPC, OSError, "No space left on device: .*/conf/log4j2.properties"),
            (errno.EIO, host.NotFoundError, "write Spark's settings to .*spark/conf/log4j2.properties: .*Input/output error"),
        ):
            failure = OSError(number, os.strerror(number))
            with mock.patch("shutil.copyfile", side_effect=failure), self.assertRaisesRegex(kind, says) as raised:
                self.prepare()
            self.assertEqual(getattr(raised.exception, "errno", None), number if kind is OSError else None)

    def test_options_of_java_are_added_to_a_file_that_cannot_be_written(self):
        self.program("spark/bin/spark-class")
        self.program("spark/conf/java-opts")
        os.chmod(f"{self.folder}/spark/conf/java-opts", 0o400)
        path = os.path.join(self.prepare().env["SPARK_CONF_DIR"], "java-opts")
        self.assertTrue(stat.S_IMODE(os.stat(path).st_mode) & stat.S_IWUSR)

    def test_the_command_s_size_counts_before_the_image_s(self):
        self.program("spark/bin/spark-class")
        pathlib.Path(self.folder, "spark/conf").mkdir()
        pathlib.Path(self.folder, "spark/conf/spark-defaults.conf").write_text("spark.executor.memory 9g\n", encoding="ascii")
        self.prepare("driver/0", ["sh"], command=["spark-submit", "--executor-memory", "2g", "main.py"])
        with self.assertRaises(spark.SizeError):
            self.prepare("driver/0", ["sh"])

    def test_refuses_devices_that_no_worker_offers(self):
        self.program("spark/bin/spark-class")
        command = ["spark-submit", "--conf", "spark.executor.resource.gpu.amount=1", "main.py"]
        says = "spark.executor.resource.gpu.amount makes .* wait for ever, as Workers offer no gpu; leave out .*CUDA_VISIBLE_DEVICES"
        with self.assertRaisesRegex(spark.SizeError, says):
            self.prepare("driver/0", ["sh"], command=command)
        with self.assertRaises(spark.SizeError):
            self.prepare("driver/0", ["sh"], command=command, SPARK_WORKER_OPTS="-Dspark.worker.resource.fpga.amount=1")
        self.prepare("driver/0", ["sh"], command=command, SPARK_WORKER_OPTS="-Dspark.worker.resource.gpu.amount=1")
        self.prepare("driver/0", ["sh"], command=[word.replace("amount=1", "amount=0") for word in command])
        pathlib.Path(self.program("spark/conf/spark-defaults.conf")).write_text("spark.worker.resource.gpu.amount 1", encoding="ascii")
        self.prepare("driver/0", ["sh"], command=command)

    def test_a_command_that_is_missing_leaves_no_directory(self):
        self.program("spark/bin/spark-class")
        made = []
        with mock.patch("tempfile.mkdtemp", side_effect=lambda **_: made.append(1)), self.assertRaisesRegex(host.NotFoundError, "no-such"):
            self.prepare("driver/0", ["no-such-program"])
        self.assertEqual(made, [])

    def test_a_worker_runs_in_a_directory_that_goes_with_it(self):
        spark_class = self.program("spark/bin/spark-class")
        found = self.prepare()
        work = f"{found.directory}/work"
        self.assertEqual(found.argv[3:], [spark_files.WORKER, work, spark_class, "Worker", "--work-dir", work, "spark://m:1"])

    def test_daemons_do_not_find_what_kubernetes_sets_for_a_service_of_spark(self):
        self.program("spark/bin/spark-class")
        foreign = {"SPARK_MASTER_PORT": "tcp://10.1.1.1:7077", "SPARK_WORKER_CORES": "9", "SPARK_MASTER_OPTS": "-Dx"}
        self.assertEqual([name for name in self.prepare(**foreign).env if name in foreign], ["SPARK_MASTER_OPTS"])
        command = self.prepare("driver/0", ["sh", "main.sh"], **foreign)
        self.assertEqual((command.argv, set(foreign) - set(command.env)), (["sh", "main.sh"], set()))

    def test_the_gang_s_settings_are_the_last_options_of_a_daemon(self):
        self.program("spark/bin/spark-class")
        shell = pathlib.Path(self.program("spark/conf/spark-env.sh"))
        for name, variable in ((spark.MASTER, "SPARK_MASTER_OPTS"), ("executor/3", "SPARK_WORKER_OPTS")):
            for text, first in (("", "false"), (f"{variable}='-Dspark.authenticate=no -Dx=y' # last", "no")):
                shell.write_text(text, encoding="ascii")
                env = self.prepare(name, **{variable: "-Dspark.authenticate=false"}).env
                command = f'. "$SPARK_CONF_DIR/spark-env.sh"; printf %s "${variable}"'
                sourced = subprocess.run(["sh", "-c", command], env=env, capture_output=True, check=True, text=True).stdout
                for found in (env[variable], sourced):
                    words = [word for word in shlex.split(found) if word.startswith("-Dspark.authenticate=")]
                    self.assertEqual(words[-1], "-Dspark.authenticate=true")
                self.assertEqual(words[0], f"-Dspark.authenticate={first}")
                self.assertIn("-Dspark.master=spark://10.0.0.1:20001", shlex.split(found))
                self.assertNotIn("s3cret", found)

    def test_programs_of_spark_are_in_the_path(self):
        self.program("spark/bin/spark-class")
        self.assertEqual(self.prepare("driver/0").env["PATH"], f"/usr/bin:/bin:{self.folder}/spark/bin")

    def test_says_what_is_missing(self):
        for env, says in (
            ({}, "SPARK_HOME, which is .*/spark, has no bin/spark-class"),
            ({"SPARK_HOME": "", "PATH": self.folder}, "no spark-class is in PATH"),
        ):
            with self.assertRaisesRegex(host.NotFoundError, f"Spark is not in the image: {says}; add Spark"):
                self.prepare(**env)
        self.program("spark/bin/spark-class")
        for env, says in (
            ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME, which is /nowhere, has no bin/java"),
            ({"JAVA_HOME": "", "PATH": self.folder}, "no java is in PATH, and JAVA_HOME is not set"),
        ):
            with self.assertRaisesRegex(host.NotFoundError, f"Java is not in the image: {says}; add a Java runtime"):
                self.prepare(**env)

    def test_java_that_only_spark_s_own_script_names_is_not_looked_for(self):
        self.program("spark/bin/spark-class")
        pathlib.Path(self.folder, "spark/conf").mkdir()
        pathlib.Path(self.folder, "spark/conf/spark-env.sh").write_text("export JAVA_HOME=/x\n", encoding="ascii")
        self.prepare(JAVA_HOME="", PATH=self.folder)


if __name__ == "__main__":
    unittest.main()
