//! Shared test helpers: valid objects, a manual clock, repeatable ids, waiting without
//! sleeping, a real etcd, a scraper of metrics, and a network that misbehaves. A dev-dependency only.

pub mod builders;
pub mod clock;
pub mod etcd;
pub mod ids;
pub mod proxy;
mod scrape;
pub mod stored;
pub mod wait;
pub mod writes;

pub use clock::ManualClock;
pub use ids::SeededIds;
pub use scrape::scrape;
pub use stored::Stored;
pub use wait::wait_for;
