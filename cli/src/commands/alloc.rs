//! `kafila alloc …`

pub(crate) mod checks;
mod escape;
pub(crate) mod exec;
pub(crate) mod fs;
pub(crate) mod logs;
pub(crate) mod restart;
pub(crate) mod signal;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod stop;
mod tail;
pub(crate) mod target;
mod tty;
