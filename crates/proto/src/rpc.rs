//! Unary calls whose messages are encoded before tonic sees them.
//!
//! tonic's code for calls is generic over both messages, and 136 methods made as many copies of it: the
//! generated code uses [`client::Grpc`] and [`server::Grpc`] in place of tonic's, and all unary methods
//! share one copy. Streaming methods keep tonic's.

pub mod client;
pub mod codec;
pub mod server;

#[cfg(test)]
mod tests;
