"""Faults of gateways and connections, with scripted gateways; for both clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from driver import Driver
from fake import FakeGateway, fail, free_port, in_turn

from kafila import RetryPolicy, errors, v1

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
QUICK = RetryPolicy(first_delay=0.01, max_delay=0.2)
GET = v1.GetJobRequest(job_id="web")
FOUND = v1.GetJobResponse(job=v1.Job(id="web"))


def answer(message: Any) -> Callable[..., Any]:
    return lambda request, context: message


def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


def test_a_gateway_that_is_down_is_skipped(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Jobs/Get", answer(FOUND))
    client = driver.client(nowhere(), gateway.address, retry=QUICK)
    assert driver.call(lambda: client.jobs.get(GET)) == FOUND
    begun = time.monotonic()
    driver.call(lambda: client.jobs.get(GET))
    assert time.monotonic() - begun < 1, "the client stays with the gateway that works"


def test_no_gateway_at_all_is_unavailable(driver: Driver) -> None:
    client = driver.client(nowhere(), nowhere(), retry=QUICK)
    with pytest.raises(errors.Unavailable):
        driver.call(lambda: client.jobs.get(GET))


def test_reads_are_repeated_and_refusals_are_not(driver: Driver, gateway: FakeGateway) -> None:
    client = driver.client(gateway.address, retry=QUICK)
    gateway.on("Jobs/Get", in_turn(fail(UNAVAILABLE), fail(UNAVAILABLE), answer(FOUND)))
    assert driver.call(lambda: client.jobs.get(GET)) == FOUND
    assert len(gateway.requests) == 3
    gateway.on("Jobs/Get", fail(grpc.StatusCode.NOT_FOUND, "no job"))
    with pytest.raises(errors.NotFound, match="no job") as raised:
        driver.call(lambda: client.jobs.get(GET))
    assert len(gateway.requests) == 4
    assert raised.value.address == gateway.address
    assert raised.value.method == "/kafila.v1.Jobs/Get"


def test_a_write_is_repeated_with_its_request_id(
    driver: Driver, gateway: FakeGateway, other_gateway: FakeGateway
) -> None:
    registered = answer(v1.RegisterJobResponse(eval_id="e"))
    gateway.on("Jobs/Register", fail(UNAVAILABLE))
    other_gateway.on("Jobs/Register", in_turn(fail(UNAVAILABLE), registered))
    client = driver.client(gateway.address, other_gateway.address, retry=QUICK)
    for _ in range(2):
        assert driver.call(lambda: client.register_job({"id": "web"})).eval_id == "e"
    # Both gateways fail once; the second call begins at the first gateway.
    ids = [request.request_id for request in gateway.requests + other_gateway.requests]
    assert len(ids) == 5
    assert len(set(ids)) == 2 and all(len(id) == 36 for id in ids)
    assert gateway.requests[0] == other_gateway.requests[0]


def test_other_writes_are_sent_once(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Jobs/Scale", fail(UNAVAILABLE))
    client = driver.client(gateway.address, retry=QUICK)
    with pytest.raises(errors.Unavailable) as raised:
        driver.call(lambda: client.jobs.scale(v1.ScaleJobRequest(job_id="web")))
    assert len(gateway.requests) == 1
    assert raised.value.was_sent


def test_other_writes_fail_over_while_nothing_is_sent(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Jobs/Scale", answer(v1.ScaleJobResponse(index=7)))
    client = driver.client(nowhere(), gateway.address, retry=QUICK)
    begun = time.monotonic()
    assert driver.call(lambda: client.jobs.scale(v1.ScaleJobRequest())).index == 7
    assert time.monotonic() - begun < 3, "a refused connection is noticed at once"
    alone = driver.client(nowhere(), retry=QUICK)
    with pytest.raises(errors.Unavailable) as raised:
        driver.call(lambda: alone.jobs.scale(v1.ScaleJobRequest()))
    assert not raised.value.was_sent


def test_advice_to_wait_is_followed(driver: Driver, gateway: FakeGateway) -> None:
    busy = fail(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", v1.ErrorDetail(retry_after_ms=300))
    gateway.on("Jobs/Scale", in_turn(busy, answer(v1.ScaleJobResponse(index=7))))
    client = driver.client(gateway.address, retry=RetryPolicy(first_delay=0.01, max_delay=1.0))
    begun = time.monotonic()
    assert driver.call(lambda: client.jobs.scale(v1.ScaleJobRequest())).index == 7
    assert 0.3 <= time.monotonic() - begun < 2


def test_invalid_fields_are_listed(driver: Driver, gateway: FakeGateway) -> None:
    detail = v1.ErrorDetail(
        violations=[v1.FieldViolation(field="priority", message="want 1 to 100")]
    )
    gateway.on("Jobs/Register", fail(grpc.StatusCode.INVALID_ARGUMENT, "1 error", detail))
    client = driver.client(gateway.address)
    with pytest.raises(errors.InvalidArgument, match="1 error") as raised:
        driver.call(lambda: client.register_job({"id": "web"}))
    assert raised.value.violations == [errors.Violation("priority", "want 1 to 100")]


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0] != 0])
def test_every_code_has_an_exception(code: grpc.StatusCode, gateway: FakeGateway) -> None:
    driver = Driver("sync")
    gateway.on("Jobs/Scale", fail(code))
    client = driver.client(gateway.address, retry=QUICK)
    with pytest.raises(errors.KafilaError) as raised:
        driver.call(lambda: client.jobs.scale(v1.ScaleJobRequest()))
    # DATA_LOSS and UNKNOWN have no class of their own.
    others = (grpc.StatusCode.DATA_LOSS, grpc.StatusCode.UNKNOWN)
    assert raised.value.code is (grpc.StatusCode.UNKNOWN if code in others else code)
    driver.close()


def hang(request: Any, context: grpc.ServicerContext) -> Any:
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(10)
    return FOUND


def test_a_silent_gateway_ends_with_the_timeout(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Jobs/Get", hang)
    client = driver.client(gateway.address, timeout=0.5, retry=QUICK)
    begun = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        driver.call(lambda: client.jobs.get(GET))
    assert 0.4 < time.monotonic() - begun < 3


def test_a_read_leaves_a_silent_gateway(
    driver: Driver, gateway: FakeGateway, other_gateway: FakeGateway
) -> None:
    gateway.on("Jobs/Get", hang)
    other_gateway.on("Jobs/Get", answer(FOUND))
    client = driver.client(gateway.address, other_gateway.address, attempt_timeout=0.3, retry=QUICK)
    assert driver.call(lambda: client.jobs.get(GET)) == FOUND


def test_metadata_goes_with_every_call(driver: Driver, gateway: FakeGateway) -> None:
    gateway.on("Jobs/Get", answer(FOUND))
    client = driver.client(gateway.address, metadata=[("x-team", "sre")])
    driver.call(lambda: client.jobs.get(GET))
    assert gateway.metadata[0]["x-team"] == "sre"


def test_pages_are_put_together(driver: Driver, gateway: FakeGateway) -> None:
    def page(request: v1.ListJobsRequest, context: Any) -> v1.ListJobsResponse:
        first = int(request.options.next_token or 0)
        names = [str(number) for number in range(5)][first : first + request.options.per_page]
        response = v1.ListJobsResponse(jobs=[v1.JobStub(id=name) for name in names])
        if first + len(names) < 5:
            response.meta.next_token = str(first + len(names))
        return response

    gateway.on("Jobs/List", page)
    client = driver.client(gateway.address)
    request = v1.ListJobsRequest(options=v1.QueryOptions(per_page=2, namespace="dev"))
    jobs = driver.take(lambda: client.jobs.list_iter(request))
    assert [job.id for job in jobs] == ["0", "1", "2", "3", "4"]
    assert len(gateway.requests) == 3
    assert {found.options.namespace for found in gateway.requests} == {"dev"}
    driver.take(lambda: client.jobs.list_iter(v1.ListJobsRequest()))
    assert gateway.requests[-1].options.per_page == 500


def test_a_watched_read_yields_changes_only(driver: Driver, gateway: FakeGateway) -> None:
    indexes = iter([5, 5, 7, 3, 4])

    def job(request: Any, context: Any) -> v1.GetJobResponse:
        return v1.GetJobResponse(meta=v1.QueryMeta(index=next(indexes)))

    gateway.on("Jobs/Get", job)
    client = driver.client(gateway.address)
    seen = driver.take(lambda: client.jobs.get_watch(GET, wait=9.0), 4)
    # 5 twice is no change; 3 after 7 is a store restored from a backup.
    assert [found.meta.index for found in seen] == [5, 7, 3, 4]
    sent = [(found.options.min_index, found.options.wait.seconds) for found in gateway.requests]
    assert sent == [(0, 0), (5, 9), (5, 9), (7, 9), (3, 9)]


def test_a_blocking_read_may_take_longer_than_the_timeout(
    driver: Driver, gateway: FakeGateway
) -> None:
    def late(request: Any, context: Any) -> v1.GetJobResponse:
        time.sleep(0.6)
        return FOUND

    gateway.on("Jobs/Get", late)
    client = driver.client(gateway.address, timeout=0.3, attempt_timeout=0.3)
    request = v1.GetJobRequest(job_id="web", options=v1.QueryOptions(min_index=5))
    assert driver.call(lambda: client.jobs.get_blocking(request, wait=1.0)) == FOUND
    assert len(gateway.requests) == 1
