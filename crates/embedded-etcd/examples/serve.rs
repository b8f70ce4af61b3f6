//! Serves a store over TCP, to try it with etcdctl.
//!
//! ```text
//! cargo run -p embedded-etcd --example serve -- 127.0.0.1:2379 [FILE]
//! ```

use anyhow::{Context, Result};
use embedded_etcd::{Config, EmbeddedEtcd};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .context("which address, say 127.0.0.1:2379?")?;
    let config = arguments
        .next()
        .map_or_else(Config::in_memory, Config::on_disk);
    let store = EmbeddedEtcd::start(config).await?;
    let listener = TcpListener::bind(&address).await?;
    println!("serving {}", listener.local_addr()?);
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(store.serve(listener, shutdown.clone()));
    tokio::signal::ctrl_c().await?;
    shutdown.cancel();
    serving.await??;
    store.shutdown().await;
    Ok(())
}
