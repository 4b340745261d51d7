"""A web service with FastAPI, on asyncio, whose answers come from hyperties.

`uvicorn fastapi_service:app` serves it, with the node in PROTOFLY_NODE if there is one. The program
itself serves it on a free port, asks it, and prints what it answers.
"""

import asyncio
import json
import os
import socket
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse

import actors
from actors import aio


async def greet(message: actors.Message) -> str:
    """Handle a request in the loop of asyncio."""
    if not isinstance(message.value, str):
        raise actors.Refused(actors.Code.MALFORMED, "a name is a text")
    return f"Hello, {message.value}!"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open a runtime with a hyperty and a data object for as long as the service runs."""
    async with AsyncExitStack() as stack:
        node = os.environ.get("PROTOFLY_NODE")
        if node is None:
            node = (await stack.enter_async_context(aio.open_node("a.example"))).url
        runtime = await stack.enter_async_context(aio.open_runtime("a.example", "web", node=node))
        app.state.runtime, app.state.count = runtime, 0
        app.state.greeter = await stack.enter_async_context(runtime.deploy(greet, "greeter"))
        app.state.visits = await stack.enter_async_context(
            runtime.report("ctxt", {"count": 0}, name="visits", public=True)
        )
        visits = runtime.observe(app.state.visits.url)
        app.state.copy = await stack.enter_async_context(visits)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/greet/{name}")
async def get_greeting(name: str, request: Request) -> dict[str, object]:
    """Send a request to a hyperty, count the visit, and return the answer."""
    state = request.app.state
    answer = await state.runtime.request(state.greeter, name)
    if answer.code != actors.Code.OK:
        raise HTTPException(answer.code, answer.body.get("description"))
    state.count += 1
    await state.visits.set("count", state.count)
    return {"answer": answer.value}


@app.get("/visits")
async def stream_visits(request: Request, most: int = 100) -> StreamingResponse:
    """Stream the changes of a data object as server-sent events; all clients share one copy."""
    copy = request.app.state.copy

    async def events() -> AsyncIterator[str]:
        changes, left = copy.changes(), most
        yield f"data: {json.dumps(dict(copy.value))}\n\n"
        async for change in changes:
            yield f"data: {json.dumps({change.path: change.new})}\n\n"
            if not (left := left - 1):
                return

    return StreamingResponse(events(), media_type="text/event-stream")


def read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read(), "utf-8")


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    print(await asyncio.to_thread(read, f"{url}/greet/Alice"))
    reads = (asyncio.to_thread(read, f"{url}/visits?most=2") for _ in range(2))
    streams = asyncio.gather(*reads)
    while not streams.done():
        await asyncio.to_thread(read, f"{url}/greet/Bob")
    print("events:", *(text.count("data:") for text in streams.result()))
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
