//! Locks of variables: acquired, renewed and released, and the condition that a lock adds to a write.
//!
//! A lock is two keys of etcd under leases. The holder's key lives for the TTL after the last renewal, and
//! the delay's key longer by the delay. The holder of the first may write; as long as the second is there,
//! the lock cannot be acquired. A release deletes both at once. etcd's leases are the only timers.
//!
//! The decisions are pure, in `admission::cluster::locks`. [`locks`] reads, commits and renews, and `requests`
//! answers requests. The callers are the crate `keyring`, for writes, and the api-gateway.
//!
//! **Invariant**: a holder whose deadline is its TTL after it sent its last successful request has the delay
//! behind that deadline for itself: the delay's lease is renewed before the holder's.

pub mod locks;
mod requests;

pub use locks::Locks;
pub use requests::show;
