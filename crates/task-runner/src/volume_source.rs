//! The source of what a node needs to mount storage systems' volumes: a gateway.

use std::fmt;

use csi_node::Mount;
use model::AllocId;
use task_drivers::driver::BoxFuture;

/// A volume of an allocation.
#[derive(Clone, Default)]
pub struct WantedVolume {
    pub mount: Mount,
    /// The reason why it must not be mounted yet; `None`: it may be.
    pub waiting: Option<String>,
}

/// Tells which volumes an allocation needs.
pub trait VolumeSource: fmt::Debug + Send + Sync {
    /// Returns the volumes of an allocation: one attempt, of at most 10 s.
    fn volumes(&self, alloc_id: AllocId) -> BoxFuture<'static, Result<Vec<WantedVolume>, String>>;
}

/// The source of a node without gateways.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVolumes;

impl VolumeSource for NoVolumes {
    fn volumes(&self, _: AllocId) -> BoxFuture<'static, Result<Vec<WantedVolume>, String>> {
        Box::pin(async { Err("this node has no gateway".to_owned()) })
    }
}
