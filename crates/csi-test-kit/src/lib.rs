//! A driver of the Container Storage Interface whose storage system is a directory, for tests.
//!
//! It follows the specification: every call is idempotent, a volume is staged before it is published,
//! and, with [`Settings::attaches`], attached before it is staged. Its state is files, so that several
//! processes are one storage system and a restart loses nothing.
//!
//! `<root>/volumes/<id>` is a volume, `<root>/snapshots/<id>` a copy, `<root>/attached/<volume>/<node>`
//! an attachment. `<root>/calls` has a line for each call, `<node> <method> <volume>`, and
//! `<root>/faults/<method>` makes a method fail (`fail`) or never answer (`hang`) while it exists.

mod controller;
mod identity;
mod node;
mod store;

use std::io;
use std::path::{Path, PathBuf};

use csi::v1::controller_server::ControllerServer;
use csi::v1::identity_server::IdentityServer;
use csi::v1::node_server::NodeServer;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use crate::store::Store;

/// Settings of one driver process.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub root: PathBuf,
    /// The driver's own name of its node.
    pub node_id: String,
    /// Volumes are attached before they are staged.
    pub attaches: bool,
    /// Volumes are staged before they are published.
    pub stages: bool,
    /// 0: no limit.
    pub max_volumes: i64,
}

/// Serves one driver. Cheap to clone.
#[derive(Clone, Debug)]
struct Driver {
    settings: Settings,
    store: Store,
}

/// Serves a driver at `socket` until the future is dropped. A socket file that an earlier process left
/// is replaced.
///
/// # Errors
/// The socket cannot be made.
pub async fn serve(settings: Settings, socket: &Path) -> io::Result<()> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => result?,
    }
    let store = Store::open(&settings.root)?;
    let listener = UnixListenerStream::new(UnixListener::bind(socket)?);
    let driver = Driver { settings, store };
    let served = Server::builder()
        .add_service(IdentityServer::new(driver.clone()))
        .add_service(ControllerServer::new(driver.clone()))
        .add_service(NodeServer::new(driver))
        .serve_with_incoming(listener)
        .await;
    served.map_err(io::Error::other)
}

/// Runs the driver as a program: `DRIVER ROOT NODE-ID [attach] [stage]`, at the socket that
/// `CSI_ENDPOINT` names.
///
/// # Errors
/// An argument or the variable is missing, or the socket cannot be made.
pub fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| {
        let missing = || io::Error::other(format!("{what} is missing"));
        args.next().ok_or_else(missing)
    };
    let (root, node_id) = (next("the root")?, next("the node's id")?);
    let rest: Vec<String> = args.collect();
    let endpoint = std::env::var("CSI_ENDPOINT").map_err(io::Error::other)?;
    let socket = endpoint.strip_prefix("unix://").unwrap_or(&endpoint);
    let settings = Settings {
        root: root.into(),
        node_id,
        attaches: rest.iter().any(|word| word == "attach"),
        stages: rest.iter().any(|word| word == "stage"),
        max_volumes: 0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(settings, Path::new(socket)))
}
