"""Facts about objects: references between them (selectors, ports, names, volumes), and resources of containers."""

import re

from .release import COMPONENT, container, pod, pod_labels, ports, selects


def check(release):
    """Yields a problem for each violation."""
    yield from selectors(release)
    yield from service_ports(release)
    yield from targets(release)
    for workload in release.workloads:
        yield from probes(workload)
        yield from volumes(release, workload)
        yield from resources(workload)
    yield from monitors(release)


def selectors(release):
    for workload in release.workloads:
        name = workload["metadata"]["name"]
        if not selects(workload["spec"]["selector"], pod_labels(workload)):
            yield f"{name}: its selector does not match its pods"
        if workload["spec"]["selector"]["matchLabels"] != release.workloads[0]["spec"]["selector"][
            "matchLabels"
        ] | {COMPONENT: pod_labels(workload)[COMPONENT]}:
            yield f"{name}: its selector differs from the others' by more than the component"
        if pod(workload).get("serviceAccountName") != "default" and not release.named(
            "ServiceAccount", pod(workload)["serviceAccountName"]
        ):
            yield f"{name}: its ServiceAccount does not exist"
        for place in spread_selectors(pod(workload)):
            if not selects(place, pod_labels(workload)):
                yield f"{name}: its affinity or spread does not match its own pods"
    for kind, path in (("Service", None), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for document in release.all(kind):
            spec = document["spec"]
            selector = spec[path] if path else {"matchLabels": spec["selector"]}
            hit = [w for w in release.workloads if selects(selector, pod_labels(w))]
            if len(hit) != 1:
                yield f"{kind} {document['metadata']['name']}: selects {len(hit)} workloads, not one"


def spread_selectors(spec):
    for constraint in spec.get("topologySpreadConstraints", []):
        yield constraint["labelSelector"]
    terms = spec.get("affinity", {}).get("podAntiAffinity", {})
    for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", []):
        yield term["labelSelector"]
    for term in terms.get("preferredDuringSchedulingIgnoredDuringExecution", []):
        yield term["podAffinityTerm"]["labelSelector"]


def service_ports(release):
    """Every port of a container is in a Service, and every port of a Service in a container."""
    served = set()
    for service in release.all("Service"):
        selector = {"matchLabels": service["spec"]["selector"]}
        for workload in release.workloads:
            if not selects(selector, pod_labels(workload)):
                continue
            for port in service["spec"]["ports"]:
                served.add((workload["metadata"]["name"], port["targetPort"]))
                if port["targetPort"] not in ports(workload):
                    yield f"Service {service['metadata']['name']}: its container has no port {port['targetPort']}"
                if port["name"] == "grpc" and port.get("appProtocol") != "grpc":
                    yield f"Service {service['metadata']['name']}: its gRPC port has no appProtocol grpc"
    for workload in release.workloads:
        for port in ports(workload):
            if (workload["metadata"]["name"], port) not in served:
                yield f"{workload['metadata']['name']}: its port {port} is in no Service"
        numbers = list(ports(workload).values())
        if len(set(numbers)) != len(numbers):
            yield f"{workload['metadata']['name']}: two ports have one number"


def targets(release):
    """Budgets and autoscalers name workloads; a scaled workload has no number of replicas."""
    for scaler in release.all("HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        workload = release.named(target["kind"], target["name"])
        if workload is None:
            yield f"HorizontalPodAutoscaler {scaler['metadata']['name']}: {target['kind']} {target['name']} does not exist"
        elif "replicas" in workload["spec"]:
            yield f"{target['name']}: is scaled, but has a number of replicas, which an upgrade would restore"
        elif "cpu" not in container(workload)["resources"].get("requests", {}):
            yield f"{target['name']}: is scaled by CPU, but requests none"
    for budget in release.all("PodDisruptionBudget"):
        name = budget["metadata"]["name"]
        workload = next((w for w in release.workloads if w["metadata"]["name"] == name), None)
        if workload is None:
            yield f"PodDisruptionBudget {name}: no workload has this name"
        elif not selects(budget["spec"]["selector"], pod_labels(workload)):
            yield f"PodDisruptionBudget {name}: does not select the workload of its name"
    for workload in release.all("StatefulSet"):
        if not release.named("Service", workload["spec"]["serviceName"]):
            yield f"{workload['metadata']['name']}: its Service {workload['spec']['serviceName']} does not exist"


# Factors of the suffixes of Kubernetes' quantities.
FACTORS = {"": 1, "m": 0.001, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
FACTORS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(quantity):
    """The number in a quantity of Kubernetes, such as 500m or 2Gi."""
    number, suffix = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(quantity)).groups()
    return float(number) * FACTORS[suffix]


def resources(workload):
    """No container requests more of a resource than its limit."""
    block = container(workload)["resources"]
    limits = block.get("limits", {})
    for resource, requested in block.get("requests", {}).items():
        if resource in limits and amount(requested) > amount(limits[resource]):
            name = workload["metadata"]["name"]
            yield f"{name}: requests {requested} of {resource}, more than its limit {limits[resource]}"


def probes(workload):
    it = container(workload)
    name = workload["metadata"]["name"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe not in it:
            yield f"{name}: has no {probe}"
            continue
        grpc = it[probe].get("grpc")
        if grpc and grpc["port"] != ports(workload)["grpc"]:
            yield f"{name}: its {probe} asks port {grpc['port']}, which is not its gRPC port"
        http = it[probe].get("httpGet")
        if http and http["port"] not in ports(workload):
            yield f"{name}: its {probe} asks port {http['port']}, which does not exist"
        if grpc and any(mount["name"] == "tls" for mount in it["volumeMounts"]):
            yield f"{name}: its {probe} speaks gRPC without TLS to a port with TLS"


def volumes(release, workload):
    name = workload["metadata"]["name"]
    known = {volume["name"] for volume in pod(workload).get("volumes", [])}
    known |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
    mounted = {mount["name"] for mount in container(workload)["volumeMounts"]}
    for volume in sorted(known ^ mounted):
        yield f"{name}: the volume {volume} is mounted or declared, but not both"
    for volume in pod(workload).get("volumes", []):
        if "configMap" in volume and not release.named("ConfigMap", volume["configMap"]["name"]):
            yield f"{name}: its ConfigMap {volume['configMap']['name']} does not exist"


def monitors(release):
    """A ServiceMonitor finds each workload's metrics exactly once."""
    for monitor in release.all("ServiceMonitor"):
        for workload in release.workloads:
            found = [
                service
                for service in release.all("Service")
                if selects(monitor["spec"]["selector"], service["metadata"]["labels"])
                and selects({"matchLabels": service["spec"]["selector"]}, pod_labels(workload))
                and any(port["name"] == monitor["spec"]["endpoints"][0]["port"] for port in service["spec"]["ports"])
            ]
            if len(found) != 1:
                yield f"ServiceMonitor: finds the metrics of {workload['metadata']['name']} {len(found)} times"


def lengths(documents):
    """Names and labels of a release with the longest name are within the limits of DNS labels."""
    for document in documents:
        metadata = document["metadata"]
        for text in (metadata["name"], *metadata["labels"].values()):
            if len(text) > 63:
                yield f"{document['kind']} {metadata['name']}: {text!r} is longer than 63 bytes"
