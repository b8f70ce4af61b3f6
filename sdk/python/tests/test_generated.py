"""The installed messages are those of the protos."""

from __future__ import annotations

import sys
from pathlib import Path

import kafila

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT))

import generate  # noqa: E402


def test_the_package_has_the_messages_of_the_protos(tmp_path: Path) -> None:
    generate.generate(generate.proto_root(PROJECT), tmp_path)
    installed = Path(kafila.__file__).parent / "v1"
    for fresh in sorted((tmp_path / "kafila" / "v1").iterdir()):
        present = installed / fresh.name
        assert present.is_file(), f"{fresh.name} is missing: build the package again"
        assert present.read_text() == fresh.read_text(), (
            f"{fresh.name} differs from the protos: build the package again"
        )


def test_every_rpc_is_a_method_of_both_clients() -> None:
    from kafila.v1 import aio_services, services

    count = 0
    for file in list(vars(kafila.v1).values()):
        descriptor = getattr(file, "DESCRIPTOR", None)
        for name, service in getattr(descriptor, "services_by_name", {}).items():
            for method in service.methods:
                if method.client_streaming:
                    # The command's alone.
                    continue
                count += 1
                for module in (services, aio_services):
                    assert callable(getattr(getattr(module, name), generate.snake(method.name)))
    assert count > 50
