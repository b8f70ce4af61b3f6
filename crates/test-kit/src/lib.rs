//! What tests share: valid objects, a clock that a test moves, ids that repeat, waiting without
//! sleeping, a real etcd, and a network that misbehaves. A dev-dependency only.

pub mod builders;
pub mod clock;
pub mod etcd;
pub mod ids;
pub mod proxy;
pub mod wait;

pub use clock::ManualClock;
pub use ids::SeededIds;
pub use wait::wait_for;
