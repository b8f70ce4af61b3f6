//! The node's downloads: cache, single flight, retries; then unpacking and the destination.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use artifact::Getter;
use tokio::sync::Semaphore;
use tracing::info;

mod download;
mod helper_runs;
mod orders;
mod puts;

use crate::cache::{Blob, Cache};
use crate::config::ArtifactConfig;
use crate::failure::Failure;
use crate::install::Form;
use crate::key;
use crate::metrics::Metrics;
use crate::process::{self, HelperCommand};
use crate::request::ArtifactRequest;
use crate::workspace::Workspace;

/// Settings of a node's downloads.
#[derive(Clone, Debug)]
pub struct Settings {
    pub config: ArtifactConfig,
    /// The folder of cache and work; the agent's alone.
    pub folder: PathBuf,
    pub helper: HelperCommand,
    pub metrics: Metrics,
}

/// The destination of an artifact.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The task's directory, or the one that tasks share.
    pub base: PathBuf,
    /// Plain and relative.
    pub path: PathBuf,
    pub form: Form,
    /// User and group of the files; `None`: the agent's.
    pub owner: Option<(u32, u32)>,
}

/// The downloads of one node.
pub struct Artifacts {
    config: ArtifactConfig,
    helper: HelperCommand,
    environment: Vec<(String, OsString)>,
    cache: Cache,
    workspace: Workspace,
    running: Semaphore,
    downloads_in_flight: InFlightDownloads,
    /// Numbers the beginnings and ends of downloads.
    moments: AtomicU64,
    metrics: Metrics,
}

type InFlightDownloads = Mutex<HashMap<String, Arc<InFlightDownload>>>;

/// The downloads of one key, one at a time.
#[derive(Default)]
struct InFlightDownload {
    last: tokio::sync::Mutex<Option<Completed>>,
}

/// The end of a download, for those that waited for it.
struct Completed {
    moment: u64,
    result: Result<Weak<Blob>, Failure>,
}

/// A caller that waits for a download. The last one that leaves removes the download's entry, also when its
/// work is dropped.
struct Waiter<'a> {
    downloads_in_flight: &'a InFlightDownloads,
    key: &'a str,
    in_flight: Arc<InFlightDownload>,
}

impl<'a> Waiter<'a> {
    fn take(downloads_in_flight: &'a InFlightDownloads, key: &'a str) -> Self {
        let mut all = downloads_in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let in_flight = Arc::clone(all.entry(key.to_owned()).or_default());
        Self {
            downloads_in_flight,
            key,
            in_flight,
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut all = self
            .downloads_in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The map's and this one.
        if Arc::strong_count(&self.in_flight) <= 2 {
            all.remove(self.key);
        }
    }
}

impl Artifacts {
    /// Opens the node's cache.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(settings: Settings) -> io::Result<Self> {
        let Settings {
            config,
            folder,
            helper,
            metrics,
        } = settings;
        let user = nix::unistd::geteuid().is_root().then(|| user(&config.user));
        let workspace = Workspace::open(folder, user)?;
        let variable = |name: &str| std::env::var_os(name);
        let all = Self {
            cache: Cache::open(workspace.cache(), config.cache_bytes_max)?,
            environment: process::environment(&config.environment, variable),
            running: Semaphore::new(config.parallel.min(Semaphore::MAX_PERMITS)),
            workspace,
            helper,
            config,
            downloads_in_flight: Mutex::default(),
            moments: AtomicU64::new(0),
            metrics,
        };
        all.note_cache();
        Ok(all)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Puts an artifact to its destination. Dropped before its end, it stops the download.
    ///
    /// # Errors
    /// The artifact is not there; a part of it may be.
    pub async fn put(
        &self,
        wanted: &ArtifactRequest,
        destination: &Destination,
    ) -> Result<(), Failure> {
        let put = tokio::time::timeout(self.config.timeout, self.try_put(wanted, destination));
        let result = put.await.unwrap_or_else(|_| {
            let limit = self.config.timeout.as_secs();
            Err(Failure::passing(format!(
                "not done within {limit} s, the limit `artifact.timeout` of the node"
            )))
        });
        result.map_err(|failure| {
            self.metrics.failures.inc();
            Failure {
                message: format!("{}: {}", wanted.source.getter, failure.message),
                ..failure
            }
        })
    }

    async fn try_put(
        &self,
        wanted: &ArtifactRequest,
        destination: &Destination,
    ) -> Result<(), Failure> {
        let scheme = wanted.source.getter.scheme();
        if !self.config.schemes.iter().any(|it| it == scheme) {
            return Err(Failure::lasting(format!(
                "this node does not allow {scheme:?}; its setting `artifact.schemes` has {}",
                self.config.schemes.join(", ")
            )));
        }
        if let Getter::Git(git) = &wanted.source.getter {
            return self.put_repository(git, wanted, destination).await;
        }
        let blob = self.blob(wanted).await?;
        self.put_blob(&blob, wanted, destination).await
    }

    /// Returns the downloaded file. Of several callers one downloads, and the others use its result.
    async fn blob(&self, wanted: &ArtifactRequest) -> Result<Arc<Blob>, Failure> {
        let key = key::of(wanted);
        let begun = self.moments.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter::take(&self.downloads_in_flight, &key);
        let mut last = waiter.in_flight.last.lock().await;
        let landed = last.as_ref().filter(|landed| landed.moment > begun);
        let shared = landed.and_then(|landed| match &landed.result {
            Ok(blob) => blob.upgrade().map(Ok),
            Err(failure) => Some(Err(failure.clone())),
        });
        if let Some(result) = shared {
            if result.is_ok() {
                self.metrics.cache_hits.inc();
            }
            return result;
        }
        let result = self.download(&key, wanted).await;
        *last = Some(Completed {
            moment: self.moments.fetch_add(1, Ordering::Relaxed),
            result: match &result {
                Ok(blob) => Ok(Arc::downgrade(blob)),
                Err(failure) => Err(failure.clone()),
            },
        });
        result
    }
}

/// Returns the ids of the helper's user. Without such a user: those that belong to none on all systems.
fn user(name: &str) -> (u32, u32) {
    const NOBODY: (u32, u32) = (65_534, 65_534);
    match nix::unistd::User::from_name(name) {
        Ok(Some(user)) => (user.uid.as_raw(), user.gid.as_raw()),
        _ => {
            info!(name, "the helper's user does not exist: using the id 65534");
            NOBODY
        }
    }
}

fn stall_ms(stall: Duration) -> u64 {
    u64::try_from(stall.as_millis()).unwrap_or(u64::MAX)
}
