"""A server's socket as a port of this machine, for drivers that know TCP alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

BLOCK = 65536


@contextmanager
def tcp_port(path: str) -> Iterator[int]:
    """The port at which the server behind this socket answers within the block."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(partial(_relay, path), "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _relay(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    answers, questions = await asyncio.open_unix_connection(path)
    await asyncio.gather(_pass_on(reader, questions), _pass_on(answers, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while block := await reader.read(BLOCK):
            writer.write(block)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
