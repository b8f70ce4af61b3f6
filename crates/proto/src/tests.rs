//! Tests of the conversions: round trips, and errors with paths.

mod draw;
mod errors;
mod nouns;
mod round_trip;
mod status;
