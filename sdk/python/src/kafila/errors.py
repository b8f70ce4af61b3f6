"""Errors of calls: one exception for each gRPC code, with the particulars that the gateway sends."""

from __future__ import annotations

from typing import Any, NamedTuple

import grpc

from kafila.v1 import common_pb2, deployment_pb2, evaluation_pb2

DETAIL_KEY = "kafila-error-bin"
"""Metadata key of the encoded `ErrorDetail`."""


class Violation(NamedTuple):
    """One invalid field of a request."""

    field: str
    """Path of the field, such as `group["web"].count`."""
    message: str
    """The problem, and the values that are accepted."""


class KafilaError(Exception):
    """A call that failed. Its subclasses tell the gRPC code."""

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        violations: list[Violation] | None = None,
        retry_after: float | None = None,
        address: str = "",
        method: str = "",
        was_sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.violations: list[Violation] = violations or []
        """The invalid fields of the request."""
        self.retry_after = retry_after
        """Seconds to wait before a retry; None: no advice."""
        self.address = address
        """The gateway that was called."""
        self.method = method
        """The RPC, such as `/kafila.v1.Jobs/Get`."""
        self.was_sent = was_sent
        """False: no gateway received the request, so it had no effect."""

    def __str__(self) -> str:
        where = f" ({self.method} at {self.address})" if self.method else ""
        return f"{self.code.name}: {self.message}{where}"


class InvalidArgument(KafilaError):
    """The request is invalid; `violations` lists the fields."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(KafilaError):
    """The object does not exist."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(KafilaError):
    """The object exists already."""

    code = grpc.StatusCode.ALREADY_EXISTS


class Aborted(KafilaError):
    """The stored object is not the expected one (`check_index`), or other writes keep changing it."""

    code = grpc.StatusCode.ABORTED


class PermissionDenied(KafilaError):
    """The caller is known and not allowed to do this."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unauthenticated(KafilaError):
    """The caller is not known."""

    code = grpc.StatusCode.UNAUTHENTICATED


class FailedPrecondition(KafilaError):
    """The state of the object does not allow the request."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class ResourceExhausted(KafilaError):
    """The cluster is overloaded, or a limit is reached. Nothing was done."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class OutOfRange(KafilaError):
    """The index of an event stream is compacted or lies in the future: read the state anew."""

    code = grpc.StatusCode.OUT_OF_RANGE


class Unimplemented(KafilaError):
    """The gateway is older than this client, or the server is not a gateway."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Unavailable(KafilaError):
    """No gateway could answer. A write may have taken effect, unless `was_sent` is false."""

    code = grpc.StatusCode.UNAVAILABLE


class DeadlineExceeded(KafilaError):
    """The timeout ended. A write may have taken effect."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Cancelled(KafilaError):
    """The call was cancelled, for example by closing the client."""

    code = grpc.StatusCode.CANCELLED


class Internal(KafilaError):
    """A defect of the server or of the connection."""

    code = grpc.StatusCode.INTERNAL


class EvaluationFailed(FailedPrecondition):
    """The scheduler gave the evaluation up."""

    def __init__(self, evaluation: evaluation_pb2.Evaluation) -> None:
        reason = evaluation.status_description or "no reason given"
        super().__init__(f"evaluation {evaluation.id} {evaluation.status}: {reason}")
        self.evaluation = evaluation


class DeploymentFailed(FailedPrecondition):
    """The deployment ended as failed or cancelled."""

    def __init__(self, deployment: deployment_pb2.Deployment) -> None:
        reason = deployment.status_description or "no reason given"
        super().__init__(f"deployment {deployment.id} {deployment.status}: {reason}")
        self.deployment = deployment


_BY_CODE: dict[grpc.StatusCode, type[KafilaError]] = {
    error.code: error
    for error in (
        InvalidArgument,
        NotFound,
        AlreadyExists,
        Aborted,
        PermissionDenied,
        Unauthenticated,
        FailedPrecondition,
        ResourceExhausted,
        OutOfRange,
        Unimplemented,
        Unavailable,
        DeadlineExceeded,
        Cancelled,
        Internal,
    )
}


def from_rpc(error: grpc.RpcError, method: str, address: str) -> KafilaError:
    """Returns the exception of a gRPC error, with the details of its trailing metadata."""
    # grpc raises its calls as errors; their common base class declares none of these methods.
    call: Any = error
    code: grpc.StatusCode = call.code()
    text: str = call.details() or ""
    detail = common_pb2.ErrorDetail()
    for key, value in call.trailing_metadata() or ():
        if key == DETAIL_KEY:
            try:
                detail.ParseFromString(value)
            except ValueError:
                detail = common_pb2.ErrorDetail()
    kind = _BY_CODE.get(code, KafilaError)
    return kind(
        text,
        violations=[Violation(found.field, found.message) for found in detail.violations],
        retry_after=detail.retry_after_ms / 1000 if detail.retry_after_ms else None,
        address=address,
        method=method,
    )
