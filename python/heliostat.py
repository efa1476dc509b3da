"""Addresses heliostat://NAMESPACE/NAME for Ray's job client.

In: the address of a cluster, HELIOSTAT_SERVER, and a token of the caller's. Out: the address of the cluster's dashboard at
Heliostat's server, and a header with the token. Ray imports this module by the scheme of the address.

It must never print the token, hand it to another program, or send it over plain HTTP to another machine. A proxy is another
machine too, also on the way to this one.
"""

import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

__all__ = ["ClientBuilder", "ClusterInfo", "get_job_submission_client_cluster_info"]

MOUNTED_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
# How long a call, a head that starts, and the command line may take, in seconds.
CALL_WITHIN = 30
READY_WITHIN = 15 * 60
COMMAND_WITHIN = 60
LOOK_EACH = 2

_ADDRESS = re.compile(r"([a-z0-9][-a-z0-9]{0,62})/([a-z0-9][-a-z0-9.]{0,252})")


@dataclass
class ClusterInfo:
    """Where Ray's job client sends its requests, and with what."""

    address: str
    cookies: Optional[Dict[str, Any]] = None
    metadata: Optional[Dict[str, Any]] = None
    headers: Optional[Dict[str, Any]] = None


class ClientBuilder:
    """What ray.init asks for. Ray Client is another protocol, which does not pass through the server."""

    def __init__(self, address: Optional[str] = None) -> None:
        namespace, name = _read(address or "")
        raise RuntimeError(
            "heliostat:// is for Ray's job client, and ray.init cannot use it; "
            f"run your program by: heliostat session {name} -n {namespace} -- python PROGRAM"
        )


def get_job_submission_client_cluster_info(
    address: str,
    create_cluster_if_needed: Optional[bool] = False,
    cookies: Optional[Dict[str, Any]] = None,
    metadata: Optional[Dict[str, Any]] = None,
    headers: Optional[Dict[str, Any]] = None,
    **_: Any,
) -> ClusterInfo:
    """Return where the dashboard of a cluster is, with a header that signs in. Ray's job client calls it by this name.

    create_cluster_if_needed is true where a job is submitted: then a suspended cluster is resumed, and awaited.
    """
    namespace, name = _read(address)
    server = _Server(*_find_sign_in(namespace, name))
    found = server.get(namespace, name)
    if create_cluster_if_needed:
        found = _await_head(server, namespace, name, found)
    elif _is_suspended(found):
        raise RuntimeError(
            f"cluster {namespace}/{name} is suspended; resume it: heliostat resume cluster/{name} -n {namespace}"
        )
    dashboard = found.get("dashboard") or ""
    if not dashboard:
        raise RuntimeError(
            f"the server {server.url} serves no dashboards; ask an administrator for server.dashboards.enabled"
        )
    _check_encrypted(dashboard)
    _check_direct(dashboard)
    sent = {key: value for key, value in (headers or {}).items() if key.lower() != "authorization"}
    sent["Authorization"] = "Bearer " + server.token
    return ClusterInfo(dashboard.rstrip("/"), cookies, metadata, sent)


def _read(address: str) -> Tuple[str, str]:
    """Return the namespace and the name in an address without its scheme."""
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise ValueError(f"{address!r} is no address of a cluster; write heliostat://NAMESPACE/NAME")
    return parts[1], parts[2]


def _find_sign_in(namespace: str, name: str) -> Tuple[str, str]:
    """Return the server's address and a token that is fresh now."""
    server = os.environ.get("HELIOSTAT_SERVER", "")
    token = os.environ.get("HELIOSTAT_TOKEN", "") or _mounted_token()
    if not server or not token:
        told = _ask_command(namespace, name)
        server, token = server or told.get("server", ""), token or told.get("token", "")
    if not server:
        raise RuntimeError("HELIOSTAT_SERVER is not set; set it to the address of Heliostat's server")
    if not token:
        raise RuntimeError(
            "there is no token; set HELIOSTAT_TOKEN, mount one of a service account, or install the command heliostat"
        )
    return server.rstrip("/"), token.strip()


def _mounted_token() -> str:
    """Return the token of the pod's service account: Kubernetes replaces it each hour, so it is read each time."""
    try:
        with open(MOUNTED_TOKEN, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _ask_command(namespace: str, name: str) -> Dict[str, str]:
    """Return what the command line knows by its kubeconfig."""
    command = ["heliostat", "env", name, "-n", namespace, "-o", "json"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=COMMAND_WITHIN, check=True)
        return json.loads(done.stdout)
    except FileNotFoundError:
        return {}
    except subprocess.CalledProcessError as failed:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {failed.returncode}") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(command)} did not end within {COMMAND_WITHIN} s") from None
    except ValueError:
        raise RuntimeError(f"{' '.join(command)} printed no JSON; install the version of the server") from None


def _check_encrypted(url: str) -> None:
    """Refuse an address that would carry the token in clear text over a network."""
    parts = urllib.parse.urlsplit(url)
    is_here = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not is_here:
        raise RuntimeError(f"{url} is not encrypted, and a token must not go there; give an address with https://")


def _check_direct(url: str) -> None:
    """Refuse an address of this machine to which Ray's client would go in clear text by way of a proxy."""
    parts = urllib.parse.urlsplit(url)
    proxies = urllib.request.getproxies()
    is_proxied = parts.scheme == "http" and ("http" in proxies or "all" in proxies)
    if is_proxied and not urllib.request.proxy_bypass(parts.hostname):
        raise RuntimeError(
            f"{url} is not encrypted, and the token would go there by way of a proxy; set NO_PROXY={parts.hostname}"
        )


def _is_suspended(found: Dict[str, Any]) -> bool:
    return found.get("line", {}).get("phase") in ("Suspended", "Suspending")


def _has_head(found: Dict[str, Any]) -> bool:
    return any(phase.get("name") == "HeadReady" and phase.get("state") == "Done" for phase in found.get("phases", []))


def _await_head(server: "_Server", namespace: str, name: str, found: Dict[str, Any]) -> Dict[str, Any]:
    """Resume a cluster where it is suspended, and return it when it has a head that takes jobs."""
    if _is_suspended(found):
        _say(f"cluster {namespace}/{name} is suspended; resuming it")
        server.resume(namespace, name)
        found = server.get(namespace, name)
    until, said = time.monotonic() + READY_WITHIN, ""
    while not _has_head(found) or _is_suspended(found):
        line = found.get("line", {})
        why = line.get("message") or line.get("phase") or "its head is not ready"
        if time.monotonic() > until:
            raise RuntimeError(f"cluster {namespace}/{name} has had no head for {READY_WITHIN // 60} min: {why}")
        if why != said:
            _say(f"waiting for cluster {namespace}/{name}: {why}")
            said = why
        time.sleep(LOOK_EACH)
        found = server.get(namespace, name)
    return found


def _say(text: str) -> None:
    print("heliostat: " + _printable(text), file=sys.stderr, flush=True)


def _printable(text: str) -> str:
    """Return a text of somebody else without what a terminal obeys."""
    return "".join(one if one.isprintable() else " " for one in text)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the token to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Server:
    """Heliostat's server, asked as the caller."""

    def __init__(self, url: str, token: str) -> None:
        _check_encrypted(url)
        self.url, self.token = url, token
        # The same variables as those by which Ray's client finds an authority.
        authority = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        trust = ssl.create_default_context(cafile=authority or None)
        handlers = [urllib.request.HTTPSHandler(context=trust), _NoRedirect()]
        if not url.startswith("https:"):  # it is this machine, and a proxy would read the token
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, namespace: str, name: str) -> Dict[str, Any]:
        """Return a cluster with what explains its state."""
        return self._call("GET", f"/v1/namespaces/{namespace}/clusters/{name}")

    def resume(self, namespace: str, name: str) -> None:
        """Resume a cluster. It does nothing to one that is not suspended."""
        self._call("POST", f"/v1/namespaces/{namespace}/clusters/{name}:resume")

    def _call(self, method: str, path: str) -> Dict[str, Any]:
        request = urllib.request.Request(self.url + path, method=method, data=b"{}" if method == "POST" else None)
        request.add_header("Content-Type", "application/json")
        request.add_unredirected_header("Authorization", "Bearer " + self.token)
        try:
            with self._opener.open(request, timeout=CALL_WITHIN) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise RuntimeError(_explain(refused)) from None
        except (OSError, ValueError) as failed:
            why = getattr(failed, "reason", failed)
            raise RuntimeError(f"ask the server {self.url}: {why}; {_remedy(why)}") from None


def _remedy(why: object) -> str:
    if isinstance(why, ssl.SSLCertVerificationError):
        return "set REQUESTS_CA_BUNDLE to the file of the server's authority"
    return "check HELIOSTAT_SERVER"


def _explain(refused: urllib.error.HTTPError) -> str:
    """Return what the server says of a request that it refused."""
    try:
        problem = json.load(refused)
        detail, remedy = problem["detail"], problem.get("remedy")
    except (OSError, ValueError, KeyError, TypeError):
        return f"the server answers with code {refused.code}; check HELIOSTAT_SERVER"
    return _printable(f"{detail}; {remedy}" if remedy else detail)
