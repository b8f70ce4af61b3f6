//! The consul block of a group or task.

use model::consul::Consul;

use super::check::Check;

/// Reads a block, and warns if it asks for more than the default; `of` names its owner.
pub(super) fn consul(check: &mut Check, spec: Option<&spec::Consul>, of: &str) -> Option<Consul> {
    let spec = spec?;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let cluster = spec
        .cluster
        .as_deref()
        .filter(|cluster| !cluster.is_empty());
    let consul = Consul {
        cluster: cluster.unwrap_or(Consul::DEFAULT_CLUSTER).to_owned(),
        namespace: text(&spec.namespace),
        partition: text(&spec.partition),
    };
    let is_usual = |value: &str| matches!(value, "" | "default");
    if ![&consul.cluster, &consul.namespace, &consul.partition]
        .into_iter()
        .all(|value| is_usual(value))
    {
        check.warn(format!(
            "{of} has a consul block, which has no effect: nodes of this version do not use Consul. Remove it"
        ));
    }
    Some(consul)
}
