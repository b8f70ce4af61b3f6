//! A declared variable of a file: name, type, default, conditions.

use std::ops::Range;

use serde_json::Value;

use crate::document::Expr;
use crate::language::types::Type;

/// One declared variable.
pub(super) struct Declaration<'a> {
    pub(super) name: String,
    /// Position for messages.
    pub(super) range: Range<usize>,
    /// The declared type; if `None`, it is inferred from the default.
    pub(super) wanted: Option<Type>,
    pub(super) default: Option<Value>,
    pub(super) validations: Vec<Validation<'a>>,
}

pub(super) struct Validation<'a> {
    pub(super) range: Range<usize>,
    pub(super) condition: Expr<'a>,
    pub(super) error_message: Option<Expr<'a>>,
}

impl Declaration<'_> {
    /// Returns the type of values.
    pub(super) fn value_type(&self) -> Type {
        let inferred = || self.default.as_ref().map_or(Type::Any, Type::of);
        self.wanted.clone().unwrap_or_else(inferred)
    }
}
