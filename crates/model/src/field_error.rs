//! Validation errors: an invalid field of a request, and the values that are accepted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The path of the field, as in `group["web"].task["server"].resources.memory`.
    pub field: String,
    /// The problem and the accepted values; lowercase unless it quotes, no final full stop.
    pub message: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Every error of one request, in the order of its fields; never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct FieldErrors(pub Vec<FieldError>);

impl FieldErrors {
    pub fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError::new(field, message));
    }

    /// Returns `value` if there are no errors.
    ///
    /// # Errors
    /// Itself, when it holds an error.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "{} error{plural} occurred:", self.0.len())?;
        for error in &self.0 {
            write!(f, "\n\t* {error}")?;
        }
        Ok(())
    }
}
