"""Rendered configuration against the services: every file and variable is accepted and takes effect,
and the schema of `settings` knows the keys that the service knows."""

import re
import tomllib

from . import binary
from .release import SERVICES, container

# Settings that the chart sets from its other values, so `settings` may not contain them.
OWN = {"etcd", "listen", "telemetry", "tls"}
OWN_OF_NODE = OWN | {"gateways", "data_dir", "region", "stop_tasks_on_exit", "host_volumes", "introduction"}
OWN_OF_GATEWAY = OWN | {"node_ca_cert_file", "node_ca_key_file", "keyring_key_file"}
OWN_DRIVERS = {"raw_exec", "mock_driver", "cgroup_parent"}
# Tables with keys of the operator's choice.
FREE = {"meta", "host_networks", "log_options", "plugins"}

# Settings that could not be compared, for the last lines of the output.
NOTES = set()


def uses_tls(values):
    etcd = values["etcd"]
    return values["tls"]["enabled"] or bool(etcd["tls"]["secretName"]) or bool(etcd["auth"]["secretName"])


def own(service):
    return {"client-node": OWN_OF_NODE, "api-gateway": OWN_OF_GATEWAY}.get(service, OWN)


def check_release(release):
    """Yields a problem for each configuration that its service refuses or ignores."""
    for component, workload in release.by_component().items():
        if component not in SERVICES:
            continue
        mount = next(v for v in workload["spec"]["template"]["spec"]["volumes"] if "configMap" in v)
        if uses_tls(release.values) and "tls" not in binary.defaults(component):
            NOTES.add("values with TLS or a user of etcd: this kafila has no such settings, so theirs were not compared")
            continue
        config = release.named("ConfigMap", mount["configMap"]["name"])
        if config is None:
            yield f"{component}: its ConfigMap does not exist"
            continue
        text = config["data"]["config.toml"]
        environment = variables(release, component, workload)
        shown, error = binary.print_config(component, text, environment)
        if error:
            yield f"{component} refuses its configuration: {error}"
            continue
        effective = tomllib.loads(shown)
        for path, value in leaves(tomllib.loads(text)):
            if overridden(component, path) not in environment and not same(lookup(effective, path), value):
                yield f"{component}: {'.'.join(path)} is {lookup(effective, path)!r}, not {value!r}"
        key = SERVICES[component]
        for path, value in leaves(release.values[key]["settings"]):
            if not same(lookup(effective, path), value):
                yield f"{key}.settings.{'.'.join(path)} has no effect: {lookup(effective, path)!r}, not {value!r}"
        listen = effective["listen"]
        for name, key in (("grpc", "grpc"), ("metrics", "metrics")):
            port = next(p["containerPort"] for p in container(workload)["ports"] if p["name"] == name)
            if listen[key].rsplit(":", 1)[1] != str(port):
                yield f"{component}: listens on {listen[key]}, but its container's port {name} is {port}"
        ip = binary.POD_IP[release.values["ipFamily"]]
        host = f"[{ip}]" if ":" in ip else ip
        scheme = "https" if release.values["tls"]["enabled"] else "http"
        expected = f"{scheme}://{host}:{listen['grpc'].rsplit(':', 1)[1]}"
        if listen["advertise"] != expected:
            yield f"{component}: advertises {listen['advertise']}, not {expected}"


def overridden(component, path):
    """The environment variable of a setting."""
    return f"KAFILA_{component.upper().replace('-', '_')}__" + "__".join(part.upper() for part in path)


def variables(release, component, workload):
    """The environment as the kubelet makes it, with examples for what it looks up."""
    result = {}
    for variable in container(workload)["env"]:
        source = variable.get("valueFrom")
        if source is None:
            value = re.sub(r"\$\((\w+)\)", lambda m: result[m[1]], variable["value"])
        elif "resourceFieldRef" in source:
            assert source["resourceFieldRef"]["containerName"] == container(workload)["name"]
            value = "4096"
        elif source.get("fieldRef", {}).get("fieldPath") == "status.podIP":
            value = binary.POD_IP[release.values["ipFamily"]]
        else:
            value = "some-name"
        result[variable["name"]] = value
    return result


def leaves(table, path=()):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def lookup(table, path):
    for key in path:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def same(effective, wanted):
    """Returns True if a setting has the wanted value: durations are normalised, records get their defaults."""
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], dict):
        return len(effective) == len(wanted) and all(e.items() >= w.items() for e, w in zip(effective, wanted))
    if isinstance(wanted, str) and isinstance(effective, str) and DURATION.fullmatch(wanted):
        return milliseconds(effective) == milliseconds(wanted)
    return effective == wanted


DURATION = re.compile(r"(\d+(ms|s|m|h|d) ?)+")
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text):
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h|d)", text))


def check_schema(schema):
    """Yields a problem for each setting that the schema and a service do not share."""
    for service, key in SERVICES.items():
        declared = schema["properties"][key]["properties"]["settings"]
        for path, problem in differences(service, declared):
            yield f"values.schema.json: {key}.settings.{'.'.join(path)} {problem}"


def differences(service, declared):
    known = {k: v for k, v in binary.defaults(service).items() if k not in own(service)}
    if service == "client-node":
        known["drivers"] = {k: v for k, v in known["drivers"].items() if k not in OWN_DRIVERS}
    yield from compare(known, declared["properties"], ())


def compare(known, declared, path):
    for key in sorted(known.keys() | declared.keys()):
        here = (*path, key)
        if key not in declared:
            yield here, "is missing (scripts/check-helm --update adds it)"
        elif key not in known:
            yield here, "is not a setting of the service (scripts/check-helm --update removes it)"
        elif isinstance(known[key], dict) and key not in FREE:
            yield from compare(known[key], declared[key]["properties"], here)


def update_schema(schema):
    """Adds the settings that are missing in the schema, and removes those that are gone."""
    for service, key in SERVICES.items():
        declared = schema["properties"][key]["properties"]["settings"]
        for path, _ in list(differences(service, declared)):
            place = declared["properties"]
            for part in path[:-1]:
                place = place[part]["properties"]
            value = lookup(binary.defaults(service), path)
            if path[-1] in place:
                del place[path[-1]]
            else:
                place[path[-1]] = kind_of(value)


def kind_of(value):
    """A schema for values like a setting's default."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer", "minimum": 0}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, list):
        return {"type": "array", "items": {"type": "string"}}
    if isinstance(value, dict):
        properties = {key: kind_of(item) for key, item in value.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties}
    return {"type": "string"}
