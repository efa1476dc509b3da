"""What a process of Spark finds in its place: the program, Java, and a directory with the settings of the image and of the gang.

In: a program of the driver with its plan, and the environment that it would have. Out: arguments, environment, and the directory.

It must never leave the secret in a file that another user can read.
"""

import contextlib
import errno
import os
import re
import shlex
import shutil
import sys
import tempfile
from typing import Any, Dict, List, Mapping, NamedTuple

from heliostat_gang import host, spark

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spark_worker.py")
DEFAULTS, JAVA_OPTIONS, SHELL = "spark-defaults.conf", "java-opts", "spark-env.sh"


class Prepared(NamedTuple):
    """What a guard starts."""

    argv: List[str]
    env: Dict[str, str]
    directory: str


def prepare(program: Mapping[str, Any], env: Mapping[str, str], cwd: str) -> Prepared:
    """Look for Spark and Java, and write the settings of a process.

    It raises host.NotFoundError where one is missing, and spark.SizeError where the places do not have what the
    settings ask for.
    """
    plan = program["spark"]
    home = env.get("SPARK_HOME", "")
    image = env.get(spark.CONF_DIR) or (os.path.join(home, "conf") if home else "")
    spark_class = _find_spark(home, env, cwd)
    _find_java(image, env, cwd)
    settings = _read(os.path.join(image, DEFAULTS)) if image else ""
    given: Dict[str, str] = {}
    if program["name"].startswith(spark.DRIVER):  # whose settings count for executors too
        given = {**spark.parse_properties(settings), **plan["command"]}
        spark.check_sizes(given, plan["driver"], plan["executor"])
        offered = (env.get(name, "") for name in ("SPARK_DAEMON_JAVA_OPTS", "SPARK_WORKER_OPTS"))
        spark.check_devices(given, "\n".join((settings, _read(os.path.join(image, SHELL)) if image else "", *offered)))
    environment = _environment(program, env, home)
    if program["name"].startswith(spark.DRIVER):
        host.find_program(program["argv"][0], environment, cwd)
    directory = tempfile.mkdtemp(prefix="heliostat-spark-", dir="/tmp")
    try:
        weak = spark.weak(directory, plan["driver"], plan["executor"], given)
        text = spark.compose(settings, plan["secret"], plan["fixed"], weak)
        conf = _write(directory, image, text, plan["java"])
        _close_shell(os.path.join(conf, SHELL), program)
    except OSError as error:
        host.remove(directory)
        if host.is_disk_full(error.errno):
            raise
        raise host.NotFoundError(f"write Spark's settings to {directory}: {error.strerror or error}: {error.filename}") from error
    return Prepared(_arguments(program, spark_class, directory), {**environment, spark.CONF_DIR: conf}, directory)


def _find_spark(home: str, env: Mapping[str, str], cwd: str) -> str:
    try:
        return host.find_program(os.path.join(home, "bin", "spark-class") if home else "spark-class", env, cwd)
    except host.NotFoundError as error:
        where = f"SPARK_HOME, which is {home}, has no bin/spark-class" if home else "no spark-class is in PATH"
        raise host.NotFoundError(f"Spark is not in the image: {where}; add Spark, or correct SPARK_HOME") from error


def _find_java(image: str, env: Mapping[str, str], cwd: str) -> None:
    if image and "JAVA_HOME" in _read(os.path.join(image, SHELL)):  # only a shell can tell
        return
    home = env.get("JAVA_HOME", "")
    try:
        host.find_program(os.path.join(home, "bin", "java") if home else "java", env, cwd)
    except host.NotFoundError as error:
        where = f"JAVA_HOME, which is {home}, has no bin/java" if home else "no java is in PATH, and JAVA_HOME is not set"
        raise host.NotFoundError(f"Java is not in the image: {where}; add a Java runtime") from error


def _write(directory: str, image: str, text: str, java: List[str]) -> str:
    """Copy the image's settings, and write those of the process."""
    conf = os.path.join(directory, "conf")
    if image and os.path.isdir(image):
        _copy(image, conf)
        os.chmod(conf, 0o700)
    else:
        os.mkdir(conf, 0o700)
    with open(os.open(os.path.join(conf, DEFAULTS), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    if java:
        path = os.path.join(conf, JAVA_OPTIONS)
        lines = [*_read(path).splitlines(), *java]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # the image's may not be writable
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
    return conf


def _copy(image: str, conf: str) -> None:
    """Copy what of the image's settings can be read. It raises an OSError, which has the number of a disk that is full."""
    try:
        shutil.copytree(image, conf, ignore=_left_out)
    except shutil.Error as error:  # it has a text for each file
        for _, path, why in error.args[0]:
            for number in (errno.ENOSPC, errno.EDQUOT):
                if f"[Errno {number}]" in why:
                    raise OSError(number, os.strerror(number), path) from error
        raise OSError(errno.EIO, "; ".join(f"{path}: {why}" for path, _, why in error.args[0]), image) from error


def _left_out(folder: str, names: List[str]) -> List[str]:
    """Return what is not copied. Where a ConfigMap is mounted, each file is a link into a directory "..data"."""
    return [name for name in names if name.startswith("..") or name == DEFAULTS or not os.access(os.path.join(folder, name), os.R_OK)]


def _close_shell(path: str, program: Mapping[str, Any]) -> None:
    """Put the options of Master or Worker behind those of the image's script, which runs after the environment is set."""
    if program["name"].startswith(spark.DRIVER) or not os.path.exists(path):
        return
    name, options = spark.options_name(program["name"]), shlex.quote(" " + spark.options(program["spark"]["fixed"]))
    os.chmod(path, 0o600)
    with open(path, "a", encoding="utf-8") as file:
        file.write(f'\n\nexport {name}="${{{name}:-}}"{options}\n')


def _arguments(program: Mapping[str, Any], spark_class: str, directory: str) -> List[str]:
    name, argv = program["name"], list(program["argv"])
    if name == spark.MASTER:
        return [spark_class, *argv[1:]]
    if name.startswith(spark.EXECUTOR):
        work = os.path.join(directory, "work")
        *options, master = argv[1:]
        return [sys.executable, "-S", "-E", WORKER, work, spark_class, *options, "--work-dir", work, master]
    return argv


def _environment(program: Mapping[str, Any], env: Mapping[str, str], home: str) -> Dict[str, str]:
    is_command = program["name"].startswith(spark.DRIVER)
    found = {name: value for name, value in env.items() if is_command or not re.fullmatch(spark.FOREIGN, name)}
    if home:
        found["PATH"] = ":".join(path for path in (env.get("PATH", os.defpath), os.path.join(home, "bin")) if path)
    if not is_command:
        name = spark.options_name(program["name"])
        found[name] = f"{found.get(name, '')} {spark.options(program['spark']['fixed'])}".strip()
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
