"""Jobs from dicts and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafila import SpecError, job_from, v1

MESSAGE_FORM = {
    "id": "web",
    "priority": 60,
    "meta": {"owner": "sre"},
    "task_groups": [
        {
            "name": "server",
            "count": 2,
            "update": {"min_healthy_time": "1.5s"},
            "volumes": {"data": {"source": "disk"}},
            "tasks": [
                {
                    "name": "http",
                    "driver": "raw_exec",
                    "config": {"command": "/bin/true", "args": ["-x", 1]},
                    "resources": {"cpu_mhz": 50, "memory_mib": 32},
                }
            ],
        }
    ],
}

API_FORM = {
    "ID": "web",
    "Priority": 60,
    "Meta": {"owner": "sre"},
    "ConsulToken": "",
    "Affinities": None,
    "TaskGroups": [
        {
            "Name": "server",
            "Count": 2,
            "Update": {"MinHealthyTime": 1_500_000_000},
            "Volumes": {"data": {"Source": "disk"}},
            "Tasks": [
                {
                    "Name": "http",
                    "Driver": "raw_exec",
                    "Config": {"command": "/bin/true", "args": ["-x", 1]},
                    "Resources": {"CPU": 50, "MemoryMB": 32},
                }
            ],
        }
    ],
}


@pytest.mark.parametrize(
    "spec",
    [API_FORM, {"Job": API_FORM}, json.dumps({"Job": API_FORM}), json.dumps(MESSAGE_FORM).encode()],
)
def test_all_forms_are_the_same_job(spec: Any) -> None:
    assert job_from(spec) == job_from(MESSAGE_FORM)


def test_a_message_is_taken_as_it_is() -> None:
    job = v1.Job(id="web")
    assert job_from(job) is job


def test_bytes_are_base64() -> None:
    assert job_from({"ID": "x", "Payload": "aGVsbG8="}).payload == b"hello"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"ID": "x", "TaskGroups": [{"Name": "g", "Cuont": 2}]}, "TaskGroups[0].Cuont"),
        ({"ID": "x", "TaskGroups": [{"Count": "two"}]}, "TaskGroups[0].Count"),
        ({"ID": "x", "TaskGroups": {}}, "TaskGroups"),
        ({"ID": "x", "TaskGroups": [7]}, "TaskGroups[0]"),
        ({"ID": "x", "TaskGroups": [{"ShutdownDelay": "5s"}]}, "TaskGroups[0].ShutdownDelay"),
        ({"ID": "x", "TaskGroups": [{"Volumes": {"v": 1}}]}, "TaskGroups[0].Volumes[v]"),
        ({"ID": "x", "Meta": {"a": 1}}, "Meta"),
        ({"ID": "x", "Datacenters": [1]}, "Datacenters[0]"),
        ({"ID": "x", "Payload": "?"}, "Payload"),
        ({"ID": "x", "Update": 3}, "Update"),
        ({"id": "x", "cuont": 2}, ""),
        ("{", ""),
        ("[]", ""),
    ],
)
def test_errors_name_the_place(spec: Any, path: str) -> None:
    with pytest.raises(SpecError) as raised:
        job_from(spec)
    assert raised.value.path == path
