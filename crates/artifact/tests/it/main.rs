//! Sources as job files write them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod sources;
