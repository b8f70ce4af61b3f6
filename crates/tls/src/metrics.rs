//! Metrics of certificates and handshakes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::files::{Expiry, now};

/// Cheap to clone; clones share their values.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    expiry: Family<ExpiryLabels, Gauge>,
    reloads: Family<ReloadLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExpiryLabels {
    usage: &'static str,
    /// `certificate` or `authority`.
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    usage: &'static str,
    /// `loaded` or `failed`.
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    reason: &'static str,
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "tls_expiry_seconds",
            "Seconds until the certificate, or the last of the authorities, expires; negative: expired",
            self.expiry.clone(),
        );
        registry.register(
            "tls_reloads",
            "Reloads of changed certificate files, by outcome",
            self.reloads.clone(),
        );
        registry.register(
            "tls_handshakes_failed",
            "Connections refused before their first request, by reason",
            self.failures.clone(),
        );
    }

    /// Counts a refused connection.
    pub fn count_failure(&self, reason: &'static str) {
        let labels = FailureLabels { reason };
        self.failures.get_or_create(&labels).inc();
    }

    pub(crate) fn count_reload(&self, usage: &'static str, is_loaded: bool) {
        let outcome = if is_loaded { "loaded" } else { "failed" };
        let labels = ReloadLabels { usage, outcome };
        self.reloads.get_or_create(&labels).inc();
    }

    pub(crate) fn show_expiry(&self, usage: &'static str, expiry: Expiry) {
        let ends = [
            ("certificate", expiry.certificate),
            ("authority", expiry.authority),
        ];
        for (kind, end) in ends {
            if let Some(end) = end {
                let labels = ExpiryLabels { usage, kind };
                self.expiry.get_or_create(&labels).set(end - now());
            }
        }
    }
}
