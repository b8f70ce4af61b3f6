//! Which node is best for a task group, and which is next best once one is taken.
//!
//! Every feasible node is scored once per group and evaluation; a placement rescores the one node
//! it touches. Equal asks of a group share that ranking, so ten thousand placements cost ten
//! thousand heap operations and not ten million scores.
//!
//! In reading order: `score` is the arithmetic; `preferences` is what a group would rather have and
//! `affinity` how much it likes each node;
//! `column` reads an attribute of all nodes once; `spread` and `property` count allocations by
//! value; `shelves` keeps nodes in order; `search` joins them with what rules nodes out;
//! `crowd` finds nodes where others have to make way; `explain` tells people why.

mod affinity;
mod column;
mod crowd;
pub(crate) mod explain;
mod given;
mod preferences;
mod property;
pub(crate) mod score;
pub(crate) mod search;
mod shelves;
mod spread;
#[cfg(test)]
mod tests;

pub(crate) use given::Given;
pub(crate) use preferences::Preferences;
pub(crate) use search::{Ask, Found, Neighbour, Search, Wish};
