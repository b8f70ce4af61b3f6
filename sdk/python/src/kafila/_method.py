"""RPCs as values, and whether they may be sent again."""

from __future__ import annotations

import enum
import uuid
from typing import Generic, TypeVar

from google.protobuf.message import Message

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)


class Repeat(enum.Enum):
    """The rule for repeating a request without an answer."""

    SAFE = "safe"
    """Reads, writes with a request id, and writes that set a state."""
    ONCE = "once"
    """Everything else: the first attempt may have taken effect."""


_READS = ("Get", "List", "Explain", "Plan", "Validate")

SETTING = frozenset(
    {
        "/kafila.v1.Agent/SetLogLevel",
        "/kafila.v1.CsiVolumes/Create",
        "/kafila.v1.CsiVolumes/Detach",
        "/kafila.v1.CsiVolumes/Register",
        "/kafila.v1.Jobs/SetStable",
        "/kafila.v1.Jobs/TagVersion",
        "/kafila.v1.Namespaces/Upsert",
        "/kafila.v1.NodePools/Upsert",
        "/kafila.v1.Nodes/ApplyMeta",
        "/kafila.v1.Nodes/Refresh",
        "/kafila.v1.Nodes/Revoke",
        "/kafila.v1.Nodes/UpdateDrain",
        "/kafila.v1.Nodes/UpdateEligibility",
        "/kafila.v1.Operator/CompactEtcd",
        "/kafila.v1.Operator/DisarmEtcd",
        "/kafila.v1.Operator/SetSchedulerConfiguration",
        "/kafila.v1.Volumes/Register",
    }
)
"""Writes that set a state: a second one changes nothing. With a `check_index` they are not repeated,
because the first attempt changes the index."""

PROBE = "/kafila.v1.Operator/GetVersion"
"""A call without effects, whose request is empty."""

_REQUEST_ID_FIELDS = ("request_id", "idempotency_token")


class Method(Generic[Req, Res]):
    """One RPC of the API."""

    def __init__(
        self, path: str, request: type[Req], response: type[Res], *, has_request_id: bool
    ) -> None:
        self.path = path
        """As on the wire: `/kafila.v1.Jobs/Get`."""
        self.request = request
        self.response = response
        self.has_request_id = has_request_id

    def repeat(self, request: Req) -> Repeat:
        """Tells whether `request` may be sent again."""
        name = self.path.rsplit("/", 1)[1]
        if self.has_request_id or name.startswith(_READS):
            return Repeat.SAFE
        # Present even as 0: "the object does not exist".
        is_checked = any(field.name == "check_index" for field, _ in request.ListFields())
        return Repeat.SAFE if self.path in SETTING and not is_checked else Repeat.ONCE

    def prepared(self, request: Req) -> Req:
        """Returns `request` with a new request id if it takes one and has none."""
        if not self.has_request_id:
            return request
        fields = request.DESCRIPTOR.fields_by_name
        field = next(field for field in _REQUEST_ID_FIELDS if field in fields)
        if getattr(request, field):
            return request
        prepared = self.request()
        prepared.CopyFrom(request)
        setattr(prepared, field, str(uuid.uuid4()))
        return prepared
