"""TLS: the gateway's name, and the client's certificate. Settings come from the environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from driver import Driver
from fake import FakeGateway

from kafila import RetryPolicy, Tls, errors, v1

NAME = "gateway.global.kafila"
ONCE = RetryPolicy(attempts=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure_gateway(authority: trustme.CA) -> Iterator[FakeGateway]:
    own = authority.issue_cert(NAME)
    credentials = grpc.ssl_server_credentials(
        [(own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes())],
        root_certificates=authority.cert_pem.bytes(),
        require_client_auth=True,
    )
    gateway = FakeGateway(credentials)
    gateway.on("Operator/GetVersion", lambda *_: v1.GetVersionResponse(version="1"))
    yield gateway
    gateway.stop()


@pytest.fixture
def environment(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    own = authority.issue_cert("operator@example.org")
    files: dict[str, Any] = {
        "KAFILA_CACERT": authority.cert_pem,
        "KAFILA_CLIENT_CERT": own.cert_chain_pems[0],
        "KAFILA_CLIENT_KEY": own.private_key_pem,
    }
    for name, pem in files.items():
        path = tmp_path / name
        pem.write_to_path(str(path))
        monkeypatch.setenv(name, str(path))
    monkeypatch.setenv("KAFILA_TLS_SERVER_NAME", NAME)
    return {name: str(tmp_path / name) for name in files}


def version(driver: Driver, client: Any) -> str:
    return str(driver.call(lambda: client.operator.get_version(v1.GetVersionRequest())).version)


def test_the_environment_suffices(
    driver: Driver,
    secure_gateway: FakeGateway,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFILA_ADDR", secure_gateway.address)
    assert version(driver, driver.client()) == "1"


def test_another_name_is_refused(
    driver: Driver, secure_gateway: FakeGateway, environment: dict[str, str]
) -> None:
    for name in (None, "gateway.elsewhere.kafila"):
        tls = Tls(
            environment["KAFILA_CACERT"],
            environment["KAFILA_CLIENT_CERT"],
            environment["KAFILA_CLIENT_KEY"],
            name,
        )
        client = driver.client(secure_gateway.address, tls=tls, retry=ONCE)
        with pytest.raises(errors.Unavailable):
            version(driver, client)


def test_a_client_without_a_certificate_is_refused(
    driver: Driver, secure_gateway: FakeGateway, environment: dict[str, str]
) -> None:
    tls = Tls(ca_file=environment["KAFILA_CACERT"], server_name=NAME)
    client = driver.client(secure_gateway.address, tls=tls, retry=ONCE)
    with pytest.raises(errors.Unavailable):
        version(driver, client)
