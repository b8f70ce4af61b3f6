//! `kafila alloc …`

pub(crate) mod logs;
pub(crate) mod status;
mod tail;
