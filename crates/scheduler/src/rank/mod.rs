//! Which node is best for a task group, and which is next best once one is taken.
//!
//! Every feasible node is scored once per group and evaluation; a placement rescores the one node
//! it touches. Equal asks of a group share that ranking, so ten thousand placements cost ten
//! thousand heap operations and not ten million scores.
//!
//! `score` is the arithmetic; `ranking` keeps nodes in order; `search` joins them with what rules
//! nodes out.
//!
//! A score that depends on other nodes than its own (a spread over racks) will not fit one heap:
//! such a group gets one ranking per value of the attribute, and the best of their tops wins.

pub(crate) mod ranking;
pub(crate) mod score;
pub(crate) mod search;

pub(crate) use search::{Found, Search, Wish};
