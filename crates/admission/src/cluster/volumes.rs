//! Host volumes: registered, deleted in two steps, and released from claims.
//!
//! [`super::deletion`] explains the two steps; here the plan that places an allocation with a volume
//! compares the volume's key. A registration of an existing volume can only add capabilities,
//! because a plan that is under way may rely on any that it would take away.

mod claims;
mod delete;
mod register;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use claims::delete_claim;
pub use claims::release;
pub use delete::delete;
pub use register::register;
pub use request::{VolumeContext, VolumeRefusal};
