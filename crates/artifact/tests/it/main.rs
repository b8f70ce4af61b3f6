//! Sources as job files write them.

mod sources;
