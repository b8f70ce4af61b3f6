//! Look-ups of one task's templates: fetched, polled and kept, whatever their source.
//!
//! A rendering answers from memory and names the look-ups that it used ([`Snapshot`]). A [`Watch`] fetches
//! them, several at a time and with a backoff after failures, keeps the answers, looks again when a
//! source says so, and tells of changes. An answer stays when its source fails later: a rendered template
//! never loses its data. [`LookUps`] decides this and is pure; [`Debounce`] delays the rendering until changes
//! have come to rest; [`Fetch`] is a source of data.
//!
//! Messages of sources must have no secrets: they are shown in events.

mod debounce;
mod fetch;
mod look_ups;
mod snapshot;
mod watch;

pub use debounce::Debounce;
pub use fetch::{Fetch, FetchError, Fetched};
pub use look_ups::{LOOKUPS_MAX, LookUps};
pub use snapshot::Snapshot;
pub use watch::{Seen, Watch};
