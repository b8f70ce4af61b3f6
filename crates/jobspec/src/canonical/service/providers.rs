//! The registry of a service, and the attributes that only Consul has.

use std::collections::BTreeMap;

use model::consul::Consul;
use model::service::{Provider, Service, ServiceWeights};

use crate::canonical::environment;
use crate::canonical::validation::{Path, Validation};

const CONSUL: &str = "consul";
const NOMAD: &str = "nomad";

/// Reads the provider. Only an explicit one is Consul, unlike in Nomad: see the decision 0019.
pub(super) fn provider(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Service,
) -> Provider {
    match spec.provider.as_deref().unwrap_or_default() {
        "" | NOMAD => Provider::Kafila,
        CONSUL => {
            cluster(check, path, spec.cluster.as_deref().unwrap_or_default());
            Provider::Consul
        }
        other => {
            let message = format!(
                "unknown provider {other:?}: use \"nomad\", for Kafila itself, or \"consul\""
            );
            check.error(path.field("provider"), message);
            Provider::Kafila
        }
    }
}

fn cluster(check: &mut Validation, path: &Path, cluster: &str) {
    if !matches!(cluster, "" | Consul::DEFAULT_CLUSTER) {
        let message = format!(
            "the cluster {cluster:?} of Consul is not supported by this version of Kafila: remove it, each node \
             has one Consul"
        );
        check.error(path.field("cluster"), message);
    }
}

/// Reads the attributes that only Consul has; those of other providers have no effect.
pub(super) fn consul_parts(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Service,
    provider: Provider,
) -> Service {
    let service = Service {
        provider,
        ..Service::default()
    };
    if provider != Provider::Consul {
        return service;
    }
    Service {
        enable_tag_override: spec.enable_tag_override.unwrap_or(false),
        canary_meta: environment::variables(check, path, "canary_meta", &spec.canary_meta),
        tagged_addresses: tagged_addresses(check, path, &spec.tagged_addresses),
        weights: spec.weights.map(|weights| {
            let path = path.block("weights");
            ServiceWeights {
                passing: check.number(path.field("passing"), weights.passing, 1),
                warning: check.number(path.field("warning"), weights.warning, 1),
            }
        }),
        kind: kind(check, path, spec.kind.as_deref().unwrap_or_default()),
        ..service
    }
}

/// Source: the kinds of Consul's documentation. Those of Connect's own services need Connect.
fn kind(check: &mut Validation, path: &Path, kind: &str) -> String {
    if matches!(
        kind,
        "connect-proxy" | "mesh-gateway" | "terminating-gateway" | "ingress-gateway"
    ) {
        let message = format!(
            "the kind {kind:?} is not supported by this version of Kafila: remove it, Consul Connect is not used"
        );
        check.error(path.field("kind"), message);
    }
    kind.to_owned()
}

fn tagged_addresses(
    check: &mut Validation,
    path: &Path,
    addresses: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    for (name, address) in addresses {
        let port = address.rsplit_once(':').map(|(_, port)| port);
        let is_address =
            address.contains("${") || port.is_some_and(|port| port.parse::<u16>().is_ok());
        if !is_address {
            let message = format!(
                "{name} = {address:?} is not an address with a port: write one as in \"192.0.2.7:8080\""
            );
            check.error(path.field("tagged_addresses"), message);
        }
    }
    environment::variables(check, path, "tagged_addresses", addresses)
}

/// Refuses a group whose services name both providers. `path` is the group's.
///
/// Source: Nomad's rule; services without a provider go along with either.
pub(in crate::canonical) fn check_providers(
    check: &mut Validation,
    path: &Path,
    services: &[job_fields::Service],
    tasks: &[job_fields::Task],
) {
    let all = services
        .iter()
        .chain(tasks.iter().flat_map(|task| &task.services));
    let named: Vec<&str> = all
        .filter_map(|service| service.provider.as_deref())
        .collect();
    if named.contains(&NOMAD) && named.contains(&CONSUL) {
        let message = "Multiple service providers used: task group services must use the same provider: write \
                       the same provider in each of them";
        check.error(path.field("service"), message);
    }
}

/// Warns of attributes of Consul in services of other providers.
pub(super) fn warn(check: &mut Validation, services: &[&job_fields::Service]) {
    let others = || {
        let is_other = |service: &&&job_fields::Service| {
            service.provider.as_deref().unwrap_or_default() != CONSUL
        };
        services.iter().filter(is_other)
    };
    let checks = || others().flat_map(|service| &service.checks);
    for (name, is_set) in [
        (
            "enable_tag_override",
            others().any(|it| it.enable_tag_override == Some(true)),
        ),
        ("kind", others().any(|it| is_filled(it.kind.as_deref()))),
        ("weights", others().any(|it| it.weights.is_some())),
        ("canary_meta", others().any(|it| !it.canary_meta.is_empty())),
        (
            "tagged_addresses",
            others().any(|it| !it.tagged_addresses.is_empty()),
        ),
        (
            "failures_before_warning",
            checks().any(|it| it.failures_before_warning.unwrap_or(0) > 0),
        ),
    ] {
        if is_set {
            check.warn(format!(
                "{name} of services has no effect without provider = \"consul\": remove it"
            ));
        }
    }
}

fn is_filled(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}
