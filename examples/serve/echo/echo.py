"""Answers with what it was told, and with its version and process, so that one can see who answers during an upgrade."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse
from ray import serve

VERSION = os.environ.get("ECHO_VERSION", "1")

api = FastAPI()


@serve.deployment(
    num_replicas=2,
    max_replicas_per_node=1,
    max_ongoing_requests=100,
    # What it has begun it finishes, up to sessions of a minute.
    graceful_shutdown_timeout_s=60,
    ray_actor_options={"num_cpus": 0.1},
)
@serve.ingress(api)
class Echo:
    def __init__(self):
        self.version = VERSION

    def reconfigure(self, config: dict) -> None:
        """Takes user_config, without a restart: a version there is told in place of that of the code."""
        self.version = config.get("version", VERSION)

    def who(self) -> dict:
        return {"version": self.version, "pid": os.getpid(), "node": socket.gethostname()}

    @api.get("/")
    async def echo(self, said: str = "") -> dict:
        return {**self.who(), "said": said}

    @api.post("/")
    async def echo_body(self, request: Request) -> dict:
        return {**self.who(), "said": (await request.body()).decode()}

    @api.get("/slow")
    async def slow(self, s: float, said: str = "") -> dict:
        who = self.who()
        await asyncio.sleep(s)
        return {**who, "said": said, "slept": s}

    @api.get("/stream")
    async def stream(self, n: int, pace: float = 0.5) -> StreamingResponse:
        who = self.who()

        async def lines() -> AsyncIterator[str]:
            for chunk in range(n):
                yield json.dumps({**who, "chunk": chunk, "of": n}) + "\n"
                await asyncio.sleep(pace)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    @api.websocket("/ws")
    async def talk(self, session: WebSocket) -> None:
        who = self.who()
        await session.accept()
        try:
            while True:
                await session.send_text(json.dumps({**who, "said": await session.receive_text()}))
        except WebSocketDisconnect:
            pass  # the client has said all


app = Echo.bind()
