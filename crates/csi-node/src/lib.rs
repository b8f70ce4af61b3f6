//! Storage on a node: plugins of the Container Storage Interface that tasks provide, and the volumes that
//! they mount for allocations.
//!
//! **Invariant**: what a mount needs to be undone is on disk before the plugin is called, and is
//! removed after the plugin has undone it. So a restarted agent finds what an earlier run left, at
//! whatever moment that ended.
//!
//! In reading order: [`layout`] names the directories, [`sharing`] lets containers show their mounts
//! to the node; [`registry`] has the plugins, [`supervision`] watches one; [`record`] is the progress
//! on disk, [`mounts`] mounts and unmounts; [`backoff`] is the pause between tries.

pub mod backoff;
pub mod layout;
pub mod mounts;
mod record;
pub mod registry;
pub mod sharing;
pub mod supervision;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use layout::{Layout, PluginPaths};
pub use mounts::{Mount, Mounts};
pub use registry::{Registry, TaskKey};
pub use supervision::PluginEvent;

/// The storage of one node.
#[derive(Debug)]
pub struct Storage {
    pub layout: Layout,
    pub registry: Arc<Registry>,
    pub mounts: Mounts,
}

impl Storage {
    /// Opens the storage below `base`, and reads what an earlier run of the agent has mounted.
    /// `boot_id`: names the current run of the machine; mounts do not outlive it.
    ///
    /// # Errors
    /// A directory cannot be created or read.
    pub fn open(base: &Path, boot_id: &str) -> io::Result<Self> {
        let layout = Layout::create(base)?;
        let registry = Arc::new(Registry::default());
        Ok(Self {
            mounts: Mounts::open(layout.clone(), Arc::clone(&registry), boot_id)?,
            layout,
            registry,
        })
    }
}
