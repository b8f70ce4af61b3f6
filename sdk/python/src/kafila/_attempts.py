"""The attempts of one call: timeouts, retries, failover. No I/O; time and chance are arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafila._config import Address, Config, RetryPolicy
from kafila._method import Repeat
from kafila.errors import DeadlineExceeded, KafilaError, ResourceExhausted, Unavailable


class Gateways:
    """The gateway in use, and the next one after a failure. Shared by all calls of a client."""

    def __init__(self, addresses: tuple[Address, ...]) -> None:
        self._addresses = addresses
        self._position = 0
        self._lock = threading.Lock()

    def current(self) -> Address:
        with self._lock:
            return self._addresses[self._position]

    def failed(self, address: Address) -> None:
        """Switches to the next gateway, unless another call has done so."""
        with self._lock:
            if self._addresses[self._position] == address:
                self._position = (self._position + 1) % len(self._addresses)

    def __len__(self) -> int:
        return len(self._addresses)


class Backoff:
    """Growing delays with jitter."""

    def __init__(self, policy: RetryPolicy, random: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._next = policy.first_delay

    def delay(self) -> float:
        """Returns the next delay in seconds, drawn from the upper half of its range."""
        longest = self._next
        self._next = min(longest * 2, self._policy.max_delay)
        return longest * (0.5 + 0.5 * self._random())

    def reset(self) -> None:
        self._next = self._policy.first_delay


def is_failover(error: KafilaError) -> bool:
    """Tells whether another gateway may do better."""
    return isinstance(error, (Unavailable, DeadlineExceeded))


class Attempts:
    """One call: when to try again, and until when."""

    def __init__(
        self,
        config: Config,
        repeat: Repeat,
        timeout: float | None,
        wait: float,
        now: float,
        random: Callable[[], float],
    ) -> None:
        """`wait`: seconds for which the gateway may block, added to the timeouts."""
        self._config = config
        self.repeat = repeat
        self._deadline = now + wait + (config.timeout if timeout is None else timeout)
        self._attempt_timeout = wait + config.attempt_timeout
        self._attempts = 0
        self._backoff = Backoff(config.retry, random)

    def timeout(self, now: float) -> float:
        """Returns the seconds for the next attempt."""
        left = max(self._deadline - now, 0.001)
        if self.repeat is Repeat.ONCE:
            return left
        return min(left, self._attempt_timeout)

    def after(self, error: KafilaError, now: float) -> float | None:
        """Returns the delay before the next attempt in seconds; None: the error is final."""
        self._attempts += 1
        if self._attempts >= self._config.retry.attempts or not self._is_repeatable(error):
            return None
        delay = self._backoff.delay()
        if error.retry_after is not None:
            # No client comes back earlier than advised, and not all at once.
            advised = min(error.retry_after, self._config.retry.max_delay)
            delay = max(delay, advised * (1 + delay / self._config.retry.max_delay / 4))
        return delay if now + delay < self._deadline else None

    def _is_repeatable(self, error: KafilaError) -> bool:
        if isinstance(error, ResourceExhausted):
            # With advice it is a refusal for overload; without, a limit that stays.
            return error.retry_after is not None
        if isinstance(error, Unavailable) and not error.was_sent:
            return True
        return self.repeat is Repeat.SAFE and is_failover(error)
