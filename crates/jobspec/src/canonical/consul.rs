//! The consul block of a group or task.

use model::consul::Consul;

/// Reads a block.
pub(super) fn consul(spec: Option<&job_fields::Consul>) -> Option<Consul> {
    let spec = spec?;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let cluster = spec
        .cluster
        .as_deref()
        .filter(|cluster| !cluster.is_empty());
    Some(Consul {
        cluster: cluster.unwrap_or(Consul::DEFAULT_CLUSTER).to_owned(),
        namespace: text(&spec.namespace),
        partition: text(&spec.partition),
    })
}
