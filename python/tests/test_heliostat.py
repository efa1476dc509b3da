"""Tests of the module against a server of their own."""

import contextlib
import http.server
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import heliostat  # noqa: E402  the path above is where it is

TOKEN = "secret-of-the-caller"


def cluster(phase="Ready", head="Done", dashboard="https://dash/team-a/demo/", message="all is ready"):
    """Return a cluster as the server answers."""
    return {
        "line": {"phase": phase, "message": message},
        "phases": [{"name": "HeadReady", "state": head}],
        "dashboard": dashboard,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with what the server was given, the last one again and again."""

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        asked = f"{self.command} {self.path} {self.headers.get('Authorization')}"
        self.server.asked.append(asked)
        code, body, headers = 200, {}, {}
        if self.command == "GET":
            answers = self.server.answers
            one = answers.pop(0) if len(answers) > 1 else answers[0]
            code, body, headers = one if isinstance(one, tuple) else (200, one, {})
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def tunnel(self):
        """Note what a proxy sees of a request that it must not read."""
        self.server.asked.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
        self.send_error(403)

    do_GET = do_POST = answer  # noqa: N815  names of http.server
    do_CONNECT = tunnel  # noqa: N815

    def log_message(self, *_):
        pass


class Case(unittest.TestCase):
    """A test with a server, and with no variables and no waits."""

    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.asked, self.server.answers = [], [cluster()]
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.mounted = os.path.join(self.directory(), "token")
        for patch in (
            mock.patch.dict(os.environ, {"PATH": "/none", "HELIOSTAT_SERVER": self.url, "HELIOSTAT_TOKEN": TOKEN}, clear=True),
            mock.patch.object(heliostat, "LOOK_EACH", 0),
            mock.patch.object(heliostat, "MOUNTED_TOKEN", self.mounted),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def directory(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        return made.name

    def find(self, address="team-a/demo", **more):
        """Return what Ray's client gets, and what is said meanwhile."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            found = heliostat.get_job_submission_client_cluster_info(
                address, **{"create_cluster_if_needed": False, "cookies": None, "metadata": None, "headers": None, **more}
            )
        self.assertNotIn(TOKEN, said.getvalue())
        return found, said.getvalue()

    def refuses(self, wanted, error=RuntimeError, **more):
        with self.assertRaises(error) as failed:
            self.find(**more)
        self.assertIn(wanted, str(failed.exception))
        self.assertNotIn(TOKEN, str(failed.exception))


class TestClusterInfo(Case):
    def test_finds_the_dashboard_with_the_token(self):
        found, said = self.find(cookies={"a": "b"}, metadata={"c": "d"}, headers={"authorization": "x", "E": "f"})
        self.assertEqual(found.address, "https://dash/team-a/demo")
        self.assertEqual(found.headers, {"E": "f", "Authorization": "Bearer " + TOKEN})
        self.assertEqual((found.cookies, found.metadata, said), ({"a": "b"}, {"c": "d"}, ""))
        self.assertEqual(self.server.asked, [f"GET /v1/namespaces/team-a/clusters/demo Bearer {TOKEN}"])

    def test_ignores_what_a_later_ray_adds(self):
        self.assertEqual(self.find(later=True)[0].address, "https://dash/team-a/demo")

    def test_refuses_what_is_no_address(self):
        for address in ("", "demo", "a/b/c", "a/", "/b", "A/b", "a/../b", "a/b?x", "a/b\n", "user@a/b"):
            with self.subTest(address):
                self.refuses("write heliostat://NAMESPACE/NAME", ValueError, address=address)
        self.assertEqual(self.server.asked, [])

    def test_submit_resumes_a_suspended_cluster(self):
        self.server.answers = [
            cluster("Suspended", "Pending", message="suspended by spec.suspend"),
            cluster("Suspended", "Pending", message="suspended by spec.suspend"),
            cluster("Starting", "Current", message="head\x1b[2J starts"),
            cluster("Starting", "Current", message="head\x1b[2J starts"),
            cluster("Starting", "Done", message="workers start"),
        ]
        found, said = self.find(create_cluster_if_needed=True)
        self.assertEqual(found.address, "https://dash/team-a/demo")
        self.assertEqual([one.split()[0] for one in self.server.asked], ["GET", "POST", "GET", "GET", "GET", "GET"])
        self.assertIn("POST /v1/namespaces/team-a/clusters/demo:resume", self.server.asked[1])
        self.assertEqual(said.splitlines(), [
            "heliostat: cluster team-a/demo is suspended; resuming it",
            "heliostat: waiting for cluster team-a/demo: suspended by spec.suspend",
            "heliostat: waiting for cluster team-a/demo: head [2J starts",
        ])

    def test_what_submits_nothing_resumes_nothing(self):
        self.server.answers = [cluster("Suspended", "Pending")]
        self.refuses("heliostat resume cluster/demo -n team-a")
        self.assertEqual(len(self.server.asked), 1)

    def test_gives_up_on_a_head_that_does_not_come(self):
        self.server.answers = [cluster("Starting", "Current", message="no nodes")]
        with mock.patch.object(heliostat, "READY_WITHIN", -1):
            self.refuses("no nodes", create_cluster_if_needed=True)

    def test_says_what_the_server_refuses(self):
        problem = {"detail": 'User "bob" cannot get computeclusters', "remedy": "ask an administrator"}
        for answer, wanted in (
            ((403, problem, {}), 'User "bob" cannot get computeclusters; ask an administrator'),
            ((404, b"<html>", {}), "code 404; check HELIOSTAT_SERVER"),
            ((200, b"<html>", {}), "check HELIOSTAT_SERVER"),
            (cluster(dashboard=""), "serves no dashboards"),
            (cluster(dashboard="http://dash.example.com/"), "not encrypted"),
        ):
            with self.subTest(wanted):
                self.server.answers = [answer]
                self.refuses(wanted)

    def test_carries_the_token_to_no_other_address(self):
        self.server.answers = [(302, {}, {"Location": self.url + "/elsewhere"})]
        self.refuses("code 302")
        self.assertEqual(len(self.server.asked), 1)
        os.environ["HELIOSTAT_SERVER"] = "http://heliostat.example.com"
        self.refuses("not encrypted")

    def proxy(self, **answer):
        """Start a proxy that answers for every address, and set it in the environment."""
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        proxy.asked, proxy.answers = [], [cluster(**answer)]
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            os.environ[name] = f"http://127.0.0.1:{proxy.server_address[1]}"
        return proxy

    def test_sends_no_token_in_clear_text_to_a_proxy(self):
        proxy = self.proxy(dashboard="https://evil.example/")
        for host in ("127.0.0.1", "localhost"):
            with self.subTest(host):
                os.environ["HELIOSTAT_SERVER"] = f"http://{host}:{self.server.server_address[1]}"
                self.assertEqual(self.find()[0].address, "https://dash/team-a/demo")
        self.assertEqual(proxy.asked, [])
        self.assertEqual(len(self.server.asked), 2)

    def test_hides_the_token_from_a_proxy_by_tls(self):
        proxy = self.proxy()
        os.environ["HELIOSTAT_SERVER"] = "https://heliostat.example.com"
        self.refuses("check HELIOSTAT_SERVER")
        self.assertEqual(proxy.asked, ["CONNECT heliostat.example.com:443 None"])

    def test_gives_ray_no_address_behind_a_proxy_in_clear_text(self):
        proxy = self.proxy()
        self.server.answers = [cluster(dashboard="http://localhost:8444/team-a/demo/")]
        for kept in (["all_proxy"], ["http_proxy"]):
            with self.subTest(kept), mock.patch.dict(os.environ):
                for name in {"http_proxy", "https_proxy", "all_proxy"} - set(kept):
                    del os.environ[name]
                self.refuses("set NO_PROXY=localhost")
                os.environ["NO_PROXY"] = "localhost"
                self.assertEqual(self.find()[0].address, "http://localhost:8444/team-a/demo")
        self.assertEqual(proxy.asked, [])

    def test_says_that_nobody_answers(self):
        os.environ["HELIOSTAT_SERVER"] = "http://127.0.0.1:1"
        self.refuses("check HELIOSTAT_SERVER")


class TestSignIn(Case):
    def command(self, script):
        """Install a command heliostat."""
        directory = self.directory()
        path = os.path.join(directory, "heliostat")
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        os.environ["PATH"] = directory

    def test_takes_the_mounted_token(self):
        del os.environ["HELIOSTAT_TOKEN"]
        for token in ("first", "replaced"):
            with open(self.mounted, "w", encoding="ascii") as file:
                file.write(token + "\n")
            self.assertEqual(self.find()[0].headers["Authorization"], "Bearer " + token)

    def test_asks_the_command(self):
        del os.environ["HELIOSTAT_TOKEN"], os.environ["HELIOSTAT_SERVER"]
        self.command(f'[ "$*" = "env demo -n team-a -o json" ] && echo \'{{"server": "{self.url}/", "token": "fresh"}}\'')
        self.assertEqual(self.find()[0].headers["Authorization"], "Bearer fresh")

    def test_says_what_is_missing(self):
        del os.environ["HELIOSTAT_TOKEN"]
        self.refuses("set HELIOSTAT_TOKEN")
        os.environ.update(HELIOSTAT_TOKEN=TOKEN)
        del os.environ["HELIOSTAT_SERVER"]
        self.refuses("HELIOSTAT_SERVER is not set")
        self.command("exit 5")
        self.refuses("exit code 5")
        self.command("echo no")
        self.refuses("printed no JSON")


class TestClientBuilder(unittest.TestCase):
    def test_says_that_it_is_not_for_ray_init(self):
        with self.assertRaisesRegex(RuntimeError, "heliostat session demo -n team-a -- python PROGRAM"):
            heliostat.ClientBuilder("team-a/demo")


if __name__ == "__main__":
    unittest.main()
