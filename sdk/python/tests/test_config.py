"""Addresses and settings from the environment."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from kafila import AsyncClient, Client, Tls
from kafila._config import Config, configure, parse_address


def config(addresses: Any = None, environment: dict[str, str] | None = None) -> Config:
    return configure(addresses, None, None, 30.0, 10.0, None, (), environment or {})


@pytest.mark.parametrize(
    ("text", "target", "is_tls"),
    [
        ("10.0.0.1", "10.0.0.1:4646", False),
        ("10.0.0.1:80", "10.0.0.1:80", False),
        ("http://10.0.0.1:4646/", "10.0.0.1:4646", False),
        ("http://proxy", "proxy:80", False),
        ("https://gateway", "gateway:443", True),
        ("https://gateway:4646", "gateway:4646", True),
        ("[::1]", "[::1]:4646", False),
        ("[::1]:80", "[::1]:80", False),
    ],
)
def test_addresses(text: str, target: str, is_tls: bool) -> None:
    assert parse_address(text) == (target, is_tls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://a",
        "http://",
        "http://a/b",
        "a b",
        "a:b",
        "a:",
        "a:0",
        "https://a:65536",
        "[::1]:x",
    ],
)
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="gateway address"):
        parse_address(text)


def test_arguments_win_over_the_environment() -> None:
    environment = {"KAFILA_ADDR": "http://k:1, https://l:2", "NOMAD_ADDR": "http://n:3"}
    assert [str(found) for found in config(None, environment).addresses] == [
        "http://k:1",
        "https://l:2",
    ]
    assert [str(found) for found in config(["a", "b:1"], environment).addresses] == [
        "http://a:4646",
        "http://b:1",
    ]
    del environment["KAFILA_ADDR"]
    assert str(config(None, environment).addresses[0]) == "http://n:3"
    assert str(config().addresses[0]) == "http://127.0.0.1:4646"
    assert config(None, {"KAFILA_NAMESPACE": "dev"}).namespace == "dev"
    with pytest.raises(ValueError, match="no gateway"):
        config([])


def test_tls_files_come_from_the_environment() -> None:
    environment = {
        "KAFILA_CACERT": "ca.pem",
        "KAFILA_CLIENT_CERT": "me.pem",
        "KAFILA_CLIENT_KEY": "me.key",
        "KAFILA_TLS_SERVER_NAME": "gateway.global.kafila",
    }
    found = config(None, environment)
    assert found.tls == Tls("ca.pem", "me.pem", "me.key", "gateway.global.kafila")
    assert ("grpc.ssl_target_name_override", "gateway.global.kafila") in found.channel_options()
    with pytest.raises(ValueError, match="needs both"):
        Tls(cert_file="me.pem").credentials()


def test_both_clients_have_the_same_methods() -> None:
    def signatures(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("__a") and name not in ("__enter__", "__exit__")
        }

    assert signatures(Client) == signatures(AsyncClient)
