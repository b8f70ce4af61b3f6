//! Downloads by a real helper process, from servers of the test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archives;
mod cache;
mod git;
mod hostile;
mod http;
mod place;
mod sandbox;
mod server;
