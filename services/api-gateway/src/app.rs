//! The wiring of a gateway.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admission::space::SpaceLimits;
use csi_volumes::CsiVolumes;
use gateway_core::{Core, WorkSlots};
use keyring::{Keyring, KeyringFile};
use node_calls::NodeCalls;
use node_connections::NodeConnections;
use node_gateway::{Mounted, NodeCa, NodeConfig};
use service_host::{Error, Host, Rpcs, Running, Service};
use service_kit::{CancellationToken, Clock, ConfigError, IdSource};
use store::Interest;
use tokio::task::JoinSet;
use tracing::{Instrument as _, info, info_span};
use workload_identity::discovery::issuer_problem;

use crate::backup::slot::BackupSlot;
use crate::concurrency_limit::ConcurrencyLimit;
use crate::config::Config;
use crate::events::slots::StreamSlots;
use crate::gateway::{Gateway, Shared};
use crate::metrics::Metrics;
use crate::reads::table_changes::{self, TableChanges};
use crate::space::{self, Space};
use crate::{SERVICE, grpc};

pub type App = service_host::App<ApiGateway>;

#[derive(Debug)]
pub struct ApiGateway;

impl Service for ApiGateway {
    const NAME: &'static str = SERVICE;
    const INTEREST: Interest = Interest::ALL;
    type Config = Config;

    fn check(config: &Config) -> Result<(), ConfigError> {
        let invalid = |problem: &str| {
            Err(ConfigError::Invalid {
                service: SERVICE.to_owned(),
                problem: problem.to_owned(),
            })
        };
        if !(10..=100).contains(&config.refuse_at_etcd_percent) {
            return invalid("`refuse_at_etcd_percent`: want 10 to 100, where 100 is never");
        }
        if !(1..=1_000_000).contains(&config.max_job_requests) {
            return invalid(
                "`max_job_requests`: want 1 to 1000000; with 0 no job could be registered",
            );
        }
        if let Some(problem) = config.etcd.quota_problem() {
            return invalid(problem);
        }
        if config.node_ca_cert_file.is_some() != config.node_ca_key_file.is_some() {
            return invalid("`node_ca_cert_file` and `node_ca_key_file` need each other");
        }
        let year = Duration::from_secs(8_760 * 3_600);
        if !(Duration::from_secs(10)..=year).contains(&config.node_certificate_ttl) {
            return invalid("`node_certificate_ttl`: want 10s to 8760h");
        }
        if let Some(problem) = config.oidc_issuer.as_deref().and_then(issuer_problem) {
            return invalid(&format!("`oidc_issuer`: {problem}"));
        }
        Ok(())
    }

    fn node_ca(config: &Config) -> Option<&Path> {
        config.node_ca_cert_file.as_deref()
    }

    /// Serves until drained. Then streams and blocked reads end, open RPCs finish, queued reports are
    /// stored, and the loops stop.
    fn run(config: Config, host: Host, drain: CancellationToken) -> Running {
        Box::pin(run_until_drained(config, host, drain))
    }
}

async fn run_until_drained(
    config: Config,
    mut host: Host,
    drain: CancellationToken,
) -> Result<(), Error> {
    let grace = config.shutdown_grace_period;
    let name = match config.name.as_str() {
        "" => host.address().to_owned(),
        name => name.to_owned(),
    };
    let node_ca = node_ca(&config, &host)?;
    let keyring = keyring(&config)?;
    let mut loops = JoinSet::new();
    let files = (node_ca, keyring);
    let (gateway, nodes) = gateway(config, files, &host, &drain, &mut loops);
    let issuer = gateway.config.oidc_issuer.as_deref();
    gateway.keyring.serve_documents(issuer, &host.metrics);
    let keyring = Arc::clone(&gateway.keyring);
    host.ready_when(keyring.opened());
    loops.spawn(
        keyring::maintenance::run(keyring, host.ended().clone())
            .instrument(info_span!("keyring_loop")),
    );
    let subscribed = gateway.core.replica.subscribe();
    loops.spawn(
        table_changes::follow(
            Arc::clone(&gateway.tables),
            subscribed.1,
            host.ended().clone(),
        )
        .instrument(info_span!("table_changes")),
    );
    let following = space::follow(
        Arc::clone(&gateway.core),
        Arc::clone(&gateway.space),
        gateway.metrics.clone(),
        host.ended().clone(),
    );
    loops.spawn(following.instrument(info_span!("etcd_space")));
    nodes.spawn_loops(&mut loops, name, host.ended());
    let metrics_address = host.metrics_address().map_err(Error::Address)?;
    info!(address = host.address(), metrics = %metrics_address, "gateway listens");
    let rpcs = Rpcs {
        routes: grpc::routes(gateway),
        names: grpc::RPC_SERVICES.to_vec(),
    };
    host.run_with_loops(rpcs, loops, grace, drain).await
}

/// Reads the CA of nodes once, so that a wrong one is found at the start.
fn node_ca(config: &Config, host: &Host) -> Result<Option<NodeCa>, Error> {
    let (Some(cert_file), Some(key_file)) = (&config.node_ca_cert_file, &config.node_ca_key_file)
    else {
        return Ok(None);
    };
    // In plaintext there is no identity, and a CA of nodes is refused before.
    let Some(identity) = host.transport().identity() else {
        return Ok(None);
    };
    let node_ca = NodeCa {
        cert_file: cert_file.clone(),
        key_file: key_file.clone(),
        region: identity.region().to_owned(),
        certificate_ttl: config.node_certificate_ttl,
    };
    node_ca.read().map_err(|error| ConfigError::Invalid {
        service: SERVICE.to_owned(),
        problem: service_kit::run::chain(&error),
    })?;
    Ok(Some(node_ca))
}

/// Reads the file of key-encryption keys once, so that a wrong one is found at the start.
fn keyring(config: &Config) -> Result<Option<KeyringFile>, Error> {
    let Some(path) = &config.keyring_key_file else {
        return Ok(None);
    };
    let file = KeyringFile(path.clone());
    file.read().map_err(|error| ConfigError::Invalid {
        service: SERVICE.to_owned(),
        problem: service_kit::run::chain(&error),
    })?;
    Ok(Some(file))
}

fn gateway(
    config: Config,
    (node_ca, keyring): (Option<NodeCa>, Option<KeyringFile>),
    host: &Host,
    drain: &CancellationToken,
    loops: &mut JoinSet<()>,
) -> (Shared, Mounted) {
    let core = Arc::new(Core::new(
        host.replica.clone(),
        Clock::real(),
        IdSource::from_os(),
        host.metrics.register(gateway_core::Metrics::register),
        config.request_timeout,
        host.ended().clone(),
        loops,
    ));
    let gateways = if config.gateways.is_empty() {
        vec![host.address().to_owned()]
    } else {
        config.gateways.clone()
    };
    let node_config = NodeConfig {
        gateways,
        heartbeat_ttl: config.heartbeat_ttl,
        transport: host.transport().clone(),
        node_ca,
        oidc_issuer: config.oidc_issuer.clone(),
    };
    let node_metrics = host
        .metrics
        .register(node_gateway::metrics::Metrics::register);
    let keyring_metrics = host.metrics.register(keyring::Metrics::register);
    let keyring = Arc::new(Keyring::new(Arc::clone(&core), keyring, keyring_metrics));
    let connections = NodeConnections::new(
        Arc::clone(&core),
        host.address().to_owned(),
        host.transport().clone(),
        host.metrics.register(node_connections::Metrics::register),
        drain.clone(),
    );
    let node_calls = NodeCalls {
        transport: host.transport().clone(),
        connections,
        metrics: host.metrics.register(node_calls::Metrics::register),
        drain: drain.clone(),
    };
    let shared = (Arc::clone(&keyring), node_calls.clone());
    let nodes = node_gateway::mount(
        Arc::clone(&core),
        node_config,
        shared,
        node_metrics,
        drain.clone(),
    );
    let limits = SpaceLimits {
        refuse_percent: config.refuse_at_etcd_percent.into(),
        quota_bytes: config.etcd.quota_bytes,
    };
    let gateway = Arc::new(Gateway {
        address: host.address().to_owned(),
        agent: process_log::ProcessLog::new(drain.clone()),
        space: Arc::new(Space::new(limits)),
        work_slots: WorkSlots::new(config.max_job_requests),
        config,
        csi: CsiVolumes::new(Arc::clone(&core), node_calls.clone()),
        node_calls,
        keyring,
        core,
        node: Arc::clone(nodes.gateway()),
        tables: Arc::new(TableChanges::default()),
        metrics: host.metrics.register(Metrics::register),
        drain: drain.clone(),
        dry_runs: ConcurrencyLimit::for_this_machine(),
        streams: StreamSlots::default(),
        backups: BackupSlot::default(),
    });
    (gateway, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused_with_their_name() {
        let problem = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            ApiGateway::check(&config).map_err(|error| error.to_string())
        };
        assert_eq!(problem(|_| {}), Ok(()));
        for (name, change) in [
            (
                "`max_job_requests`",
                (|it| it.max_job_requests = 0) as fn(&mut Config),
            ),
            ("`max_job_requests`", |it| it.max_job_requests = usize::MAX),
            ("`refuse_at_etcd_percent`", |it| {
                it.refuse_at_etcd_percent = 9
            }),
        ] {
            let refused = problem(change).unwrap_err();
            assert!(refused.contains(name), "{refused}");
        }
    }
}
