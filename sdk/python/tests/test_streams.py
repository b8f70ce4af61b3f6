"""Streams that break: events and logs go on where they stopped. For both clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from driver import Driver
from fake import FakeGateway, fail, in_turn

from kafila import RetryPolicy, _follow, errors, v1

QUICK = RetryPolicy(first_delay=0.01, max_delay=0.05)
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def batches(*indexes: int, then: grpc.StatusCode | None = UNAVAILABLE) -> Callable[..., Any]:
    """Returns a stream: a bookmark at the first index, events at the others."""

    def answer(request: Any, context: grpc.ServicerContext) -> Iterator[v1.EventBatch]:
        yield v1.EventBatch(index=indexes[0])
        for index in indexes[1:]:
            yield v1.EventBatch(index=index, events=[v1.Event(index=index)])
        if then is not None:
            context.abort(then, "scripted")

    return answer


def silent(request: Any, context: grpc.ServicerContext) -> Iterator[v1.EventBatch]:
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(10)
    yield v1.EventBatch(index=99, events=[v1.Event()])


def test_events_go_on_at_another_gateway(
    driver: Driver, gateway: FakeGateway, other_gateway: FakeGateway
) -> None:
    gateway.on("Events/Stream", batches(10, 11, 12))
    other_gateway.on("Events/Stream", batches(12, 15, 16))
    client = driver.client(gateway.address, other_gateway.address, retry=QUICK)
    filters = [v1.EventFilter(topic="Job")]
    seen = driver.take(lambda: client.follow_events(filters, namespace="dev"), 4)
    assert [batch.index for batch in seen] == [11, 12, 15, 16]
    first, second = gateway.requests[0], other_gateway.requests[0]
    assert (first.index, second.index) == (0, 13)
    assert second.namespace == "dev" and list(second.filters) == filters


@pytest.mark.parametrize("then", [None, UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_break_before_any_event_loses_none(
    driver: Driver, gateway: FakeGateway, then: grpc.StatusCode | None
) -> None:
    # The bookmark alone tells where the stream began; the gateway may end it without an error.
    gateway.on("Events/Stream", in_turn(batches(10, then=then), batches(10, 11)))
    client = driver.client(gateway.address, retry=QUICK)
    seen = driver.take(lambda: client.follow_events(bookmarks=True), 3)
    assert [batch.index for batch in seen] == [10, 10, 11]
    assert gateway.requests[1].index == 11


def test_a_compacted_index_is_an_error(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Events/Stream", fail(grpc.StatusCode.OUT_OF_RANGE, "compacted"))
    client = driver.client(gateway.address, retry=QUICK)
    with pytest.raises(errors.OutOfRange, match="compacted"):
        driver.take(lambda: client.follow_events(index=3), 1)


def test_a_silent_stream_is_left(
    driver: Driver,
    gateway: FakeGateway,
    other_gateway: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("kafila.client", "kafila.aio"):
        monkeypatch.setattr(f"{module}.SILENCE", 0.3)
    gateway.on("Events/Stream", silent)
    other_gateway.on("Events/Stream", batches(10, 11))
    client = driver.client(gateway.address, other_gateway.address, retry=QUICK)
    assert driver.take(client.follow_events, 1)[0].index == 11
    assert _follow.SILENCE > 2 * _follow.BOOKMARK_INTERVAL


def test_a_long_outage_ends_the_events(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Events/Stream", in_turn(batches(10, 11), fail(UNAVAILABLE)))
    client = driver.client(gateway.address, retry=QUICK)
    with pytest.raises(errors.Unavailable):
        driver.take(lambda: client.follow_events(longest_outage=0.3))
    assert len(gateway.requests) > 3


@pytest.fixture(autouse=True)
def running(gateway: FakeGateway) -> None:
    """The allocation of the logs runs."""
    gateway.on("Allocations/Get", lambda request, context: RUNNING)


RUNNING = v1.GetAllocationResponse(allocation=v1.Allocation(client_status="running"))


def log_requests(gateway: FakeGateway) -> list[v1.LogsRequest]:
    return [found for found in gateway.requests if isinstance(found, v1.LogsRequest)]


def output(text: bytes, breaks_after: int | None = None) -> Callable[..., Any]:
    """Returns a log in chunks of two bytes; it breaks after so many bytes of this stream."""

    def answer(request: v1.LogsRequest, context: grpc.ServicerContext) -> Iterator[v1.LogsChunk]:
        start = len(text) - request.offset if request.from_end else request.offset
        left = text[start:]
        for position in range(0, len(left), 2):
            if breaks_after is not None and position >= breaks_after:
                context.abort(UNAVAILABLE, "scripted")
            yield v1.LogsChunk(data=left[position : position + 2])

    return answer


def test_logs_go_on_after_the_last_byte(driver: Driver, gateway: FakeGateway) -> None:
    text = b"0123456789"
    gateway.on("Allocations/Logs", in_turn(output(text, 4), output(text, 2), output(text)))
    client = driver.client(gateway.address, retry=QUICK)
    assert b"".join(driver.take(lambda: client.follow_logs("a", "t"))) == text
    assert [request.offset for request in log_requests(gateway)] == [0, 4, 6]


def test_following_logs_waits_for_the_start(driver: Driver, gateway: FakeGateway) -> None:
    pending = v1.GetAllocationResponse(
        allocation=v1.Allocation(client_status="pending"), meta=v1.QueryMeta(index=7)
    )
    gateway.on("Allocations/Get", in_turn(lambda *_: pending, lambda *_: RUNNING))
    gateway.on("Allocations/Logs", output(b"01"))
    client = driver.client(gateway.address, retry=QUICK)
    assert driver.take(lambda: client.follow_logs("a", "t")) == [b"01"]
    assert [found.options.min_index for found in gateway.requests[:2]] == [0, 7]
    driver.take(lambda: client.follow_logs("a", "t", follow=False))
    assert len(gateway.requests) == 4, "without `follow`, the log is read as it is"


def test_a_tail_breaks_because_its_position_is_unknown(
    driver: Driver, gateway: FakeGateway
) -> None:
    text = b"0123456789"
    gateway.on("Allocations/Logs", in_turn(fail(UNAVAILABLE), output(text)))
    client = driver.client(gateway.address, retry=QUICK)
    tail = driver.take(lambda: client.follow_logs("a", "t", tail_bytes=4))
    assert b"".join(tail) == b"6789", "without output, the position is still known"
    gateway.on("Allocations/Logs", output(text, 2))
    with pytest.raises(errors.Unavailable):
        driver.take(lambda: client.follow_logs("a", "t", tail_bytes=4))


def test_streams_of_the_services_break_with_their_error(
    driver: Driver, gateway: FakeGateway
) -> None:
    gateway.on("Allocations/Logs", output(b"0123", 2))
    client = driver.client(gateway.address)
    with pytest.raises(errors.Unavailable, match="scripted"):
        driver.take(lambda: client.allocations.logs(v1.LogsRequest()))
    assert len(gateway.requests) == 1
