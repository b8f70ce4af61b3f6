//! Differences with podman: [`options`] of its jobs, [`names`](mod@names) of images without a registry, and the
//! [`attributes`] of a node.

mod attributes;
mod names;
mod options;

pub(crate) use self::attributes::attributes;
pub(crate) use self::names::{Names, Registries, names};
pub(crate) use self::options::Options;
