//! `kafila job …`

pub(crate) mod dispatch;
pub(crate) mod eval;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod lists;
pub(crate) mod plan;
pub(crate) mod promote;
pub(crate) mod restart;
pub(crate) mod revert;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tag;
pub(crate) mod validate;
pub(crate) mod watch;
