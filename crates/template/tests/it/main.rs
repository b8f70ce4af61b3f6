//! The language and its functions, rendered.

mod documented;
mod language;
mod limits;
mod lookups;
mod recorded;
mod support;
