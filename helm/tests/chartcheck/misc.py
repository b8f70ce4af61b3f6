"""Facts about etcd's flags, metrics in alerts, certificates and the least rights of containers."""

import re
import tempfile

import yaml

from . import binary
from .chart import CHART, ROOT
from .release import ROLES, SERVICES, container, pod

METRIC = re.compile(r"\b(?:kafila|etcd|process)_[a-z0-9_]+")
NAMES = re.compile(r'__name__=~"([^"]*)"')
# Flags that name addresses and files of the pod.
PLACES = ("--name", "--data-dir", "--listen-", "--advertise-", "--initial-", "--cert-", "--key-", "--trusted-", "--peer-", "--client-cert-auth")


def check(release):
    """Yields a problem for each violation."""
    yield from etcd_members(release)
    yield from alert_metrics(release)
    yield from alerts(release)
    yield from certificates(release)
    for component, workload in release.by_component().items():
        yield from rights(release, component, workload)


def etcd_members(release):
    for workload in release.all("StatefulSet"):
        command = container(workload)["command"]
        flags = dict(flag.split("=", 1) for flag in command[1:])
        for name, least in (("--max-txn-ops", 2048), ("--max-request-bytes", 4194304), ("--quota-backend-bytes", 1)):
            if int(flags.get(name, 0)) < least:
                yield f"etcd: {name} is below {least}"
        if "--auto-compaction-retention" not in flags:
            yield "etcd: is never compacted"
        domain = f"{workload['spec']['serviceName']}.kafila.svc.{release.values['clusterDomain']}"
        scheme = "https" if release.values["tls"]["enabled"] else "http"
        hosts = [f"{workload['metadata']['name']}-{n}.{domain}" for n in range(workload["spec"]["replicas"])]
        cluster = ",".join(f"{host.split('.')[0]}={scheme}://{host}:2380" for host in hosts)
        if flags["--initial-cluster"] != cluster:
            yield f"etcd: --initial-cluster is {flags['--initial-cluster']}, not {cluster}"
        for flag, port in (("--advertise-client-urls", 2379), ("--initial-advertise-peer-urls", 2380)):
            if flags[flag] != f"{scheme}://$(POD_NAME).{domain}:{port}":
                yield f"etcd: {flag} is {flags[flag]}"
        for component, other in release.by_component().items():
            if component in SERVICES and component != "client-node":
                text = release.named("ConfigMap", other["metadata"]["name"])["data"]["config.toml"]
                if not all(f'"{scheme}://{host}:2379"' in text for host in hosts):
                    yield f"{component}: does not know every member of etcd"
        yield from accepted(workload, [flag for flag in command[1:] if not flag.startswith(PLACES)])


def accepted(workload, flags):
    """Starts etcd with the flags that do not depend on the place."""
    with tempfile.TemporaryDirectory() as directory:
        port = binary.free_port()
        try:
            binary.scrape(binary.etcd_command(["--name=a", *flags], directory, port), port)
        except RuntimeError as error:
            yield f"etcd refuses its flags: {error}"


def alert_metrics(release):
    """Every metric in an alert or autoscaler is one that a service exports."""
    texts = [rule["expr"] for r in release.all("PrometheusRule") for g in r["spec"]["groups"] for rule in g["rules"]]
    for scaler in release.all("HorizontalPodAutoscaler"):
        for metric in scaler["spec"]["metrics"]:
            source = metric.get(metric["type"].lower(), {})
            texts.append(source.get("metric", {}).get("name", ""))
    used = {name for text in texts for name in METRIC.findall(text)}
    for name in sorted(used - binary.metrics() if used else ()):
        yield f"the metric {name} does not exist"
    for pattern in sorted({pattern for text in texts for pattern in NAMES.findall(text)}):
        if not any(re.fullmatch(pattern, name) for name in binary.metrics()):
            yield f"no metric has a name like {pattern}"


def alerts(release):
    """Alerts are those of the list that the stack has, too, each about this release's namespace."""
    objects = release.all("PrometheusRule")
    if not objects:
        return
    rules = [rule for group in objects[0]["spec"]["groups"] for rule in group["rules"]]
    for rule in rules:
        runbook = rule["annotations"].get("runbook_url", "").partition("/blob/main/")[2]
        if not runbook.startswith("docs/runbooks/") or not (ROOT / runbook).is_file():
            yield f"{rule['alert']}: names no runbook of docs/runbooks: {runbook or 'none'}"
    scope = f'namespace="{objects[0]["metadata"]["namespace"]}"'
    for rule in rules:
        # What is left of the expression without the selectors of the namespace is about no metric.
        rest = re.sub(rf"\b\w+\{{{scope}\}}|\{{{scope},__name__=~\"[^\"]*\"\}}", "", rule["expr"])
        if METRIC.search(rest) or "{" in rest:
            yield f"{rule['alert']}: a selector is not of the namespace: {rule['expr']}"
    listed = [rule for group in yaml.safe_load((CHART / "files/alerts.yaml").read_text())["groups"] for rule in group["rules"]]
    left_out = set()
    if release.values["etcd"]["mode"] != "bundled":
        left_out |= {"KafilaEtcdNoLeader"}
    if not release.values["clientNode"]["enabled"]:
        left_out |= {"KafilaNodeDiskFails", "KafilaCertificateRenewalFails"}
    expected = [rule["alert"] for rule in listed if rule["alert"] not in left_out]
    if [rule["alert"] for rule in rules] != expected:
        yield f"alerts are {[rule['alert'] for rule in rules]}, not {expected}"
    [queue] = [rule["expr"] for rule in rules if rule["alert"] == "KafilaQueueGrows"]
    depth = release.values["monitoring"]["prometheusRule"]["queueDepth"]
    if not queue.endswith(f"> {depth}"):
        yield f"KafilaQueueGrows: {queue} ignores queueDepth {depth}"


def readme_examples(readme, rendered):
    """The README's YAML: values are accepted, and an adapter's rules offer metrics that a service exports.

    `rendered(values)` yields the problems of a release with these values.
    """
    offered = set()
    for block in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL):
        example = yaml.safe_load(block)
        if "rules" not in example:
            scaling = example.get("schedulerWorker", {}).get("autoscaling", {})
            if scaling.get("queueDepth", {}).get("enabled"):
                yield from rendered(example)
            continue
        for rule in example["rules"]["external"]:
            offered.add(re.match(r"\w+", rule["seriesQuery"])[0])
            if not rule["metricsQuery"].startswith("max("):
                yield "README: a sum counts the queue twice during a failover"
    for name in sorted(offered - binary.metrics()):
        yield f"README: the metric {name} does not exist"
    if "kafila_eval_broker_total_ready" not in offered:
        yield "README: no rule offers the metric of queueDepth"


def certificates(release):
    """Each component has the certificate of its role; nodes have theirs from their machine."""
    tls = release.values["tls"]
    made = {c["spec"]["secretName"]: c["spec"] for c in release.all("Certificate")}
    for component, workload in release.by_component().items():
        mounted = [v for v in pod(workload).get("volumes", []) if v["name"] == "tls"]
        joins = component == "client-node" and tls["introductionSecret"]
        if joins:
            yield from introduction(component, workload, tls)
        if component == "api-gateway":
            yield from node_ca(component, workload, tls)
        yield from keyring(component, workload, release.values["apiGateway"]["keyringKeySecret"])
        if bool(mounted) != (tls["enabled"] and not joins):
            yield f"{component}: has {'a' if mounted else 'no'} certificate"
        for volume in pod(workload).get("volumes", []):
            if volume["name"] == "etcd-tls":
                expected = release.values["etcd"]["tls"]["secretName"] or secret_of(tls, made, "etcd-client")
                if volume["secret"]["secretName"] != expected:
                    yield f"{component}: calls etcd with {volume['secret']['secretName']}, not {expected}"
        if not mounted:
            continue
        if component == "client-node":
            if mounted[0].get("hostPath", {}).get("path") != tls["nodeDirectory"]:
                yield "client-node: its certificate is not the one of its machine"
            continue
        secret = mounted[0]["secret"]["secretName"]
        expected = secret_of(tls, made, ROLES.get(component, component))
        if secret != expected:
            yield f"{component}: mounts {secret}, not the certificate of its role, {expected}"
    region = release.values["region"]
    for secret, spec in made.items():
        if spec.get("isCA"):
            continue
        # spiffe://<region>.kafila/<role>/<name>
        [uri] = spec["uris"]
        match = re.fullmatch(r"spiffe://([^/]+)\.kafila/([a-z-]+)/([A-Za-z0-9._-]+)", uri)
        if not match or match[1] != region:
            yield f"Certificate for {secret}: its URI is {uri}"
        elif spec["dnsNames"][0] != f"{match[2]}.{region}.kafila":
            yield f"Certificate for {secret}: its first DNS name is {spec['dnsNames'][0]}"
        elif any(name.endswith(".kafila") for name in spec["dnsNames"][1:]):
            yield f"Certificate for {secret}: has a second name in the domain of roles"
        needed = {"client auth"} if match and match[2] in ("operator", "etcd-client") else {"server auth", "client auth"}
        if not needed <= set(spec["usages"]):
            yield f"Certificate for {secret}: lacks one of {sorted(needed)}"
    issuers = {issuer["metadata"]["name"] for issuer in release.all("Issuer")}
    for name, spec in made.items():
        if issuers and spec["issuerRef"]["name"] not in issuers:
            yield f"Certificate for {name}: its issuer does not exist"
    # etcd accepts every certificate of its CA, whatever its role.
    signers = {True: set(), False: set()}
    for spec in made.values():
        if not spec.get("isCA"):
            is_etcd = f"etcd.{region}.kafila" in spec["dnsNames"] or f"etcd-client.{region}.kafila" in spec["dnsNames"]
            signers[is_etcd].add(tuple(sorted(spec["issuerRef"].items())))
    for signer in signers[True] & signers[False]:
        yield f"Issuer {dict(signer)['name']}: signs certificates of etcd and others, which etcd accepts, too"


def introduction(component, workload, tls):
    """A node that joins with a token has the token and the CA's certificate, and keeps its key itself."""
    volumes = [v for v in pod(workload).get("volumes", []) if v["name"] == "introduction"]
    if not volumes or volumes[0]["secret"]["secretName"] != tls["introductionSecret"]:
        yield f"{component}: does not mount {tls['introductionSecret']}"
    elif {item["key"] for item in volumes[0]["secret"]["items"]} != {"ca.crt", "token"}:
        yield f"{component}: mounts other keys than ca.crt and token of {tls['introductionSecret']}"


def node_ca(component, workload, tls):
    """The CA of nodes is for the api-gateway."""
    secrets = [v["secret"]["secretName"] for v in pod(workload).get("volumes", []) if v["name"] == "node-ca"]
    expected = [tls["nodeCaSecret"]] if tls["enabled"] and tls["nodeCaSecret"] else []
    if secrets != expected:
        yield f"{component}: mounts {secrets} as the CA of nodes, not {expected}"


def keyring(component, workload, secret):
    """The key-encryption key is for the api-gateway, and readable by its group alone."""
    volumes = [v["secret"] for v in pod(workload).get("volumes", []) if v["name"] == "keyring"]
    secrets = [volume["secretName"] for volume in volumes]
    expected = [secret] if secret and component == "api-gateway" else []
    if secrets != expected:
        yield f"{component}: mounts {secrets} as the key of the keyring, not {expected}"
    elif volumes and volumes[0]["defaultMode"] != 0o440:
        yield f"{component}: the key of the keyring has mode {volumes[0]['defaultMode']:o}"


def secret_of(tls, made, role):
    """The Secret that should have the certificate of a role."""
    if tls["source"] == "secrets":
        return tls["secrets"][role]
    roles = {spec["uris"][0].split("/")[3]: secret for secret, spec in made.items() if not spec.get("isCA")}
    return roles.get(role)


def rights(release, component, workload):
    """Containers have no more rights than their work needs."""
    context = {**pod(workload)["securityContext"], **container(workload)["securityContext"]}
    node = release.values["clientNode"]
    if pod(workload)["automountServiceAccountToken"] is not False:
        yield f"{component}: mounts a token of the Kubernetes API"
    if not context.get("readOnlyRootFilesystem"):
        yield f"{component}: may write to its image's files"
    is_privileged = component == "client-node" and node["hostAccess"] and node["drivers"]["rawExec"]
    if context.get("privileged", False) != is_privileged or pod(workload).get("hostPID", False) != is_privileged:
        yield f"{component}: is privileged without need, or not privileged with need"
    if is_privileged:
        return
    capabilities = context.get("capabilities", {})
    adds = capabilities.get("add", [])
    if capabilities.get("drop") != ["ALL"] or context.get("allowPrivilegeEscalation") is not False:
        yield f"{component}: keeps capabilities"
    if adds and not (component == "client-node" and node["drivers"]["rawExec"]):
        yield f"{component}: has the capabilities {adds}"
    if component != "client-node" and not context.get("runAsNonRoot"):
        yield f"{component}: may run as root"
