//! The specification's scenarios by number, who counts as healthy, and drains of random clusters.

mod pace;
mod property;
mod scenarios;
mod site;
