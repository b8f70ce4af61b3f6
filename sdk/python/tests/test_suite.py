"""The clients against a real suite: all services in one process."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import REPOSITORY, Suite
from driver import Driver
from fake import Proxy

from kafila import Client, RetryPolicy, errors, job_from, v1

QUICK = RetryPolicy(first_delay=0.05, max_delay=0.5)


@pytest.fixture
def client(driver: Driver, suite: Suite) -> Any:
    return driver.client(suite.address)


@pytest.fixture
def proxy(suite: Suite) -> Iterator[Proxy]:
    proxy = Proxy(suite.target)
    yield proxy
    proxy.close()


def job(name: str, script: str, **fields: Any) -> dict[str, Any]:
    """Returns a job whose only task runs a shell script; its id is unique."""
    task = {
        "name": "main",
        "driver": "raw_exec",
        "config": {"command": "/bin/sh", "args": ["-c", script]},
        "resources": {"cpu_mhz": 10, "memory_mib": 10},
    }
    group = {"name": "group", "tasks": [task], "restart": {"attempts": 0, "mode": "fail"}}
    if fields.get("type") != "batch":
        group["update"] = {
            "min_healthy_time": "0.1s",
            "healthy_deadline": "5s",
            "progress_deadline": "10s",
        }
        group["reschedule"] = {"attempts": 0, "unlimited": False}
    return {"id": f"{name}-{uuid.uuid4()}", "task_groups": [group], **fields}


def allocation(driver: Driver, client: Any, job_id: str) -> v1.Allocation:
    request = v1.ListJobAllocationsRequest(job_id=job_id)
    (found,) = driver.take(lambda: client.jobs.list_allocations_iter(request))
    assert isinstance(found, v1.Allocation)
    return found


def test_a_service_runs_and_stops(driver: Driver, client: Any) -> None:
    web = job("web", "sleep 1000")
    run = driver.call(lambda: client.run_job(web, timeout=30))
    assert run.evaluation.status == "complete"
    assert run.deployment.status == "successful"
    assert allocation(driver, client, web["id"]).client_status == "running"
    driver.call(lambda: client.stop_job(web["id"]))
    request = v1.GetJobRequest(job_id=web["id"])

    def stopped() -> Any:
        return client.jobs.get_watch(request)

    for _ in range(20):
        if driver.take(stopped, 1)[0].job.status == "dead":
            break
        time.sleep(0.2)
    assert driver.call(lambda: client.jobs.get(request)).job.status == "dead"


def test_a_failed_deployment_is_an_error(driver: Driver, client: Any) -> None:
    bad = job("bad", "exit 1")
    with pytest.raises(errors.DeploymentFailed, match="failed") as raised:
        driver.call(lambda: client.run_job(bad, timeout=30))
    assert raised.value.deployment.job_id == bad["id"]
    driver.call(lambda: client.stop_job(bad["id"], purge=True))


def test_waiting_ends_with_the_timeout(driver: Driver, client: Any) -> None:
    slow = job("slow", "sleep 1000")
    slow["task_groups"][0]["update"]["min_healthy_time"] = "4s"
    with pytest.raises(errors.DeadlineExceeded, match="deployment"):
        driver.call(lambda: client.run_job(slow, timeout=1))
    driver.call(lambda: client.stop_job(slow["id"], purge=True))


def test_a_job_without_a_place_tells_why(driver: Driver, client: Any) -> None:
    huge = job("huge", "true", type="batch")
    huge["task_groups"][0]["tasks"][0]["resources"]["memory_mib"] = 1 << 30
    run = driver.call(lambda: client.run_job(huge, timeout=30))
    metric = run.evaluation.failed_task_groups["group"]
    assert metric.dimension_exhausted["memory"] == 1
    driver.call(lambda: client.stop_job(huge["id"], purge=True))


def test_errors_have_codes_and_fields(driver: Driver, client: Any) -> None:
    with pytest.raises(errors.NotFound, match="nope"):
        driver.call(lambda: client.jobs.get(v1.GetJobRequest(job_id="nope")))
    with pytest.raises(errors.InvalidArgument) as raised:
        driver.call(lambda: client.register_job(job("x", "true", priority=500)))
    assert [found.field for found in raised.value.violations] == ["priority"]
    known = job("known", "true", type="batch")
    driver.call(lambda: client.register_job(known, check_index=0))
    with pytest.raises(errors.Aborted):
        driver.call(lambda: client.register_job({**known, "priority": 60}, check_index=0))


def test_a_lost_answer_registers_once(driver: Driver, suite: Suite, proxy: Proxy) -> None:
    client = driver.client(proxy.address, retry=QUICK)
    once = job("once", "true", type="batch")
    driver.call(lambda: client.operator.get_version(v1.GetVersionRequest()))
    proxy.lose_next_answer()
    registered = driver.call(lambda: client.register_job(once))
    assert proxy.lost == 1
    request = v1.ListJobEvaluationsRequest(job_id=once["id"])
    evaluations = driver.call(lambda: client.jobs.list_evaluations(request)).evaluations
    assert [found.id for found in evaluations] == [registered.eval_id]
    stored = driver.call(lambda: client.jobs.get(v1.GetJobRequest(job_id=once["id"]))).job
    assert (stored.version, stored.job_modify_index) == (0, registered.job_modify_index)


def test_a_lost_answer_dispatches_once(driver: Driver, suite: Suite, proxy: Proxy) -> None:
    client = driver.client(proxy.address, retry=QUICK)
    parent = job("parent", "true", type="batch", parameterized={})
    driver.call(lambda: client.register_job(parent))
    proxy.lose_next_answer()
    request = v1.DispatchJobRequest(job_id=parent["id"])
    child = driver.call(lambda: client.jobs.dispatch(request)).dispatched_job_id
    assert proxy.lost == 1
    listing = v1.ListJobsRequest(options=v1.QueryOptions(prefix=f"{parent['id']}/"))
    children = driver.take(lambda: client.jobs.list_iter(listing))
    assert [found.id for found in children] == [child]


def test_pages_of_a_real_list(driver: Driver, client: Any) -> None:
    prefix = f"page-{uuid.uuid4()}"
    ids = [f"{prefix}-{number}" for number in range(5)]
    for id in ids:
        driver.call(lambda id=id: client.register_job({**job("", "true", type="batch"), "id": id}))
    request = v1.ListJobsRequest(options=v1.QueryOptions(prefix=prefix, per_page=2))
    assert [found.id for found in driver.take(lambda: client.jobs.list_iter(request))] == ids


def test_a_watched_job_tells_its_versions(driver: Driver, suite: Suite, client: Any) -> None:
    watched = job("watched", "true", type="batch")
    driver.call(lambda: client.register_job(watched))

    def change() -> None:
        other = Driver("sync")
        other_client = other.client(suite.address)
        time.sleep(0.3)
        other_client.register_job({**watched, "priority": 70})
        other.close()

    thread = threading.Thread(target=change)
    thread.start()
    request = v1.GetJobRequest(job_id=watched["id"])
    seen = []

    def versions() -> Any:
        return client.jobs.get_watch(request, wait=20.0)

    begun = time.monotonic()
    while 70 not in seen:
        # Each change of status is an answer too, hence several.
        seen += [found.job.priority for found in driver.take(versions, 2)]
        assert time.monotonic() - begun < 30
    thread.join()
    assert seen[0] == 50


def test_events_survive_a_broken_connection(driver: Driver, suite: Suite, proxy: Proxy) -> None:
    client = driver.client(proxy.address, retry=QUICK)
    first, second = job("first", "true", type="batch"), job("second", "true", type="batch")
    wanted = [first["id"], second["id"]]
    registered = driver.call(lambda: client.register_job(first))

    def cut() -> None:
        other = Driver("sync")
        time.sleep(0.3)
        proxy.cut()
        other.client(suite.address).register_job(second)
        other.close()

    thread = threading.Thread(target=cut)
    thread.start()
    filters = [v1.EventFilter(topic="Job", key=key) for key in wanted]
    index = registered.job_modify_index

    def registrations() -> Any:
        return client.follow_events(filters, index=index, longest_outage=20.0)

    batches = driver.take(registrations, 2)
    thread.join()
    assert [batch.events[0].key for batch in batches] == wanted
    assert [batch.events[0].type for batch in batches] == ["JobRegistered"] * 2


def test_logs_survive_a_broken_connection(driver: Driver, suite: Suite, proxy: Proxy) -> None:
    client = driver.client(proxy.address, retry=QUICK)
    counting = job("log", "for n in $(seq 1 20); do echo $n; sleep 0.05; done", type="batch")
    driver.call(lambda: client.run_job(counting))
    alloc = allocation(driver, client, counting["id"])
    timer = threading.Timer(0.4, proxy.cut)
    timer.start()
    output = b"".join(
        driver.take(lambda: client.follow_logs(alloc.id, "main", longest_outage=20.0))
    )
    timer.join()
    assert output == b"".join(b"%d\n" % number for number in range(1, 21))
    tail = driver.take(lambda: client.follow_logs(alloc.id, "main", follow=False, tail_bytes=6))
    assert b"".join(tail) == b"19\n20\n"


@pytest.mark.parametrize("example", ["web", "batch", "canary", "periodic", "two-groups"])
def test_json_of_the_command_is_the_stored_job(suite: Suite, example: str) -> None:
    path = str(REPOSITORY / "examples" / f"{example}.hcl")
    suite.command("job", "run", "-detach", path)
    read = job_from(suite.command("job", "inspect", example))
    with Client(suite.address) as client:
        stored = client.jobs.get(v1.GetJobRequest(job_id=read.id)).job
        client.stop_job(read.id, purge=True)
    for changing in ("status", "modify_index"):
        stored.ClearField(changing)
        read.ClearField(changing)
    assert read == stored
