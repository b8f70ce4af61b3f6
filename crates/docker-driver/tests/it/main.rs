//! The driver on a real Docker Engine.
//!
//! Without one these tests are skipped with a notice, unless `KAFILA_REQUIRE_CONTAINERS=1` is set. They
//! need no registry: their image is made of this machine's shell.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod engine;
mod fingerprint;
mod images;
mod podman;
mod registry;
