"""Settings of a client: addresses, TLS, timeouts, retries; from arguments and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import grpc

DEFAULT_ADDRESS = "http://127.0.0.1:4646"
DEFAULT_PORT = 4646
MAX_ANSWER_BYTES = 256 << 20
"""The largest accepted answer: a list of 100,000 allocations with their task events."""


class Address(NamedTuple):
    """A gateway's address."""

    target: str
    """For gRPC, such as `10.0.0.1:4646`."""
    is_tls: bool

    def __str__(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{self.target}"


def parse_address(text: str) -> Address:
    """Parses `http://10.0.0.1:4646`, `https://gateway` or `10.0.0.1`.

    Without a scheme the connection is not encrypted. The default port is 4646 without a scheme, else
    80 or 443.
    """
    text = text.strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    if scheme not in ("http", "https"):
        raise ValueError(f"gateway address {text!r}: want http:// or https://, not {scheme}://")
    host = rest.rstrip("/")
    if not host or "/" in host or any(letter.isspace() for letter in host):
        raise ValueError(f"gateway address {text!r}: want a form such as {DEFAULT_ADDRESS}")
    # Colons inside the brackets of [::1] are no ports.
    _, colon, port = host[host.rfind("]") + 1 :].rpartition(":")
    if not colon:
        default = (443 if scheme == "https" else 80) if separator else DEFAULT_PORT
        host = f"{host}:{default}"
    elif not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"gateway address {text!r}: the port {port!r} is not 1 to 65535")
    return Address(host, scheme == "https")


@dataclass(frozen=True)
class Tls:
    """Files for https addresses."""

    ca_file: str | None = None
    """Certificates of the authorities that sign gateways' certificates (PEM). None: the system's."""
    cert_file: str | None = None
    """The client's certificate (PEM), for gateways that ask for one."""
    key_file: str | None = None
    """The key of `cert_file` (PEM)."""
    server_name: str | None = None
    """The name that the gateway's certificate must carry, such as `gateway.global.kafila`.
    None: the host of the address."""

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads the files."""
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("a client certificate needs both KAFILA_CLIENT_CERT and _KEY")
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self.ca_file),
            private_key=_read(self.key_file),
            certificate_chain=_read(self.cert_file),
        )


def _read(file: str | None) -> bytes | None:
    return None if file is None else Path(file).read_bytes()


@dataclass(frozen=True)
class RetryPolicy:
    """Retries of one call. Delays double and are drawn from the upper half of their range."""

    attempts: int = 8
    """Attempts in all, the first one included. The defaults take 11 s, enough for a restart."""
    first_delay: float = 0.1
    """Seconds."""
    max_delay: float = 5.0
    """Seconds; also bounds the delay that a gateway advises."""


@dataclass(frozen=True)
class Config:
    """Settings of a client."""

    addresses: tuple[Address, ...]
    tls: Tls = field(default_factory=Tls)
    namespace: str = "default"
    """Namespace of the helpers of the client."""
    timeout: float = 30.0
    """Seconds for one call with all its attempts."""
    attempt_timeout: float = 10.0
    """Seconds for one attempt of a call that may be repeated, before another gateway is asked."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    metadata: tuple[tuple[str, str], ...] = ()
    """Sent with every call."""

    def channel_options(self) -> list[tuple[str, str | int]]:
        """Returns the options of gRPC channels."""
        options: list[tuple[str, str | int]] = [
            ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
            ("grpc.max_send_message_length", -1),
            # This package retries: it knows what may be repeated, and other gateways.
            ("grpc.enable_retries", 0),
            # Finds a dead gateway while a stream or a blocking read waits.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 5_000),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        if self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return options


def configure(
    addresses: str | Sequence[str] | None,
    tls: Tls | None,
    namespace: str | None,
    timeout: float,
    attempt_timeout: float,
    retry: RetryPolicy | None,
    metadata: Sequence[tuple[str, str]],
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Returns the settings of a client: arguments win over the environment."""
    env = os.environ if environment is None else environment

    def variable(*names: str) -> str | None:
        return next((env[name] for name in names if env.get(name)), None)

    if addresses is None:
        addresses = variable("KAFILA_ADDR", "NOMAD_ADDR") or DEFAULT_ADDRESS
    texts = addresses.split(",") if isinstance(addresses, str) else list(addresses)
    parsed = tuple(parse_address(text) for text in texts)
    if not parsed:
        raise ValueError("no gateway address given")
    return Config(
        addresses=parsed,
        tls=tls
        or Tls(
            ca_file=variable("KAFILA_CACERT"),
            cert_file=variable("KAFILA_CLIENT_CERT"),
            key_file=variable("KAFILA_CLIENT_KEY"),
            server_name=variable("KAFILA_TLS_SERVER_NAME"),
        ),
        namespace=namespace or variable("KAFILA_NAMESPACE", "NOMAD_NAMESPACE") or "default",
        timeout=timeout,
        attempt_timeout=attempt_timeout,
        retry=retry or RetryPolicy(),
        metadata=tuple(metadata),
    )
