"""Jobs from dicts and JSON, in either of two forms.

- The fields of `kafila.v1.Job`: `{"id": "web", "task_groups": [{"name": "server", …}]}`, with
  durations as `"30s"`.
- The JSON of the HTTP API, which `kafila job inspect` prints: `{"Job": {"ID": "web", "TaskGroups":
  [{"Name": "server", …}]}}` or the job alone, with durations in nanoseconds.

A key that begins with a capital letter marks the second form.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kafila.v1 import job_spec_pb2, names_pb2

JobSpec = job_spec_pb2.Job | Mapping[str, Any] | str | bytes
"""A job: a message, a dict, or JSON text."""


class SpecError(ValueError):
    """A job that cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        """Path of the key, such as `TaskGroups[0].Count`. Empty: the whole job."""
        self.problem = problem


def job_from(spec: JobSpec) -> job_spec_pb2.Job:
    """Returns the job of a message, a dict or JSON text.

    Values and defaults are checked by the gateway, keys and types here.

    Raises:
        SpecError: a key is unknown, or a value has the wrong type.
    """
    if isinstance(spec, job_spec_pb2.Job):
        return spec
    if isinstance(spec, (str, bytes)):
        try:
            spec = json.loads(spec)
        except ValueError as error:
            raise SpecError("", f"not JSON: {error}") from error
    if not isinstance(spec, Mapping):
        raise SpecError("", f"a job is an object, not {type(spec).__name__}")
    job = job_spec_pb2.Job()
    inner = next((value for key, value in spec.items() if key.lower() == "job"), None)
    if isinstance(inner, Mapping):
        spec = inner
    if any(key[:1].isupper() for key in spec):
        _fill(job, spec, "")
    else:
        try:
            json_format.ParseDict(dict(spec), job)
        except json_format.ParseError as error:
            raise SpecError("", str(error)) from error
    return job


def _fill(message: Message, values: Any, path: str) -> None:
    """Fills a message from an object of the HTTP API."""
    if not isinstance(values, Mapping):
        raise SpecError(path, f"want an object, not {type(values).__name__}")
    fields = {_json_name(field).lower(): field for field in message.DESCRIPTOR.fields}
    for key, value in values.items():
        at = f"{path}.{key}" if path else str(key)
        field = fields.get(str(key).lower())
        if field is None:
            # Nomad writes every field of a job, empty ones too.
            if value in (None, "", 0, False, [], {}):
                continue
            raise SpecError(at, "unknown key")
        if value is not None:
            _set(message, field, value, at)


# Descriptors are of one of two classes, by the implementation of protobuf: hence `Any`.
def _set(message: Message, field: Any, value: Any, path: str) -> None:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        if not isinstance(value, Mapping):
            raise SpecError(path, f"want an object, not {type(value).__name__}")
        container = getattr(message, field.name)
        for key, item in value.items():
            if entry.fields_by_name["value"].message_type is not None:
                _fill(container[key], item, f"{path}[{key}]")
            else:
                _assign(path, container.__setitem__, key, item)
    elif field.is_repeated:
        if not isinstance(value, (list, tuple)):
            raise SpecError(path, f"want a list, not {type(value).__name__}")
        container = getattr(message, field.name)
        for position, item in enumerate(value):
            if entry is not None:
                _fill(container.add(), item, f"{path}[{position}]")
            else:
                _assign(f"{path}[{position}]", container.append, item)
    elif entry is not None:
        _set_message(getattr(message, field.name), entry, value, path)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        _assign(path, setattr, message, field.name, _decoded(value, path))
    else:
        _assign(path, setattr, message, field.name, value)


def _set_message(target: Any, kind: Any, value: Any, path: str) -> None:
    if kind.full_name == "google.protobuf.Duration":
        if isinstance(value, bool) or not isinstance(value, int):
            raise SpecError(path, "want a duration in nanoseconds, as a whole number")
        target.FromNanoseconds(value)
        target.SetInParent()
    elif kind.full_name == "google.protobuf.Struct":
        try:
            json_format.ParseDict(value, target)
        except (json_format.ParseError, AttributeError) as error:
            raise SpecError(path, f"want an object of JSON values: {error}") from error
    else:
        _fill(target, value, path)
    target.SetInParent()


def _decoded(value: Any, path: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise SpecError(path, "want base64") from error


def _assign(path: str, assign: Any, *arguments: Any) -> None:
    try:
        assign(*arguments)
    except (TypeError, ValueError) as error:
        raise SpecError(path, str(error)) from error


_CAPITALS = frozenset({"cpu", "id", "ttl"})
_CACHE: dict[str, str] = {}


def _json_name(field: Any) -> str:
    """Returns a field's key in the HTTP API, by the rules of names.proto."""
    name = _CACHE.get(field.full_name)
    if name is None:
        name = str(field.GetOptions().Extensions[names_pb2.json]) or _derived(field.name)
        _CACHE[field.full_name] = name
    return name


def _derived(name: str) -> str:
    unit = "MB" if name.endswith("_mib") else ""
    for suffix in ("_mib", "_mhz", "_ns"):
        if name.endswith(suffix):
            name = name[: -len(suffix)]
            break
    words = name.split("_")
    return (
        "".join(word.upper() if word in _CAPITALS else word.capitalize() for word in words) + unit
    )
