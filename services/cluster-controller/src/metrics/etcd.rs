//! Metrics of etcd's members, which the leader publishes.

use model::etcd::EtcdMember;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type ByMember = Family<[(&'static str, String); 1], Gauge>;

#[derive(Clone, Debug, Default)]
pub struct EtcdMetrics {
    pub db_bytes: ByMember,
    pub in_use_bytes: ByMember,
    pub quota_bytes: ByMember,
    pub no_space: ByMember,
    pub compactions: Counter,
    pub compacted_revision: Gauge,
    pub defragmentations: Counter,
    pub disarmed: Counter,
    pub failures: Counter,
}

impl EtcdMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, gauge) in [
            (
                "etcd_db_bytes",
                "Size of a member's database, free pages included",
                &metrics.db_bytes,
            ),
            (
                "etcd_db_in_use_bytes",
                "Data in a member's database",
                &metrics.in_use_bytes,
            ),
            (
                "etcd_quota_bytes",
                "Size at which etcd refuses writes",
                &metrics.quota_bytes,
            ),
            (
                "etcd_no_space",
                "1 while a member's alarm NOSPACE stands",
                &metrics.no_space,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "etcd_compacted_revision",
            "Revision before which this process dropped the history",
            metrics.compacted_revision.clone(),
        );
        for (name, help, counter) in [
            ("etcd_compactions", "Compactions", &metrics.compactions),
            (
                "etcd_defragmentations",
                "Defragmented members",
                &metrics.defragmentations,
            ),
            (
                "etcd_alarms_disarmed",
                "Times that the alarm NOSPACE was disarmed",
                &metrics.disarmed,
            ),
            (
                "etcd_maintenance_failures",
                "Failed compactions, defragmentations and disarms, which are retried",
                &metrics.failures,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        metrics
    }

    /// Publishes the members that answered; the others have no series.
    pub(crate) fn observe(&self, members: &[EtcdMember], configured_quota: u64) {
        self.clear_members();
        for member in members {
            let label = [("member", member.endpoint.clone())];
            let set = |family: &ByMember, value: u64| {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                family.get_or_create(&label).set(value);
            };
            set(&self.db_bytes, member.db_bytes);
            set(&self.in_use_bytes, member.in_use_bytes);
            set(&self.no_space, u64::from(member.is_out_of_space));
            if let Some(quota) = member.quota_bytes(configured_quota) {
                set(&self.quota_bytes, quota);
            }
        }
    }

    /// Removes the series of members: only the leader has them.
    pub(crate) fn clear_members(&self) {
        for family in [
            &self.db_bytes,
            &self.in_use_bytes,
            &self.quota_bytes,
            &self.no_space,
        ] {
            family.clear();
        }
    }
}
