//! The JSON that `-json` prints, and its golden tests.

pub(crate) mod log;

pub(crate) use nomad_json::*;

#[cfg(test)]
mod tests;
