//! `kafila alloc …`

pub(crate) mod checks;
pub(crate) mod logs;
pub(crate) mod restart;
pub(crate) mod status;
pub(crate) mod stop;
mod tail;
