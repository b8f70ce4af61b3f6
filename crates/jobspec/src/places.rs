//! Where in the file each field of a job stands.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use model::{FieldError, FieldErrors};

use crate::report::{ParseError, ParseErrors};
use crate::source::{Fault, Source};

/// Finds the line of a field, by its path as in `group["web"].task["server"].resources.memory`.
#[derive(Clone, Debug)]
pub struct Places {
    source: Arc<Source>,
    /// Path to bytes; the path of a block leads to its header, that of an attribute to its value.
    spans: BTreeMap<String, Range<usize>>,
}

impl Places {
    pub(crate) fn new(source: Arc<Source>, spans: BTreeMap<String, Range<usize>>) -> Self {
        Self { source, spans }
    }

    /// Points errors of [`crate::canonicalise`] at the lines that they are about.
    ///
    /// A field that the file does not mention is shown at the nearest block around it.
    pub fn locate(&self, errors: &FieldErrors) -> ParseErrors {
        let mut located: Vec<ParseError> = errors.0.iter().map(|error| self.error(error)).collect();
        located.sort_by_key(|error| (error.line, error.column));
        ParseErrors(located)
    }

    fn error(&self, error: &FieldError) -> ParseError {
        let detail = format!("{}: {}", error.field, error.message);
        self.source
            .error(Fault::new(self.span(&error.field), "Invalid job", detail))
    }

    /// Finds what a group did not write itself but took from its job, such as `update`.
    fn inherited(&self, field: &str) -> Option<Range<usize>> {
        if self.spans.contains_key(field) {
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
            let in_group = self.spans.contains_key(&format!("{step}{policy}"));
            if in_group {
                None
            } else {
                self.spans.get(policy)
            }
        };
        self.spans.get(own).or_else(whole).cloned()
    }

    fn span(&self, field: &str) -> Range<usize> {
        if let Some(span) = self.inherited(field) {
            return span;
        }
        let mut path = field;
        loop {
            if let Some(span) = self.spans.get(path) {
                return span.clone();
            }
            match parent(path) {
                Some(shorter) => path = shorter,
                None => return self.spans.get("").cloned().unwrap_or(0..0),
            }
        }
    }
}

/// Returns the path without its last step; labels may contain dots, within their quotes.
fn parent(path: &str) -> Option<&str> {
    let mut quoted = false;
    let mut escaped = false;
    let mut cut = None;
    for (offset, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' | '[' if !quoted => cut = Some(offset),
            _ => {}
        }
    }
    cut.map(|offset| &path[..offset])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_one_step_at_a_time() {
        let mut path = r#"group["a.b[\"c"].task["t"].config.command"#;
        let mut steps = Vec::new();
        while let Some(shorter) = parent(path) {
            steps.push(shorter);
            path = shorter;
        }
        assert_eq!(
            steps,
            [
                r#"group["a.b[\"c"].task["t"].config"#,
                r#"group["a.b[\"c"].task["t"]"#,
                r#"group["a.b[\"c"].task"#,
                r#"group["a.b[\"c"]"#,
                "group",
            ]
        );
    }

    #[test]
    fn a_field_that_is_not_written_is_shown_at_the_block_around_it() {
        let source = Arc::new(Source::new("f", "job \"a\" {\n  group \"g\" {\n  }\n}\n"));
        let spans = BTreeMap::from([(String::new(), 0..7), ("group[\"g\"]".to_owned(), 12..21)]);
        let places = Places::new(source, spans);
        let mut errors = FieldErrors::default();
        errors.push("group[\"g\"].task", "Missing tasks");
        errors.push("priority", "too high");
        let located = places.locate(&errors);
        let lines: Vec<usize> = located.0.iter().map(|error| error.line).collect();
        // In reading order, whatever the order of the errors.
        assert_eq!(lines, [1, 2]);
    }
}
