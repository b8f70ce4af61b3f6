//! Downloads by a real helper process, from servers of the test.

mod archives;
mod cache;
mod git;
mod hostile;
mod http;
mod place;
mod sandbox;
mod server;
