//! An embedded etcd on a loopback port with a connected client, for tests of services, and the check of a
//! store's whole history.
//!
//! A dev-dependency only. It is apart from `test-kit`, so that tests of pure crates compile neither
//! the store nor the embedded etcd.

mod observed;
mod replay;

use std::net::SocketAddr;

use embedded_etcd::EmbeddedEtcd;
use store::{Client, ClientOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use observed::ObservedStore;
pub use replay::{Report, check_history};

/// A running store, gone when dropped.
#[derive(Debug)]
pub struct TestStore {
    pub address: SocketAddr,
    /// Its address as in `http://127.0.0.1:2379`.
    pub endpoint: String,
    pub etcd: EmbeddedEtcd,
}

impl TestStore {
    /// Starts one in memory.
    ///
    /// # Panics
    /// No loopback port is free.
    pub async fn start() -> Self {
        Self::start_with(embedded_etcd::Config::in_memory()).await
    }

    /// Starts one with `config`.
    ///
    /// # Panics
    /// No loopback port is free, or `config` cannot be used.
    pub async fn start_with(config: embedded_etcd::Config) -> Self {
        let etcd = EmbeddedEtcd::start(config).await.expect("an embedded etcd");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(etcd.serve(listener, CancellationToken::new()));
        Self {
            address,
            endpoint: format!("http://{address}"),
            etcd,
        }
    }

    /// Returns a new client of it.
    ///
    /// # Panics
    /// Its endpoint is no URI.
    pub async fn client(&self) -> Client {
        let endpoints = std::slice::from_ref(&self.endpoint);
        let client = Client::connect(endpoints, ClientOptions::default()).await;
        client.expect("a client")
    }
}
