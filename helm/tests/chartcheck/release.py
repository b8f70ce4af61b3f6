"""A rendered release: its objects by kind, its pods, and the rules between them."""

SERVICES = {
    "api-gateway": "apiGateway",
    "eval-broker": "evalBroker",
    "scheduler-worker": "schedulerWorker",
    "plan-applier": "planApplier",
    "deployment-watcher": "deploymentWatcher",
    "cluster-controller": "clusterController",
    "client-node": "clientNode",
}
# Component -> the role in its certificate.
ROLES = {
    "api-gateway": "gateway",
    "eval-broker": "broker",
    "scheduler-worker": "worker",
    "plan-applier": "applier",
    "deployment-watcher": "watcher",
    "cluster-controller": "controller",
    "client-node": "node",
}
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
COMPONENT = "app.kubernetes.io/component"


class Release:
    def __init__(self, documents, values):
        self.documents = documents
        self.values = values
        self.workloads = [d for d in documents if d["kind"] in WORKLOADS]

    def all(self, kind):
        return [document for document in self.documents if document["kind"] == kind]

    def named(self, kind, name):
        found = (d for d in self.all(kind) if d["metadata"]["name"] == name)
        return next(found, None)

    def by_component(self):
        """Component -> workload."""
        return {pod_labels(w)[COMPONENT]: w for w in self.workloads}


def pod(workload):
    return workload["spec"]["template"]["spec"]


def pod_labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def container(workload):
    return pod(workload)["containers"][0]


def ports(workload):
    """Name -> number of the container's ports."""
    return {port["name"]: port["containerPort"] for port in container(workload)["ports"]}


def selects(selector, labels):
    """Returns True if a label selector, as far as the chart uses them, matches."""
    assert set(selector) <= {"matchLabels"}, selector
    wanted = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items())


def admits(rules, side, labels, number, namespace):
    """Returns True if a rule of a NetworkPolicy admits a pod in the release (or, with `namespace` false, one
    elsewhere) at a TCP port. `side` is `from` or `to`."""
    for rule in rules:
        if rule.get("ports") and not any(is_port(port, number) for port in rule["ports"]):
            continue
        if not rule.get(side):
            return True
        for peer in rule[side]:
            if "ipBlock" in peer:
                continue
            if "namespaceSelector" in peer:
                if not namespace:
                    return True
            elif namespace and selects(peer["podSelector"], labels):
                return True
    return False


def is_port(port, number):
    first = port["port"]
    return port["protocol"] == "TCP" and first <= number <= port.get("endPort", first)
