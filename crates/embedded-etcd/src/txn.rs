//! etcd's txns: is the request well-formed ([`check`]), which branches are taken ([`compare`]), and
//! what their operations answer.
//!
//! A txn that fails half-way is undone: nothing of it is ever seen.

pub mod check;
mod compare;
mod perform;
mod range_request;

pub(crate) use self::{
    perform::{delete_range, perform, perform_read_only, put, read_only},
    range_request::{RangeAnswer, answer_range},
};

#[cfg(test)]
mod tests;
