"""Settings, metrics and flags, as the kafila binary and etcd list them."""

import concurrent.futures
import functools
import os
import re
import socket
import subprocess
import tempfile
import time
import tomllib
import urllib.request
from pathlib import Path

from .release import SERVICES

UNSET = re.compile(r"^# (\w+) = … is not set$", re.M)
NULL = re.compile(r'"\w+" = null(, )?')
JSON_KEY = re.compile(r'"(\w+)": ?')
POD_IP = {"IPv4": "10.1.2.3", "IPv6": "fd00::7"}


def print_config(service, config="", environment=None):
    """The effective settings of a service as TOML text, and the error output if it refuses them."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "config.toml"
        file.write_text(config)
        done = subprocess.run(
            [os.environ["KAFILA_BIN"], service, "-config", str(file), "-print-config"],
            env=environment or {},
            capture_output=True,
            text=True,
        )
    # Tables within values are printed in part as JSON: unset fields as null, and `:` for `=`.
    text = JSON_KEY.sub(r'"\1" = ', NULL.sub("", done.stdout))
    return text, done.stderr.strip() if done.returncode else ""


@functools.cache
def defaults(service):
    """The settings that a service knows, as nested tables; one without a default is None."""
    text, error = print_config(service)
    assert not error, error
    table = tomllib.loads(UNSET.sub(r'\1 = "unset setting"', text))

    def blank(value):
        if isinstance(value, dict):
            return {key: blank(item) for key, item in value.items()}
        return None if value == "unset setting" else value

    return blank(table)


@functools.cache
def metrics():
    """The names of all time series of all services and of etcd."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        texts = pool.map(exported, SERVICES)
        etcd = pool.submit(etcd_metrics)
        return set().union(*map(series, [*texts, etcd.result()]))


def series(text):
    names = set()
    # Families without a sample yet have a type only.
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)", text, re.M):
        names |= {name}
        names |= {f"{name}_total"} if kind == "counter" else set()
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else set()
    return names


def exported(service):
    port = free_port()
    arguments = ["-set", f"listen.metrics=127.0.0.1:{port}", "-set", "listen.grpc=127.0.0.1:0", "-set", "tls.insecure=true"]
    return scrape([os.environ["KAFILA_BIN"], service, *arguments], port)


def etcd_metrics():
    with tempfile.TemporaryDirectory() as directory:
        return scrape(etcd_command(["--name=a"], directory, port := free_port()), port)


def etcd_command(flags, directory, port):
    """An etcd of its own with `flags`, on free ports."""
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    return [
        os.environ["KAFILA_ETCD"],
        *flags,
        f"--data-dir={directory}/data",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=a={peer}",
        f"--listen-metrics-urls=http://127.0.0.1:{port}",
    ]


def scrape(command, port):
    """Starts a process, reads its /metrics, and ends it. An error is text too: it has no metrics."""
    process = subprocess.Popen(command, env={}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(100):
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended: {process.stderr.read()[-500:]}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
                    return answer.read().decode()
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"{' '.join(command[:2])} serves no metrics")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]
