"""Drives the blocking and the asyncio client alike, so that one test covers both."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from kafila import AsyncClient, Client


class Driver:
    """Clients of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._loop = asyncio.new_event_loop()
        self._clients: list[Any] = []

    def client(self, *addresses: str, **settings: Any) -> Any:
        if self.kind == "sync":
            client: Any = Client(addresses or None, **settings)
        else:

            async def make() -> AsyncClient:
                return AsyncClient(addresses or None, **settings)

            client = self._loop.run_until_complete(make())
        self._clients.append(client)
        return client

    def call(self, begin: Callable[[], Any]) -> Any:
        """Returns the result of a call."""
        if self.kind == "sync":
            return begin()

        async def run() -> Any:
            return await begin()

        return self._loop.run_until_complete(run())

    def take(self, begin: Callable[[], Any], count: int | None = None) -> list[Any]:
        """Returns the first items of an iterator; None: all."""
        if self.kind == "sync":
            items = begin()
            taken = list(itertools.islice(items, count))
            getattr(items, "close", lambda: None)()
            return taken

        async def run() -> list[Any]:
            items, taken = begin(), []
            async for item in items:
                taken.append(item)
                if len(taken) == count:
                    break
            await items.aclose()
            return taken

        return self._loop.run_until_complete(run())

    def close(self) -> None:
        for client in self._clients:
            self.call(client.close)
        self._loop.close()
