//! The specification's scenarios by number, healthy allocations, and drains of random clusters.

#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers here are far below any limit"
)]

mod fixture;
mod pace;
mod property;
mod scenarios;
