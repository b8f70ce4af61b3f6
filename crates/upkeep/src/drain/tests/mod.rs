//! The specification's scenarios by number, who counts as healthy, and drains of random clusters.

#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers here are far below any limit"
)]

mod pace;
mod property;
mod scenarios;
mod site;
