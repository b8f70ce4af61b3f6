"""Checks docker-compose.yml by the rules of Compose v2, without Compose; see scripts/check-compose.

The file is read, merged and interpolated as Compose does, then compared with the schema of the Compose
Specification and with the rules that are not in the schema. Breaks of the file must be found, too.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).parents[2]
SCHEMA = Path(__file__).with_name("compose-spec.json")
VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?:(?P<operator>:?[-+?])(?P<word>[^}]*))?\})"
)

# A text of the file, its replacement, and a part of the problem that has to be found.
BREAKS = [
    ("    scale: ", "    scales: ", "scales"),
    ("    profiles: [monitoring]\n", "    profiles: monitoring\n", "'monitoring' is not of type"),
    ("etcd-3: {condition: service_healthy}", "etcd-3: {condition: healthy}", "condition"),
    ("etcd-3: {condition: service_healthy}", "etcd-4: {condition: service_healthy}", "etcd-4"),
    ("      - etcd-2:/var/lib/etcd\n", "      - etcd-9:/var/lib/etcd\n", "etcd-9"),
    ("    secrets: [grafana_admin_password]\n", "    secrets: [password]\n", "password"),
    ("    hostname: client-node-1\n", "    hostname: client-node-1\n    hostname: node\n", "twice"),
    ('["127.0.0.1:${KAFILA_PORTS-4646-4647}:4646"]', '["127.0.0.1:4646:4646"]', "one port"),
    ("    scale: ", "    container_name: gateway\n    scale: ", "container_name"),
    ("      interval: 3s\n", "      interval: 3 seconds\n", "interval"),
    ("  init: true\n", "  init: [true]\n", "[True]"),
    ("    restart: unless-stopped\n    command: [\"--config", "    restart: sometimes\n    command: [\"--config", "restart"),
    ("${PROMETHEUS_PORT-9090}", "${PROMETHEUS_PORT", "variable"),
]


class Loader(yaml.SafeLoader):
    """Refuses keys that stand in a mapping twice, as Compose v2 does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise ValueError(f"line {key.start_mark.line + 1}: {key.value!r} stands there twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def interpolate(value: object, variables: dict[str, str]) -> object:
    """Replaces the variables in every text."""
    if isinstance(value, dict):
        return {key: interpolate(inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [interpolate(inner, variables) for inner in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match) -> str:
        if match["escaped"]:
            return "$"
        found = variables.get(match["plain"] or match["name"])
        operator, word = match["operator"], match["word"]
        is_missing = found is None or (operator and operator[0] == ":" and found == "")
        if operator and operator[-1] == "-":
            return word if is_missing else found
        if operator and operator[-1] == "+":
            return "" if is_missing else word
        if is_missing:
            raise ValueError(f"the variable in {value!r} has no value and no default")
        return found

    text = VARIABLE.sub(replaced, value)
    if re.search(r"\$\{", text):
        raise ValueError(f"malformed variable in {value!r}")
    return text


def dependencies(service: dict) -> list[str]:
    return list(service.get("depends_on") or [])


def source(volume: object) -> str | None:
    """The named volume of a mount; None for a path."""
    if isinstance(volume, dict):
        return volume.get("source") if volume.get("type") == "volume" else None
    name = volume.split(":")[0]
    return name if ":" in volume and not name.startswith((".", "/", "~")) else None


def rules(project: dict) -> Iterator[str]:
    """The rules of Compose v2 that its schema does not have."""
    services = project["services"]
    for name, service in services.items():
        if "image" not in service and "build" not in service:
            yield f"{name}: neither image nor build"
        for other in dependencies(service):
            if other not in services:
                yield f"{name}: depends on {other}, which does not exist"
            elif set(services[other].get("profiles", [])) - set(service.get("profiles", [])):
                yield f"{name}: depends on {other}, whose profile may be off"
        for volume in service.get("volumes", []):
            if (named := source(volume)) and named not in (project.get("volumes") or {}):
                yield f"{name}: the volume {named} is not declared"
        for secret in service.get("secrets", []):
            used = secret if isinstance(secret, str) else secret["source"]
            if used not in (project.get("secrets") or {}):
                yield f"{name}: the secret {used} is not declared"
        for network in service.get("networks", []):
            if network not in (project.get("networks") or {}):
                yield f"{name}: the network {network} is not declared"
        scale = service.get("scale", 1)
        replicas = service.get("deploy", {}).get("replicas", scale)
        if scale != replicas:
            yield f"{name}: scale {scale} contradicts deploy.replicas {replicas}"
        if scale > 1 and "container_name" in service:
            yield f"{name}: container_name, but {scale} containers"
        for port in service.get("ports", []):
            parts = str(port).split("/")[0].rsplit(":", 2)
            if scale > 1 and len(parts) > 1 and parts[-2].isdigit():
                yield f"{name}: one port {parts[-2]} for {scale} containers"
        check = service.get("healthcheck", {})
        for key in ("interval", "timeout", "start_period"):
            if not re.fullmatch(r"(\d+(\.\d+)?(us|ms|s|m|h))+", str(check.get(key, "1s"))):
                yield f"{name}: healthcheck.{key} {check[key]!r} is no duration"
        if not re.fullmatch(r"no|always|unless-stopped|on-failure(:\d+)?", str(service.get("restart", "no"))):
            yield f"{name}: restart {service['restart']!r} is no policy"


def problems(text: str, variables: dict[str, str]) -> Iterator[str]:
    """Yields what Compose v2 would refuse."""
    try:
        project = interpolate(yaml.load(text, Loader), variables)  # noqa: S506: a safe loader
    except ValueError as error:
        yield str(error)
        return
    schema = json.loads(SCHEMA.read_text())
    found = [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(project)]
    yield from (message[:300] for message in found)
    if not found:
        yield from rules(project)


def examples() -> dict[str, str]:
    """The variables of .env.example, as if each were set."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    pairs = (line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?[A-Z_]+=", line))
    return dict(pairs)


def main() -> int:
    text = (ROOT / "docker-compose.yml").read_text()
    failed = 0

    def report(problem: str) -> None:
        nonlocal failed
        failed = 1
        print(f"check-compose: {problem}", file=sys.stderr)

    # Without variables, with those of the example, and with all of them empty.
    for variables in ({}, examples(), dict.fromkeys(examples(), "")):
        for problem in problems(text, variables):
            report(problem)
    for before, after, part in BREAKS:
        if before not in text:
            report(f"the break {after!r} has no place: {before!r} is not in the file")
            continue
        found = list(problems(text.replace(before, after, 1), {}))
        if not any(part in problem for problem in found):
            report(f"the break {after!r} was not found: {found}")
    if not failed:
        print(f"check-compose: ok, and {len(BREAKS)} breaks are found")
    return failed


if __name__ == "__main__":
    sys.exit(main())
