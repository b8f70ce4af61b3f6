//! Nodes' sessions: registration, heartbeats, what they are to run, what has become of it.
//!
//! Pure: [`gate`] says whether a caller is the node it claims to be, [`registration`] what becomes
//! of a record, [`liveness`] remembers who was heard from, [`assignments`] builds what a node is
//! sent, [`sessions`] remembers what each stream has yet to be sent, [`reports`] says what is
//! written for what nodes tell. Around them: [`liveness_loop`], [`dispatch_loop`] and
//! [`report_loop`] do the I/O.

pub mod assignments;
pub mod dispatch_loop;
pub mod gate;
pub mod liveness;
pub mod liveness_loop;
pub mod node_evals;
pub mod registration;
pub mod report_loop;
pub mod reports;
pub mod sessions;
#[cfg(test)]
mod tests;
