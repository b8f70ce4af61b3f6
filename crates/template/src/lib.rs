//! Templates of tasks: Go's template language with the functions of Nomad's templates.
//!
//! [`Template::parse`] checks a template, [`Template::render`] renders it. Both are pure: the environment,
//! files, look-ups, interfaces and the time are arguments ([`RenderContext`]). A rendering ends within
//! limits, whatever the template does, and gives a text or the look-ups that it waits for ([`Rendered`]).
//!
//! Reading order: [`syntax`] is the tree, [`lexer`] and [`parser`] make it, [`evaluation`] walks it over
//! [`value`]s, [`function`] is what a function is called with, [`functions`] the table of
//! them, [`source`] the look-ups.
//! Source: Go's documentation of `text/template` and `fmt`, Nomad's documentation of the template block.

mod budget;
mod context;
pub mod env_file;
mod error;
mod evaluation;
mod format;
mod function;
mod functions;
mod lexer;
mod parser;
pub mod sockaddr;
pub mod source;
mod syntax;
mod value;

use std::collections::BTreeSet;

pub use budget::Limits;
pub use context::RenderContext;
pub use error::Error;
pub use source::{Files, Lookup, NoFiles, NoSource, Source};

use functions::Functions;

/// A template that has been read.
#[derive(Debug)]
pub struct Template {
    source: Box<str>,
    trees: syntax::Trees,
}

/// The outcome of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    Text(String),
    /// Data that must be there first.
    Waiting(BTreeSet<Lookup>),
}

impl Template {
    /// Reads a template whose actions stand between `left` and `right` (`{{` and `}}` if empty).
    ///
    /// # Errors
    /// The first mistake: syntax, an unknown function, an undeclared variable.
    pub fn parse(source: &str, left: &str, right: &str) -> Result<Self, Error> {
        let or = |delimiter: &'_ str, default: &'static str| {
            if delimiter.is_empty() {
                default.to_owned()
            } else {
                delimiter.to_owned()
            }
        };
        let (left, right) = (or(left, "{{"), or(right, "}}"));
        match parser::parse(source, &left, &right, Functions::OF_TASKS) {
            Ok(trees) => Ok(Self {
                source: source.into(),
                trees,
            }),
            Err(fault) => Err(fault.locate(source)),
        }
    }

    /// Renders the template.
    ///
    /// A rendering that fails after a look-up was missing waits: the missing data may be the cause.
    ///
    /// # Errors
    /// The error of a function, a missing field, a limit.
    pub fn render(&self, context: &RenderContext<'_>) -> Result<Rendered, Error> {
        let (result, missing) =
            evaluation::evaluate(&self.trees, Functions::OF_TASKS, context, None);
        match result {
            _ if !missing.is_empty() => Ok(Rendered::Waiting(missing)),
            Ok(text) => Ok(Rendered::Text(text)),
            Err(fault) => Err(fault.locate(&self.source)),
        }
    }

    /// The functions that look data up outside the node, as the template names them.
    pub fn look_ups(&self) -> BTreeSet<&'static str> {
        functions::lookups::in_trees(&self.trees)
    }

    /// The variables whose paths the template has as texts. A namespace or region that it does not name is
    /// empty: the task's own.
    pub fn variables(&self) -> BTreeSet<source::VariablePath> {
        functions::lookups::variables_in_trees(&self.trees)
    }
}

/// The names of all functions, sorted.
pub fn function_names() -> Vec<&'static str> {
    Functions::OF_TASKS.names()
}

/// A time as [`RenderContext::now`] takes it; `unix_ns`: nanoseconds since 1970, at most the year 2262.
pub fn timestamp(unix_ns: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default()
}
