"""Client of Kafila, a workload orchestrator.

`Client` blocks, `AsyncClient` is for asyncio; both have the same methods. `kafila.v1` has the
messages of the API, `kafila.errors` its errors.
"""

from kafila import errors, v1
from kafila._config import RetryPolicy, Tls
from kafila._waiting import JobRun
from kafila.aio import AsyncClient
from kafila.client import Client
from kafila.errors import KafilaError
from kafila.spec import JobSpec, SpecError, job_from

__all__ = [
    "AsyncClient",
    "Client",
    "JobRun",
    "JobSpec",
    "KafilaError",
    "RetryPolicy",
    "SpecError",
    "Tls",
    "errors",
    "job_from",
    "v1",
]
