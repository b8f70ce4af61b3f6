//! Mutual TLS: handshakes and reloaded files.

mod authority;
mod handshakes;
mod reloads;
