//! Job files from outside the crate: what they become, and what is said about wrong ones.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod api_json;
mod examples;
mod language;
mod malformed;
mod properties;
mod rules;
mod scenarios;
mod support;
mod variables;
