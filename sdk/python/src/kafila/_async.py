"""Calls over asyncio channels. The same as `_sync`, step by step."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from kafila._attempts import Attempts, Gateways, is_failover
from kafila._config import Address, Config
from kafila._method import PROBE, Method, Repeat
from kafila._reads import Watching, first_page, next_page, with_blocking
from kafila.errors import KafilaError, Unavailable, from_rpc

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)
Item = TypeVar("Item")


class AsyncCaller:
    """Channels to the gateways of one client, for one event loop."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._gateways = Gateways(config.addresses)
        self._channels: dict[Address, grpc.aio.Channel] = {}

    async def close(self) -> None:
        """Closes all connections; open calls end as cancelled."""
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()

    def _channel(self, address: Address) -> grpc.aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            options = self.config.channel_options()
            if address.is_tls:
                credentials = self.config.tls.credentials()
                channel = grpc.aio.secure_channel(address.target, credentials, options)
            else:
                channel = grpc.aio.insecure_channel(address.target, options)
            self._channels[address] = channel
        return channel

    async def unary(
        self,
        method: Method[Req, Res],
        request: Req,
        timeout: float | None = None,
        wait: float = 0.0,
    ) -> Res:
        """Makes a call with its retries. `wait`: seconds for which the gateway may block."""
        request = method.prepared(request)
        repeat = method.repeat(request)
        attempts = Attempts(self.config, repeat, timeout, wait, time.monotonic(), random.random)
        while True:
            address = self._gateways.current()
            try:
                return await self._attempt(address, method, request, attempts)
            except KafilaError as error:
                if is_failover(error):
                    self._gateways.failed(address)
                delay = attempts.after(error, time.monotonic())
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def _attempt(
        self, address: Address, method: Method[Req, Res], request: Req, attempts: Attempts
    ) -> Res:
        channel = self._channel(address)
        if attempts.repeat is Repeat.ONCE:
            # It fails over only before it is sent, so a probe comes first.
            limit = min(attempts.timeout(time.monotonic()), self.config.attempt_timeout)
            await self._probe(channel, address, limit)
        call = channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            response: Res = await call(
                request,
                timeout=attempts.timeout(time.monotonic()),
                metadata=self.config.metadata,
            )
            return response
        except grpc.RpcError as error:
            raise from_rpc(error, method.path, str(address)) from error

    async def _probe(self, channel: grpc.aio.Channel, address: Address, limit: float) -> None:
        """Makes a harmless call. Any answer at all shows that the gateway can be reached."""
        probe: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(PROBE)
        try:
            await probe(b"", timeout=limit, metadata=self.config.metadata)
        except grpc.RpcError as error:
            found = from_rpc(error, PROBE, str(address))
            if is_failover(found):
                raise Unavailable(
                    found.message, address=str(address), method=PROBE, was_sent=False
                ) from error

    async def stream(
        self,
        method: Method[Req, Res],
        request: Req,
        timeout: float | None = None,
        silence: float | None = None,
    ) -> AsyncGenerator[Res, None]:
        """Opens a stream and yields its messages; without retries.

        `timeout` is for the whole stream; None: no limit. `silence`: seconds after which a stream
        without messages is given up as unavailable.
        """
        address = self._gateways.current()
        open_stream = self._channel(address).unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        call = open_stream(request, timeout=timeout, metadata=self.config.metadata)
        try:
            while True:
                response = await asyncio.wait_for(call.read(), silence)
                if not isinstance(response, method.response):
                    # The end of the stream.
                    return
                yield response
        except grpc.RpcError as error:
            raised = from_rpc(error, method.path, str(address))
            if is_failover(raised):
                self._gateways.failed(address)
            raise raised from error
        except asyncio.TimeoutError as error:
            self._gateways.failed(address)
            raise Unavailable(
                f"no message for {silence} s", address=str(address), method=method.path
            ) from error
        finally:
            call.cancel()

    async def items(
        self,
        method: Method[Req, Res],
        request: Req,
        timeout: float | None,
        items_of: Callable[[Res], Iterable[Item]],
    ) -> AsyncIterator[Item]:
        """Yields the items of a list, one page after the other."""
        page_request: Req | None = first_page(request)
        while page_request is not None:
            page = await self.unary(method, page_request, timeout)
            for item in items_of(page):
                yield item
            page_request = next_page(page_request, page)

    async def blocking(
        self, method: Method[Req, Res], request: Req, wait: float, timeout: float | None
    ) -> Res:
        """Makes a read that blocks until the index of its result exceeds `min_index`."""
        index = getattr(request, "options").min_index
        blocking = with_blocking(request, index, wait)
        return await self.unary(method, blocking, timeout, wait if index else 0.0)

    async def watch(
        self, method: Method[Req, Res], request: Req, wait: float
    ) -> AsyncIterator[Res]:
        """Yields the answer of a read now and after each change, without an end."""
        watching = Watching()
        while True:
            blocking = with_blocking(request, watching.index, wait)
            answer = await self.blocking(method, blocking, wait, None)
            if watching.is_news(answer):
                yield answer
