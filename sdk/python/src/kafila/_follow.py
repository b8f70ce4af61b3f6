"""Streams that go on after a break: the position, and when to give up. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from kafila._attempts import Backoff, is_failover
from kafila._config import RetryPolicy
from kafila.errors import KafilaError, ResourceExhausted
from kafila.v1 import allocation_pb2, event_pb2

BOOKMARK_INTERVAL = 5.0
"""Seconds between signs of life of an idle event stream."""
SILENCE = 20.0
"""Seconds without events and bookmarks after which another gateway is asked."""


class Outage:
    """Delays of reconnects, and the longest time without a message."""

    def __init__(
        self,
        policy: RetryPolicy,
        longest: float | None,
        now: float,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._backoff = Backoff(policy, draw)
        self._longest = longest
        self._since = now

    def over(self, now: float) -> None:
        """A message has arrived."""
        self._since = now
        self._backoff.reset()

    def delay(self, error: KafilaError, now: float) -> float | None:
        """Returns the seconds before a reconnect; None: `error` is final."""
        if not (is_failover(error) or isinstance(error, ResourceExhausted)):
            return None
        delay = self._backoff.delay()
        if self._longest is not None and now + delay - self._since > self._longest:
            return None
        return delay


class EventPosition:
    """The request that continues a stream of events."""

    def __init__(
        self, namespace: str, filters: Iterable[event_pb2.EventFilter], index: int
    ) -> None:
        self.request = event_pb2.StreamEventsRequest(
            namespace=namespace, filters=list(filters), index=index
        )
        self.request.bookmark_interval.FromNanoseconds(int(BOOKMARK_INTERVAL * 1e9))

    def received(self, batch: event_pb2.EventBatch) -> None:
        """All events up to the batch's index are known, so the next stream starts after it."""
        self.request.index = batch.index + 1


class LogPosition:
    """The request that continues the output of a task."""

    def __init__(self, request: allocation_pb2.LogsRequest) -> None:
        self.request = allocation_pb2.LogsRequest()
        self.request.CopyFrom(request)

    def received(self, chunk: allocation_pb2.LogsChunk) -> None:
        if not self.request.from_end:
            self.request.offset += len(chunk.data)
        self._has_output = True

    _has_output = False

    def is_lost(self) -> bool:
        """True: the position is unknown, because it was counted from the end."""
        return self.request.from_end and self._has_output
