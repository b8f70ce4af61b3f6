"""Waiting for evaluations and deployments: when they have ended, and how. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafila.errors import DeadlineExceeded, DeploymentFailed, EvaluationFailed
from kafila.v1 import deployment_pb2, evaluation_pb2, job_pb2

_EVALUATION_ENDED = frozenset({"complete", "failed", "canceled"})
_DEPLOYMENT_ENDED = frozenset({"successful", "failed", "cancelled"})

POLL = 30.0
"""Longest seconds of one blocking read."""


def evaluation_ended(evaluation: evaluation_pb2.Evaluation) -> bool:
    """Tells whether the evaluation has ended.

    Raises:
        EvaluationFailed: it failed.
    """
    if evaluation.status == "failed":
        raise EvaluationFailed(evaluation)
    return evaluation.status in _EVALUATION_ENDED


def deployment_ended(deployment: deployment_pb2.Deployment) -> bool:
    """Tells whether the deployment has ended successfully.

    Raises:
        DeploymentFailed: it failed or was cancelled.
    """
    if deployment.status in ("failed", "cancelled"):
        raise DeploymentFailed(deployment)
    return deployment.status in _DEPLOYMENT_ENDED


def deployment_of(
    registration: job_pb2.RegisterJobResponse, deployments: Iterable[deployment_pb2.Deployment]
) -> deployment_pb2.Deployment | None:
    """Returns the deployment of a registered version; None: it has none."""
    index = registration.job_modify_index
    return next((found for found in deployments if found.job_modify_index == index), None)


def left(deadline: float, now: float, what: str) -> float:
    """Returns the seconds for the next blocking read.

    Raises:
        DeadlineExceeded: none are left.
    """
    if now >= deadline:
        raise DeadlineExceeded(f"{what} has not ended in time")
    return min(deadline - now, POLL)


@dataclass(frozen=True)
class JobRun:
    """Outcome of `run_job`."""

    registration: job_pb2.RegisterJobResponse
    evaluation: evaluation_pb2.Evaluation | None
    """None: the job is periodic or parameterized. `failed_task_groups` tells what has no place."""
    deployment: deployment_pb2.Deployment | None
    """None: the job has no deployment, such as a batch job."""
