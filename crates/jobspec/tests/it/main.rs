//! Job files through the public API of the crate: jobs, defaults, errors.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod api_json;
mod blocks;
mod defaults;
mod examples;
mod language;
mod malformed;
mod properties;
mod rules;
mod scenarios;
mod support;
mod variables;
