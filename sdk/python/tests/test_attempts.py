"""Retries of one call, step by step."""

from __future__ import annotations

import pytest

from kafila import v1
from kafila._attempts import Attempts, Backoff, Gateways
from kafila._config import Config, RetryPolicy, parse_address
from kafila._method import SETTING, Repeat
from kafila.errors import (
    Aborted,
    DeadlineExceeded,
    KafilaError,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from kafila.v1 import services

CONFIG = Config(
    addresses=(parse_address("a"), parse_address("b")),
    timeout=30.0,
    attempt_timeout=10.0,
    retry=RetryPolicy(attempts=4, first_delay=0.1, max_delay=5.0),
)


def attempts(repeat: Repeat, timeout: float | None = None, wait: float = 0.0) -> Attempts:
    return Attempts(CONFIG, repeat, timeout, wait, 100.0, lambda: 1.0)


@pytest.mark.parametrize(
    ("repeat", "error", "is_repeated"),
    [
        (Repeat.SAFE, Unavailable("away"), True),
        (Repeat.SAFE, DeadlineExceeded("silent"), True),
        (Repeat.SAFE, NotFound("no such job"), False),
        (Repeat.SAFE, Aborted("outdated"), False),
        (Repeat.SAFE, ResourceExhausted("busy", retry_after=1.0), True),
        (Repeat.SAFE, ResourceExhausted("too large"), False),
        # The first attempt may have taken effect.
        (Repeat.ONCE, Unavailable("away"), False),
        (Repeat.ONCE, Unavailable("in doubt", retry_after=1.0), False),
        (Repeat.ONCE, DeadlineExceeded("silent"), False),
        # It has not.
        (Repeat.ONCE, Unavailable("no connection", was_sent=False), True),
        (Repeat.ONCE, ResourceExhausted("busy", retry_after=1.0), True),
    ],
)
def test_only_what_is_safe_is_repeated(
    repeat: Repeat, error: KafilaError, is_repeated: bool
) -> None:
    assert (attempts(repeat).after(error, 100.0) is not None) == is_repeated


def test_attempts_are_bounded_in_number_and_time() -> None:
    call = attempts(Repeat.SAFE)
    delays = [call.after(Unavailable("away"), 100.0) for _ in range(4)]
    assert delays == [0.1, 0.2, 0.4, None]
    assert attempts(Repeat.SAFE).after(Unavailable("away"), 129.95) is None


def test_advice_is_the_least_delay_and_bounded() -> None:
    delay = attempts(Repeat.SAFE).after(ResourceExhausted("busy", retry_after=2.0), 100.0)
    assert delay is not None and 2.0 <= delay <= 2.5
    delay = attempts(Repeat.SAFE).after(ResourceExhausted("busy", retry_after=600.0), 100.0)
    assert delay is not None and 5.0 <= delay <= 6.25


def test_one_attempt_leaves_time_for_another_gateway() -> None:
    assert attempts(Repeat.SAFE).timeout(100.0) == 10.0
    assert attempts(Repeat.ONCE).timeout(100.0) == 30.0
    assert attempts(Repeat.SAFE).timeout(125.0) == 5.0
    assert attempts(Repeat.SAFE, wait=60.0).timeout(100.0) == 70.0
    assert attempts(Repeat.SAFE, timeout=1.0).timeout(100.0) == 1.0


def test_delays_are_drawn_from_their_upper_half() -> None:
    policy = RetryPolicy(first_delay=1.0, max_delay=2.0)
    low, high = Backoff(policy, lambda: 0.0), Backoff(policy, lambda: 1.0)
    assert [low.delay() for _ in range(3)] == [0.5, 1.0, 1.0]
    assert [high.delay() for _ in range(3)] == [1.0, 2.0, 2.0]


def test_a_failed_gateway_is_left_once() -> None:
    first, second = CONFIG.addresses
    gateways = Gateways(CONFIG.addresses)
    # Two calls fail at the same gateway.
    gateways.failed(first)
    gateways.failed(first)
    assert gateways.current() == second
    gateways.failed(second)
    assert gateways.current() == first


def test_the_api_tells_what_may_be_repeated() -> None:
    jobs, namespaces = services.Jobs, services.Namespaces
    assert jobs._get_method.repeat(v1.GetJobRequest()) is Repeat.SAFE
    assert jobs._plan_method.repeat(v1.PlanJobRequest()) is Repeat.SAFE
    assert jobs._register_method.repeat(v1.RegisterJobRequest()) is Repeat.SAFE
    assert jobs._scale_method.repeat(v1.ScaleJobRequest()) is Repeat.ONCE
    assert jobs._force_periodic_method.repeat(v1.ForcePeriodicJobRequest()) is Repeat.ONCE
    upsert = namespaces._upsert_method
    assert upsert.repeat(v1.UpsertNamespaceRequest()) is Repeat.SAFE
    assert upsert.repeat(v1.UpsertNamespaceRequest(check_index=0)) is Repeat.ONCE


def test_every_setting_write_exists() -> None:
    from fake import METHODS

    assert SETTING <= set(METHODS)


def test_requests_get_an_id_of_their_own() -> None:
    method = services.Jobs._register_method
    request = v1.RegisterJobRequest()
    first, second = method.prepared(request), method.prepared(request)
    assert len(first.request_id) == 36
    assert first.request_id != second.request_id
    assert not request.request_id, "the caller's message stays as it is"
    assert method.prepared(v1.RegisterJobRequest(request_id="mine")).request_id == "mine"
    dispatch = services.Jobs._dispatch_method.prepared(v1.DispatchJobRequest())
    assert len(dispatch.idempotency_token) == 36
