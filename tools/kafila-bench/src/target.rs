//! The cluster of a run: the one at an address, or a suite that the run starts.

use anyhow::{Context, Result};
use integration_tests::suite::{self, SERVICES, Suite};
use kafila_client::{Client, Config};

use crate::args::Common;

/// The cluster, its client, and its processes.
pub(crate) struct Target {
    pub(crate) api: Client,
    pub(crate) gateways: Vec<String>,
    pub(crate) suite: Option<Suite>,
    /// Name and process id.
    pub(crate) processes: Vec<(String, u32)>,
}

impl Target {
    /// Connects, after starting the suite if it is asked for.
    ///
    /// # Errors
    /// The suite does not start; an address or a file of TLS cannot be used.
    pub(crate) async fn open(common: &Common) -> Result<Self> {
        let mut config = config(common);
        let mut processes = common.pids.clone();
        let suite = if common.suite {
            let suite = Suite::start(suite::Options {
                nodes: 0,
                is_measured: true,
                ..suite::Options::default()
            });
            let suite = suite.await.context("cannot start the suite")?;
            config.gateways = vec![suite.address()];
            if let Some(pid) = suite.etcd_pid() {
                processes.push(("etcd".to_owned(), pid));
            }
            let services = SERVICES.iter().filter_map(|name| {
                let pid = suite.process(name)?.pid();
                Some(((*name).to_owned(), pid))
            });
            processes.extend(services);
            Some(suite)
        } else {
            None
        };
        let gateways = config.gateways.clone();
        let gateways = gateways
            .iter()
            .map(|text| kafila_client::address::parse(text));
        Ok(Self {
            gateways: gateways.collect::<Result<_, _>>()?,
            api: Client::new(config)?,
            suite,
            processes,
        })
    }
}

fn config(common: &Common) -> Config {
    let mut config = Config::from_env();
    if let Some(addresses) = &common.address {
        let addresses = addresses.split(',');
        config.gateways = addresses.map(|text| text.trim().to_owned()).collect();
    }
    let tls = &mut config.tls;
    tls.ca_cert = common.ca_cert.clone().or(tls.ca_cert.take());
    tls.client_cert = common.client_cert.clone().or(tls.client_cert.take());
    tls.client_key = common.client_key.clone().or(tls.client_key.take());
    tls.server_name = common.tls_server_name.clone().or(tls.server_name.take());
    tls.skip_verify |= common.tls_skip_verify;
    config.timeout = common.limit;
    config
}
