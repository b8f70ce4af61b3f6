"""Calls over blocking channels."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from kafila._attempts import Attempts, Gateways, is_failover
from kafila._config import Address, Config
from kafila._method import PROBE, Method, Repeat
from kafila._reads import Watching, first_page, next_page, with_blocking
from kafila.errors import KafilaError, Unavailable, from_rpc

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)
Item = TypeVar("Item")


class Caller:
    """Channels to the gateways of one client."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._gateways = Gateways(config.addresses)
        self._channels: dict[Address, grpc.Channel] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes all connections; open calls end as cancelled."""
        with self._lock:
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()

    def _channel(self, address: Address) -> grpc.Channel:
        with self._lock:
            channel = self._channels.get(address)
            if channel is None:
                options = self.config.channel_options()
                if address.is_tls:
                    credentials = self.config.tls.credentials()
                    channel = grpc.secure_channel(address.target, credentials, options)
                else:
                    channel = grpc.insecure_channel(address.target, options)
                self._channels[address] = channel
            return channel

    def unary(
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
                return self._attempt(address, method, request, attempts)
            except KafilaError as error:
                if is_failover(error):
                    self._gateways.failed(address)
                delay = attempts.after(error, time.monotonic())
                if delay is None:
                    raise
            time.sleep(delay)

    def _attempt(
        self, address: Address, method: Method[Req, Res], request: Req, attempts: Attempts
    ) -> Res:
        channel = self._channel(address)
        if attempts.repeat is Repeat.ONCE:
            # It fails over only before it is sent, so a probe comes first.
            limit = min(attempts.timeout(time.monotonic()), self.config.attempt_timeout)
            self._probe(channel, address, limit)
        call = channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            response: Res = call(
                request,
                timeout=attempts.timeout(time.monotonic()),
                metadata=self.config.metadata,
            )
            return response
        except grpc.RpcError as error:
            raise from_rpc(error, method.path, str(address)) from error

    def _probe(self, channel: grpc.Channel, address: Address, limit: float) -> None:
        """Makes a harmless call. Any answer at all shows that the gateway can be reached."""
        probe: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(PROBE)
        try:
            probe(b"", timeout=limit, metadata=self.config.metadata)
        except grpc.RpcError as error:
            found = from_rpc(error, PROBE, str(address))
            if is_failover(found):
                raise Unavailable(
                    found.message, address=str(address), method=PROBE, was_sent=False
                ) from error

    def stream(
        self,
        method: Method[Req, Res],
        request: Req,
        timeout: float | None = None,
        silence: float | None = None,
    ) -> Generator[Res, None, None]:
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
        watchdog = Watchdog(silence, call.cancel)
        try:
            for response in call:
                watchdog.fed()
                yield response
                watchdog.fed()
        except grpc.RpcError as error:
            raised = from_rpc(error, method.path, str(address))
            if watchdog.has_barked:
                raised = Unavailable(
                    f"no message for {silence} s", address=str(address), method=method.path
                )
            if is_failover(raised):
                self._gateways.failed(address)
            raise raised from error
        finally:
            watchdog.stop()
            call.cancel()

    def items(
        self,
        method: Method[Req, Res],
        request: Req,
        timeout: float | None,
        items_of: Callable[[Res], Iterable[Item]],
    ) -> Iterator[Item]:
        """Yields the items of a list, one page after the other."""
        page_request: Req | None = first_page(request)
        while page_request is not None:
            page = self.unary(method, page_request, timeout)
            yield from items_of(page)
            page_request = next_page(page_request, page)

    def blocking(
        self, method: Method[Req, Res], request: Req, wait: float, timeout: float | None
    ) -> Res:
        """Makes a read that blocks until the index of its result exceeds `min_index`."""
        index = getattr(request, "options").min_index
        blocking = with_blocking(request, index, wait)
        return self.unary(method, blocking, timeout, wait if index else 0.0)

    def watch(self, method: Method[Req, Res], request: Req, wait: float) -> Iterator[Res]:
        """Yields the answer of a read now and after each change, without an end."""
        watching = Watching()
        while True:
            blocking = with_blocking(request, watching.index, wait)
            answer = self.blocking(method, blocking, wait, None)
            if watching.is_news(answer):
                yield answer


class Watchdog:
    """Cancels a stream that is silent for too long."""

    def __init__(self, silence: float | None, cancel: Callable[[], Any]) -> None:
        self._silence = silence
        self._cancel = cancel
        self._fed = time.monotonic()
        self._stopped = threading.Event()
        self.has_barked = False
        if silence is not None:
            threading.Thread(target=self._run, name="kafila-watchdog", daemon=True).start()

    def fed(self) -> None:
        self._fed = time.monotonic()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        assert self._silence is not None
        left = self._silence
        while not self._stopped.wait(left):
            left = self._fed + self._silence - time.monotonic()
            if left <= 0:
                self.has_barked = True
                self._cancel()
                return
