//! The hash map of the tables and indexes.

use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use rustc_hash::FxBuildHasher;

/// A persistent hash map whose order does not depend on the process: replays repeat exactly.
pub(crate) type Map<K, V> = GenericHashMap<K, V, FxBuildHasher, DefaultSharedPtr>;
