//! State of the driver.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use model::AllocId;
use task_drivers::{Fingerprint, TaskId, Usage, boot_id};

use crate::engine::Engine;
use crate::image_store::ImageStore;
use crate::pull::Pulls;
use crate::records::Records;
use crate::settings::Settings;

/// Runs tasks as containers. Dropping it leaves them running.
#[derive(Debug)]
pub struct Docker {
    pub(crate) settings: Settings,
    pub(crate) engine: Engine,
    pub(crate) records: Records,
    pub(crate) pulls: Pulls,
    pub(crate) images: ImageStore,
    /// Held while the image of pause containers is made.
    pub(crate) making_image: tokio::sync::Mutex<()>,
    pub(crate) boot_id: String,
    /// Of the last probe. Before the first: the engine has the rights of root, as most have.
    pub(crate) enters_private: AtomicBool,
    /// The result of the last probe.
    fingerprint: Mutex<Fingerprint>,
    /// The result of the last reading.
    usage: Mutex<HashMap<TaskId, Usage>>,
}

impl Docker {
    pub fn new(settings: Settings) -> Self {
        let description = if settings.config.enabled {
            "not probed yet"
        } else {
            "disabled"
        };
        Self {
            engine: Engine::new(settings.engine_kind, settings.config.socket.clone()),
            records: Records::new(settings.state_dir.clone()),
            pulls: Pulls::default(),
            images: ImageStore::open(&settings.state_dir),
            making_image: tokio::sync::Mutex::default(),
            boot_id: boot_id(),
            enters_private: AtomicBool::new(true),
            fingerprint: Mutex::new(Fingerprint {
                description: description.to_owned(),
                ..Fingerprint::default()
            }),
            usage: Mutex::default(),
            settings,
        }
    }

    /// Returns the result of the last probe.
    pub(crate) fn last_fingerprint(&self) -> Fingerprint {
        self.fingerprint
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns what a task used at the last reading; `None`: it did not run, or could not be read.
    pub(crate) fn last_usage(&self, id: &TaskId) -> Option<Usage> {
        let usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.get(id).copied()
    }

    pub(crate) fn set_usage(&self, read: HashMap<TaskId, Usage>) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = read;
    }

    /// Replaces what is known of an allocation's tasks.
    pub(crate) fn set_usage_of(&self, alloc_id: AllocId, read: HashMap<TaskId, Usage>) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.retain(|id, _| id.alloc_id != alloc_id);
        usage.extend(read);
    }

    pub(crate) fn set_fingerprint(&self, found: Fingerprint) {
        *self
            .fingerprint
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = found;
    }
}
