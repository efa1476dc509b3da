import sys

import ray


def close(proxy, grace):
    import asyncio
    import gc
    import grpc
    import uvicorn

    def last(app):
        async def run(scope, receive, send):
            async def say(message):
                if message["type"] == "http.response.start":
                    message = {**message, "headers": [*message.get("headers", []), (b"connection", b"close")]}
                await send(message)

            await app(scope, receive, say if scope["type"] == "http" else send)

        return run

    if grace is not None:
        for server in [known for known in gc.get_objects() if isinstance(known, grpc.aio.Server)]:
            asyncio.run_coroutine_threadsafe(server.stop(grace), server._loop)
    told = 0
    for server in [known for known in gc.get_objects() if isinstance(known, uvicorn.Server)]:
        for connection in list(server.server_state.connections):
            if hasattr(connection, "app"):
                connection.app, told = last(connection.app), told + 1
    return told


def told(actor):
    proxy = ray.get_actor(actor["name"], actor["namespace"])
    if hasattr(proxy, "_reload_haproxy"):
        return proxy._reload_haproxy.remote()
    leaves = any(actor["name"].endswith(node) for node in leaving)
    return proxy.__ray_call__.remote(close, grace if leaves else None)


grace, addresses = float(sys.argv[1]), sys.argv[2:]
ray.init(log_to_driver=False)
leaving = [node["NodeID"] for node in ray.nodes() if node["NodeManagerAddress"] in addresses]
proxies = [actor for actor in ray.util.list_named_actors(all_namespaces=True) if actor["name"].startswith("SERVE_PROXY_ACTOR")]
answers, lost = {}, []
for actor in proxies:
    try:
        answers[actor["name"]] = told(actor)
    except ValueError as why:  # it has ended meanwhile
        lost.append(str(why))
for name, answer in answers.items():
    try:
        print(name, ray.get(answer, timeout=10))
    except ray.exceptions.RayError as why:
        lost.append(f"{name}: {why}")
if lost:
    raise SystemExit("\n".join(lost))
