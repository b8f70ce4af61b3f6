"""Settings, metrics and flags, as the kafila binary and etcd list them."""

import concurrent.futures
import contextlib
import functools
import os
import re
import socket
import subprocess
import tempfile
import time
import tomllib
import urllib.request
import uuid
from pathlib import Path

from .release import ROLES, SERVICES

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
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor() as pool:
        kafila("tls", "ca", "create", f"-out-dir={directory}")
        texts = pool.map(lambda service: exported(service, directory), SERVICES)
        etcd = pool.submit(etcd_metrics)
        return set().union(*map(series, [*texts, *etcd.result()]))


def series(text):
    names = set()
    # Families without a sample yet have a type only.
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)", text, re.M):
        names |= {name}
        names |= {f"{name}_total"} if kind == "counter" else set()
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else set()
    return names


def kafila(*arguments):
    subprocess.run([os.environ["KAFILA_BIN"], *arguments], env={}, check=True, capture_output=True)


def exported(service, directory):
    """The metrics of a service with a certificate, and without its store."""
    folder = Path(directory) / service
    folder.mkdir()
    ca = f"{directory}/kafila-ca.pem"
    name = [f"-node={uuid.uuid4()}"] if service == "client-node" else []
    role = f"-role={ROLES[service]}"
    kafila("tls", "cert", "create", role, *name, f"-ca={ca}", f"-key={directory}/kafila-ca-key.pem", f"-out-dir={folder}")
    [key] = folder.glob("*-key.pem")
    files = {"ca_file": ca, "cert_file": str(key).replace("-key.pem", ".pem"), "key_file": key}
    port = free_port()
    settings = {"listen.metrics": f"127.0.0.1:{port}", "listen.grpc": "127.0.0.1:0"}
    settings |= {f"tls.{name}": value for name, value in files.items()}
    return scrape(command(service, settings), port)


def command(service, settings):
    return [os.environ["KAFILA_BIN"], service, *(f"-set={key}={value}" for key, value in settings.items())]


def etcd_metrics():
    """The metrics of etcd, and those of a cluster-controller about its members."""
    metrics, client, own = (free_port() for _ in range(3))
    settings = {
        "listen.metrics": f"127.0.0.1:{own}",
        "listen.grpc": "127.0.0.1:0",
        "etcd.endpoints": f"http://127.0.0.1:{client}",
        "tls.insecure": "true",
    }
    with tempfile.TemporaryDirectory() as directory:
        flags = ["--name=a", "--max-txn-ops=2048", "--max-request-bytes=4194304"]
        with running(etcd_command(flags, directory, metrics, client)) as etcd:
            texts = [answer(etcd, metrics)]
            with running(command("cluster-controller", settings)) as controller:
                texts.append(answer(controller, own, "kafila_cluster_controller_etcd_no_space{"))
    return texts


def etcd_command(flags, directory, port, client=None):
    """An etcd of its own with `flags`, on free ports; `port` is that of its metrics."""
    client, peer = (f"http://127.0.0.1:{number}" for number in (client or free_port(), free_port()))
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
    """Starts a process, reads its /metrics, and ends it."""
    with running(command) as process:
        return answer(process, port)


@contextlib.contextmanager
def running(command):
    process = subprocess.Popen(command, env={}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def answer(process, port, wanted=""):
    """The metrics of a process, once they contain `wanted`. An error is text too: it has no metrics."""
    for _ in range(300):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended: {process.stderr.read()[-500:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as read:
                text = read.read().decode()
            if wanted in text:
                return text
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{' '.join(process.args[:2])} serves no metrics {wanted}")


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]
