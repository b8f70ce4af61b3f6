//! Devices: the requests of tasks, and the instances of a node that serve them.
//!
//! One function answers both whether a node can serve the requests at all, when nothing is held, and
//! which instances it assigns. Two functions would disagree.
//!
//! In reading order: `name` and `check` are the parts of a request, `ask` the request; `search`
//! finds an assignment for all requests, `choose` scores it; `shortage` and `short` report missing
//! devices.

pub(crate) mod ask;
mod check;
pub(crate) mod choose;
mod name;
mod search;
pub(crate) mod short;
pub(crate) mod shortage;
#[cfg(test)]
mod tests;
