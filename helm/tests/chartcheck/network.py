"""Network policies against the real call graph, which is read from the services' sources."""

import re

from .chart import ROOT
from .release import COMPONENT, SERVICES, admits, pod_labels, ports, selects

# gRPC service, as generated clients are named -> the component that serves it.
SERVED_BY = {
    "EvalBroker": "eval-broker",
    "PlanApplier": "plan-applier",
    "Liveness": "cluster-controller",
    "Maintenance": "cluster-controller",
    "NodeSessions": "api-gateway",
    "NodeFiles": "client-node",
}
# A library of the sources -> the component that mounts it.
MOUNTED_IN = {"node-gateway": "api-gateway"}
CLIENT = re.compile(r"\bproto::\w+::v1::\w+_client::(\w+)Client\b")


def call_graph():
    """Pairs (caller, callee) of components: the generated clients that each service's sources use.
    A client of an unknown service is a KeyError: add it above, and the edge to the chart."""
    pairs = set()
    for directory in sorted((ROOT / "services").iterdir()):
        for file in directory.glob("src/**/*.rs"):
            if "tests" in file.relative_to(directory).as_posix():
                continue
            caller = MOUNTED_IN.get(directory.name, directory.name)
            pairs |= {(caller, SERVED_BY[name]) for name in CLIENT.findall(file.read_text())}
    # The services over the store.
    stores = {s for s in SERVICES if s != "client-node"}
    return pairs | {(service, "etcd") for service in stores}


def check(release, graph):
    """Yields a problem for each connection that is needed and refused, or admitted without need."""
    if not release.all("NetworkPolicy"):
        if release.values["networkPolicy"]["enabled"]:
            yield "there is no NetworkPolicy"
        return
    workloads = release.by_component()
    for source, source_workload in workloads.items():
        for target, target_workload in workloads.items():
            for name, number in ports(target_workload).items():
                is_needed = needed(release, graph, source, target, name)
                is_open = passes(release, source_workload, target_workload, number)
                # Pods may reach metrics if egress lets them out, as it does for tasks: not judged.
                if name == "metrics" and not is_needed:
                    continue
                if is_needed and not is_open:
                    yield f"network policies: {source} cannot reach {target} at {name}"
                if is_open and not is_needed:
                    yield f"network policies: {source} may reach {target} at {name}, which it never calls"
    yield from outside(release, workloads)


def needed(release, graph, source, target, port):
    if target == "etcd":
        return (port == "client" and (source, target) in graph) or (port == "peer" and source == "etcd")
    return port == "grpc" and (source, target) in graph


def passes(release, source, target, number):
    """Whether egress of the one and ingress of the other admit a connection."""
    return one_side(release, source, target, number, "egress", "to") and one_side(
        release, target, source, number, "ingress", "from"
    )


def one_side(release, subject, other, number, direction, side):
    policies = [
        policy["spec"]
        for policy in release.all("NetworkPolicy")
        if selects(policy["spec"]["podSelector"], pod_labels(subject))
        and direction.capitalize() in policy["spec"]["policyTypes"]
    ]
    if not policies:
        return True
    return any(admits(p.get(direction, []), side, pod_labels(other), number, True) for p in policies)


def outside(release, workloads):
    """Connections with pods of other namespaces, and with what is outside the cluster."""
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in release.all("NetworkPolicy")}
    for component, workload in workloads.items():
        spec = policies[workload["metadata"]["name"]]
        for name, number in ports(workload).items():
            is_open = admits(spec["ingress"], "from", {}, number, False)
            if is_open != (name == "metrics" or component == "api-gateway"):
                yield f"network policies: strangers {'may' if is_open else 'cannot'} reach {component} at {name}"
        egress = spec["egress"]
        if not any({"port": 53, "protocol": "UDP"} in rule.get("ports", []) for rule in egress):
            yield f"network policies: {component} cannot ask DNS"
        if component in ("etcd", "client-node"):
            continue
        for endpoint in release.values["etcd"]["external"]["endpoints"]:
            number = int(endpoint.rstrip("/").rsplit(":", 1)[1])
            if not any(is_open_port(rule, number) for rule in egress):
                yield f"network policies: {component} cannot reach {endpoint}"
    if "client-node" not in workloads:
        return
    node = workloads["client-node"]
    spec = policies[node["metadata"]["name"]]
    settings = release.values["clientNode"]["settings"]
    for number in (settings.get("min_dynamic_port", 20000), settings.get("max_dynamic_port", 32000)):
        tasks = [r for r in spec["ingress"] if is_open_port(r, number)]
        if not tasks:
            yield f"network policies: port {number} of a task cannot be reached"
    if release.values["clientNode"]["hostNetwork"]:
        gateway = policies[workloads["api-gateway"]["metadata"]["name"]]
        blocks = [
            peer["ipBlock"]["cidr"]
            for rule in gateway["egress"]
            if is_open_port(rule, ports(node)["grpc"])
            for peer in rule.get("to", [])
            if "ipBlock" in peer
        ]
        if blocks != release.values["networkPolicy"]["nodeCIDRs"]:
            yield "network policies: gateways cannot reach nodes in the machines' network"


def is_open_port(rule, number):
    ports_of = rule.get("ports", [])
    return any(p["protocol"] == "TCP" and p["port"] <= number <= p.get("endPort", p["port"]) for p in ports_of)
