//! The functions of Sprig that Nomad has, with the prefix `sprig_`: those without a clock and without randomness.

use crate::function::Function;

mod dicts;
mod lists;
mod numbers;
mod texts;
mod types;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    [
        dicts::FUNCTIONS,
        lists::FUNCTIONS,
        numbers::FUNCTIONS,
        texts::FUNCTIONS,
        types::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}
