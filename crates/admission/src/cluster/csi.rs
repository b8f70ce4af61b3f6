//! Volumes of storage systems: registered, deregistered, attached to nodes and detached from them.
//!
//! In reading order: [`register`] and [`deregister`] decide on a volume, [`detach`] on the end of its
//! attachments; the beginning is the nodes' request ([`crate::nodes::csi`]). [`controller`] finds the
//! node whose plugin is called.
//!
//! **Invariant**: an attachment is stored before the first call of the plugin that may attach the volume,
//! and deleted after the call that has detached it.

pub mod controller;
pub mod deregister;
pub mod detach;
pub mod register;
#[cfg(test)]
mod tests;

use model::refusal::{Kind, Refusal};
use model::{FieldErrors, NodeId};

/// The reason why a volume stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsiRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "there is no volume {0:?} in this namespace: want one of 'kafila volume status -type=csi'"
    )]
    NoVolume(String),
    /// Source: Nomad's text, as far as the comma.
    #[error("volume in use: {id}, by allocations {}", .allocs.join(", "))]
    InUse { id: String, allocs: Vec<String> },
    #[error(
        "volume {id} is attached to node {node_id}: it is detached once no allocation uses it; \
         'kafila volume status -type=csi {id}' shows the progress"
    )]
    Attached { id: String, node_id: NodeId },
    #[error(
        "CSI plugin {plugin_id:?} has no healthy controller that can {what}: 'kafila plugin status \
         {plugin_id}' shows its nodes"
    )]
    NoController {
        plugin_id: String,
        what: &'static str,
    },
    #[error("volume {id} is registered already, with other fields: want another id")]
    Exists { id: String },
}

impl Refusal for CsiRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::NoVolume(_) => Kind::NotFound,
            Self::InUse { .. } | Self::Attached { .. } | Self::NoController { .. } => {
                Kind::Precondition
            }
            Self::Exists { .. } => Kind::AlreadyExists,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}
