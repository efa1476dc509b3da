"""Answers word by word, as models do that write: each word is sent as soon as it is there."""

import asyncio
from collections.abc import AsyncIterator

from ray import serve
from starlette.requests import Request
from starlette.responses import StreamingResponse

TEXT = "A mirror keeps turning so that the rays of the sun meet one target."


@serve.deployment(max_ongoing_requests=100, graceful_shutdown_timeout_s=60, ray_actor_options={"num_cpus": 0.1})
class Writer:
    async def words(self, count: int) -> AsyncIterator[str]:
        for word in TEXT.split()[:count]:
            yield word + "\n"
            await asyncio.sleep(0.1)  # a model thinks here

    def __call__(self, request: Request) -> StreamingResponse:
        count = int(request.query_params.get("words", "100"))
        return StreamingResponse(self.words(count), media_type="text/plain")


app = Writer.bind()
