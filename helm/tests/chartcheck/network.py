"""Network policies against the real call graph, which is read from the services' sources."""

import re

from .chart import ROOT
from .release import COMPONENT, SERVICES, admits, pod_labels, ports, selects

# gRPC service between components -> the component that serves it.
SERVED_BY = {
    "EvalBroker": "eval-broker",
    "PlanApplier": "plan-applier",
    "Liveness": "cluster-controller",
    "Maintenance": "cluster-controller",
    "NodeSessions": "api-gateway",
    "NodeOperations": "client-node",
    "NodeIntroductions": "api-gateway",
    "NodeConnections": "api-gateway",
}
# A library of the sources -> the component that mounts it.
MOUNTED_IN = {
    "node-calls": "api-gateway",
    "node-connections": "api-gateway",
    "node-gateway": "api-gateway",
    "dial-out": "client-node",
    "gateway-calls": "client-node",
    "gateway-sources": "client-node",
    "node-introduction": "client-node",
}
# The component that serves every service of kafila.v1, also through the crate kafila-client.
PUBLIC = "api-gateway"
# Every process serves this service of kafila.v1 about itself; gateways call all of them.
AGENT = "Agent"
AGENTS = {"api-gateway", "scheduler-worker", "eval-broker", "plan-applier", "deployment-watcher", "cluster-controller", "client-node"}
SERVICE = re.compile(r"^service (\w+)", re.MULTILINE)
# The README's table of connections.
BEGIN, END = "<!-- connections: begin -->", "<!-- connections: end -->"
# The module of a generated client, as in `proto::v1::jobs_client::JobsClient`: `jobs`. Not a method, as
# in `client.jobs_client()`.
CLIENT = re.compile(r"\b(\w+)_client(?=::|\s*[,;}]|\s+as\b)")


def served_by():
    """Module of a generated client, without `_client` -> the components that it calls. A service between
    components without an entry above is a KeyError: add it, and the edge to the chart."""
    components = {"kafila": {PUBLIC}}
    public = lambda service: AGENTS if service == AGENT else {PUBLIC}
    between = lambda service: {SERVED_BY[service]}
    for package, component in (("v1", public), ("internal/v1", between)):
        for file in (ROOT / "proto/kafila" / package).glob("*.proto"):
            for service in SERVICE.findall(file.read_text()):
                module = re.sub(r"(?<!^)(?=[A-Z])", "_", service).lower()
                assert module not in components, f"two services have the client {module}_client"
                components[module] = component(service)
    return components


def calls(caller, source, components):
    """Pairs (caller, callee): the generated clients that `source` names."""
    modules = (module for module in CLIENT.findall(source) if module in components)
    return {(caller, callee) for module in modules for callee in components[module]}


def call_graph():
    """Pairs (caller, callee) of components: the clients that the sources of services and libraries use."""
    pairs, components = set(), served_by()
    for directory in sorted([*(ROOT / "services").iterdir(), *(ROOT / "crates").iterdir()]):
        caller = MOUNTED_IN.get(directory.name, directory.name)
        for file in directory.glob("src/**/*.rs"):
            if "tests" in file.relative_to(directory).as_posix():
                continue
            found = calls(caller, file.read_text(), components)
            assert caller in SERVICES or not found, f"{file} calls a service: name its component in MOUNTED_IN"
            pairs |= found
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
    """Returns True if egress of the one and ingress of the other admit a connection."""
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


def written(readme, release):
    """The README with the table of the connections that the policies of `release` admit."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(release)}\n{END}{after}"


def check_readme(readme, release):
    if written(readme, release) != readme:
        yield "helm/kafila/README.md: the table of connections is not that of the policies (scripts/check-helm --update)"


def table(release):
    lines = ["| From | To | Port |", "| --- | --- | --- |"]
    lines += [f"| {source} | {target} | {port} |" for source, target, port in [*between_pods(release), *at_the_edge(release)]]
    return "\n".join(lines)


def between_pods(release):
    """(callers, callees, port): connections between components, those with the same callers and port in one."""
    workloads, targets = release.by_component(), {}
    order = [*SERVICES, "etcd"]
    for target in order:
        for name, number in ports(workloads[target]).items():
            callers = tuple(s for s in order if passes(release, workloads[s], workloads[target], number))
            if callers and name != "metrics":
                targets.setdefault((callers, number), []).append(target)
    everyone = tuple(s for s in SERVICES if s != "client-node")
    for (callers, number), callees in sorted(targets.items(), key=lambda row: row[0][1]):
        source = "all services but client-node" if callers == everyone else ", ".join(callers)
        yield source, ", ".join(callees), number


def at_the_edge(release):
    """Connections with pods of other namespaces and with machines; a value restricts each."""
    workloads = release.by_component()
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in release.all("NetworkPolicy")}
    rules = {component: policies[workload["metadata"]["name"]] for component, workload in workloads.items()}
    is_open = lambda component, number: admits(rules[component]["ingress"], "from", {}, number, False)
    metrics = {}
    for component, workload in workloads.items():
        for name, number in ports(workload).items():
            if is_open(component, number) and name == "grpc":
                yield "`networkPolicy.clients` (default: all)", component, number
            if is_open(component, number) and name == "metrics":
                metrics.setdefault(number, []).append(component)
    for number, components in sorted(metrics.items()):
        yield "`networkPolicy.metricsFrom` (default: all)", ", ".join(sorted(components)), f"{number} (metrics)"
    for rule in rules["client-node"]["ingress"]:
        ranges = [p for p in rule["ports"] if "endPort" in p]
        if ranges and not rule.get("from"):
            protocols = " and ".join(port["protocol"] for port in ranges)
            numbers = f"{ranges[0]['port']} to {ranges[0]['endPort']}"
            yield "`networkPolicy.taskClients` (default: all)", "tasks of client-node", f"{numbers} ({protocols})"
    asks = [c for c, spec in rules.items() if any({"port": 53, "protocol": "UDP"} in r.get("ports", []) for r in spec["egress"])]
    if set(asks) == set(rules):
        yield "all", "any address", "53 (DNS, UDP and TCP)"
    if {} in rules["client-node"]["egress"]:
        yield "client-node and its tasks", "`networkPolicy.taskEgress` (default: all)", "all"
