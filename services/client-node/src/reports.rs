//! Reports of allocations to the servers: in batches, the newest state of each allocation, until it
//! is acknowledged.
//!
//! [`lifecycle::ReportQueue`] decides which states to send, and under which numbers. [`reporter`] is
//! the runners' handle to it, [`sender`] the loop that sends batches. A report's number is durable
//! before it is sent.

pub(crate) mod reporter;
pub(crate) mod sender;
