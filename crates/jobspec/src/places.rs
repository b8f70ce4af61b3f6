//! Places of the fields of a job in its file.

use std::ops::Range;

use hcl::{ParseError, ParseErrors};
use model::{FieldError, FieldErrors};

/// Finds the line of a field by its path, such as `group["web"].task["server"].resources.memory`.
#[derive(Clone, Debug)]
pub struct Places {
    places: hcl::Places,
}

impl Places {
    pub(crate) fn new(places: hcl::Places) -> Self {
        Self { places }
    }

    /// Points errors of [`crate::canonicalise`] at lines of the file, in the order of the file.
    ///
    /// A field that the file does not mention is shown at the nearest block around it.
    pub fn locate(&self, errors: &FieldErrors) -> ParseErrors {
        let mut located: Vec<ParseError> = errors.0.iter().map(|error| self.error(error)).collect();
        located.sort_by_key(|error| (error.line, error.column));
        ParseErrors(located)
    }

    fn error(&self, error: &FieldError) -> ParseError {
        let detail = format!("{}: {}", error.field, error.message);
        let inherited = self.inherited(&error.field);
        let range = inherited.unwrap_or_else(|| self.places.nearest(&error.field));
        self.places.error(range, "Invalid job", detail)
    }

    /// Returns the place of a policy that the group inherits from its job, such as `update`.
    fn inherited(&self, field: &str) -> Option<Range<usize>> {
        if self.places.find(field).is_some() {
            return None;
        }
        let step = field
            .split_inclusive("].")
            .next()
            .filter(|step| step.starts_with("group["))?;
        let own = &field[step.len()..];
        let policy = own.split('.').next().unwrap_or_default();
        if !matches!(policy, "update" | "migrate" | "reschedule") {
            return None;
        }
        let whole = || {
            let in_group = self.places.find(&format!("{step}{policy}")).is_some();
            if in_group {
                None
            } else {
                self.places.find(policy)
            }
        };
        self.places.find(own).or_else(whole)
    }
}

#[cfg(test)]
mod tests {
    use hcl::Inputs;

    use super::*;

    #[test]
    fn errors_are_located_in_the_order_of_the_file() {
        let text = "job \"a\" {\n  group \"g\" {\n  }\n}\n";
        let parsed = crate::parse("f", text, &Inputs::default()).unwrap();
        let mut errors = FieldErrors::default();
        errors.push("group[\"g\"].task", "Missing tasks");
        errors.push("priority", "too high");
        let located = parsed.places.locate(&errors);
        let lines: Vec<usize> = located.0.iter().map(|error| error.line).collect();
        assert_eq!(lines, [1, 2]);
    }
}
