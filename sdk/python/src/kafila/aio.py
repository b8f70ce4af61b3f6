"""The asyncio client. The same as `client`, step by step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from types import TracebackType

from kafila import _waiting, v1
from kafila._async import AsyncCaller
from kafila._config import RetryPolicy, Tls, configure
from kafila._follow import SILENCE, EventPosition, LogPosition, Outage
from kafila._waiting import JobRun
from kafila.errors import KafilaError, Unavailable
from kafila.spec import JobSpec, job_from
from kafila.v1 import aio_services


class AsyncClient(aio_services.AllServices):
    """Calls the gateways of a cluster with asyncio. For one event loop; connects with the first call.

    Each service of the API is an attribute (`client.jobs`), each RPC a method of it, which takes the
    request's message: `await client.jobs.get(v1.GetJobRequest(job_id="web"))`. Reads have `…_watch`, lists
    have `…_iter` as well.
    """

    def __init__(
        self,
        addresses: str | Sequence[str] | None = None,
        *,
        tls: Tls | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
        attempt_timeout: float = 10.0,
        retry: RetryPolicy | None = None,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Reads missing settings from the environment.

        Args:
            addresses: gateways such as `http://10.0.0.1:4646`, in the order of preference; a text
                may list several with commas. Default: KAFILA_ADDR, else `http://127.0.0.1:4646`.
            tls: files for https addresses. Default: KAFILA_CACERT, KAFILA_CLIENT_CERT,
                KAFILA_CLIENT_KEY and KAFILA_TLS_SERVER_NAME.
            namespace: namespace of the helpers below. Default: KAFILA_NAMESPACE, else "default".
            timeout: seconds for one call with all its attempts.
            attempt_timeout: seconds for one attempt of a call that may be repeated.
            retry: number and delays of attempts.
            metadata: sent with every call.
        """
        config = configure(addresses, tls, namespace, timeout, attempt_timeout, retry, metadata)
        self.namespace = config.namespace
        self._retry = config.retry
        self._caller = AsyncCaller(config)
        super().__init__(self._caller)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        await self._caller.close()

    async def register_job(
        self,
        spec: JobSpec,
        *,
        check_index: int | None = None,
        request_id: str = "",
        timeout: float | None = None,
    ) -> v1.RegisterJobResponse:
        """Registers a job from a message, a dict or JSON text.

        Args:
            check_index: fails with `Aborted` unless the stored `job_modify_index` is this one; 0:
                unless the job does not exist.
            request_id: makes a repetition by the caller safe too. Default: a new one.
        """
        request = v1.RegisterJobRequest(
            job=self._job(spec), check_index=check_index, request_id=request_id
        )
        return await self.jobs.register(request, timeout=timeout)

    def _job(self, spec: JobSpec) -> v1.Job:
        job = v1.Job()
        job.CopyFrom(job_from(spec))
        if not job.namespace:
            job.namespace = self.namespace
        return job

    async def stop_job(
        self, job_id: str, *, purge: bool = False, namespace: str | None = None
    ) -> v1.DeregisterJobResponse:
        """Stops a job; with `purge`, deletes it as well."""
        request = v1.DeregisterJobRequest(
            namespace=namespace or self.namespace, job_id=job_id, purge=purge
        )
        return await self.jobs.deregister(request)

    async def run_job(self, spec: JobSpec, *, timeout: float = 300.0) -> JobRun:
        """Registers a job and waits for its evaluation and its deployment.

        Raises:
            EvaluationFailed, DeploymentFailed: the outcome.
            DeadlineExceeded: there is none after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        job = self._job(spec)
        registration = await self.register_job(job)
        if not registration.eval_id:
            return JobRun(registration, None, None)
        left = deadline - time.monotonic()
        evaluation = await self.wait_for_evaluation(registration.eval_id, timeout=left)
        options = v1.ListJobDeploymentsRequest(job_id=job.id)
        options.options.namespace = job.namespace
        deployments = (await self.jobs.list_deployments(options)).deployments
        deployment = _waiting.deployment_of(registration, deployments)
        if deployment is not None:
            left = deadline - time.monotonic()
            deployment = await self.wait_for_deployment(deployment.id, timeout=left)
        return JobRun(registration, evaluation, deployment)

    async def wait_for_evaluation(self, eval_id: str, *, timeout: float = 300.0) -> v1.Evaluation:
        """Waits until an evaluation is complete or canceled (superseded by a newer one).

        A complete evaluation may lack places: see its `failed_task_groups`.

        Raises:
            EvaluationFailed: the scheduler gave it up.
            DeadlineExceeded: it has not ended after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        request = v1.GetEvaluationRequest(eval_id=eval_id)
        request.options.namespace = "*"
        while True:
            left = _waiting.left(deadline, time.monotonic(), f"evaluation {eval_id}")
            answer = await self.evaluations.get_blocking(request, wait=left)
            if _waiting.evaluation_ended(answer.evaluation):
                return answer.evaluation
            request.options.min_index = answer.meta.index

    async def wait_for_deployment(
        self, deployment_id: str, *, timeout: float = 300.0
    ) -> v1.Deployment:
        """Waits until a deployment is successful.

        Raises:
            DeploymentFailed: it failed or was cancelled.
            DeadlineExceeded: it has not ended after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        request = v1.GetDeploymentRequest(deployment_id=deployment_id)
        request.options.namespace = "*"
        while True:
            left = _waiting.left(deadline, time.monotonic(), f"deployment {deployment_id}")
            answer = await self.deployments.get_blocking(request, wait=left)
            if _waiting.deployment_ended(answer.deployment):
                return answer.deployment
            request.options.min_index = answer.meta.index

    async def follow_events(
        self,
        filters: Iterable[v1.EventFilter] = (),
        *,
        namespace: str | None = None,
        index: int = 0,
        bookmarks: bool = False,
        longest_outage: float | None = None,
    ) -> AsyncGenerator[v1.EventBatch, None]:
        """Yields the events of every write, without an end, through breaks and other gateways.

        Each batch is yielded once. To continue in another process, pass the last batch's index plus
        one as `index`.

        Args:
            filters: events to send; none: all.
            index: first index to send; 0: from now on.
            bookmarks: yields batches without events too, which tell how far the stream is.
            longest_outage: seconds without any message after which the error is raised. None: never.

        Raises:
            OutOfRange: the index is no longer stored; read the state anew, and follow from its index.
        """
        position = EventPosition(namespace or self.namespace, filters, index)
        outage = Outage(self._retry, longest_outage, time.monotonic())
        while True:
            try:
                stream = self.events.stream(position.request, silence=SILENCE)
                try:
                    async for batch in stream:
                        outage.over(time.monotonic())
                        position.received(batch)
                        if batch.events or bookmarks:
                            yield batch
                finally:
                    await stream.aclose()
                error: KafilaError = Unavailable("the gateway ended the stream")
            except KafilaError as broken:
                error = broken
            delay = outage.delay(error, time.monotonic())
            if delay is None:
                raise error
            await asyncio.sleep(delay)

    async def follow_logs(
        self,
        alloc_id: str,
        task: str,
        *,
        stderr: bool = False,
        follow: bool = True,
        tail_bytes: int | None = None,
        longest_outage: float | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yields the output of a task as it is written, until the task has ended.

        Waits for the start of the allocation, unless `follow` is false. A broken stream continues after the last byte. With `tail_bytes` it does not, because the
        position is unknown: the error is raised.

        Args:
            stderr: standard error instead of standard output.
            follow: waits for new output. False: ends after the present output.
            tail_bytes: begins so many bytes before the end. None: at the start of the kept output.
            longest_outage: seconds without output or connection after a break, before the error is
                raised. None: never.
        """
        stream = v1.LOG_STREAM_STDERR if stderr else v1.LOG_STREAM_STDOUT
        position = LogPosition(
            v1.LogsRequest(
                alloc_id=alloc_id,
                task=task,
                stream=stream,
                follow=follow,
                offset=tail_bytes or 0,
                from_end=tail_bytes is not None,
            )
        )
        if follow:
            await self._started(alloc_id)
        outage = Outage(self._retry, longest_outage, time.monotonic())
        while True:
            try:
                chunks = self.allocations.logs(position.request)
                try:
                    async for chunk in chunks:
                        outage.over(time.monotonic())
                        position.received(chunk)
                        yield chunk.data
                finally:
                    await chunks.aclose()
                return
            except KafilaError as error:
                delay = None if position.is_lost() else outage.delay(error, time.monotonic())
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def _started(self, alloc_id: str) -> None:
        """Waits until an allocation has started or ended."""
        request = v1.GetAllocationRequest(alloc_id=alloc_id)
        request.options.namespace = "*"
        while True:
            answer = await self.allocations.get_blocking(request, wait=_waiting.POLL)
            if answer.allocation.client_status != "pending":
                return
            request.options.min_index = answer.meta.index
