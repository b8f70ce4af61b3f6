//! One entry in the table of functions.

use super::call::Call;
use crate::language::value::Value;

/// A function with its name, its parameters (for messages) and its code.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The parameters, for example `text, prefix`; `…` marks a repeated last one.
    pub(super) parameters: &'static str,
    pub(super) call: fn(&Call<'_>) -> Result<Value, String>,
}
