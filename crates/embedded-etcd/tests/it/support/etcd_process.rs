//! The etcd that the embedded store is compared with.

use std::process::Command;

use test_kit::etcd::{self, Etcd};
use tonic::transport::{Channel, Endpoint};

/// The oldest etcd whose behaviour is matched in everything that is compared: since then a
/// compaction keeps the deletion made at its very revision.
const OLDEST: (u32, u32, u32) = (3, 5, 16);

/// Limits of etcd that a test sets.
pub(crate) struct EtcdOptions {
    pub(crate) max_txn_ops: usize,
    pub(crate) max_request_bytes: usize,
    /// As in `--experimental-watch-progress-notify-interval`.
    pub(crate) progress_interval: &'static str,
}

/// Returns whether there is an etcd to compare with; if there is none, the test is skipped with a
/// message.
///
/// # Panics
/// `KAFILA_REQUIRE_ETCD=1`, and there is no etcd or one that is too old.
pub(crate) fn is_available(test: &str) -> bool {
    if !etcd::available() {
        return false;
    }
    let output = Command::new(etcd::program())
        .arg("--version")
        .output()
        .expect("it ran a moment ago");
    let found = version(&String::from_utf8_lossy(&output.stdout));
    if found.is_some_and(|found| found >= OLDEST) {
        return true;
    }
    let (major, minor, patch) = OLDEST;
    let needs =
        format!("{test} needs etcd {major}.{minor}.{patch} or later, the one here is {found:?}");
    assert!(!etcd::is_required(), "{needs}");
    println!("SKIPPED: {needs}");
    false
}

fn version(text: &str) -> Option<(u32, u32, u32)> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("etcd Version: "))?;
    let mut parts = line.trim().split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// Starts an etcd with these limits and waits until it answers.
pub(crate) async fn start(options: &EtcdOptions) -> Etcd {
    let arguments = [
        format!("--max-txn-ops={}", options.max_txn_ops),
        format!("--max-request-bytes={}", options.max_request_bytes),
        format!(
            "--experimental-watch-progress-notify-interval={}",
            options.progress_interval
        ),
    ];
    let arguments = arguments.each_ref().map(String::as_str);
    Etcd::start_with(&arguments).await.unwrap()
}

pub(crate) fn channel(etcd: &Etcd) -> Channel {
    Endpoint::from_shared(etcd.endpoint())
        .unwrap()
        .connect_lazy()
}
