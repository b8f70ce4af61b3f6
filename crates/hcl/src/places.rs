//! Places of the fields of a file, by path.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::report::ParseError;
use crate::source::{Fault, Source};

/// Index from field paths, such as `group["web"].task["server"].resources.memory`, to bytes.
#[derive(Clone, Debug)]
pub struct Places {
    source: Arc<Source>,
    /// Path → bytes: the header of a block, the value of an attribute.
    ranges: BTreeMap<String, Range<usize>>,
}

impl Places {
    pub fn new(source: Arc<Source>, ranges: BTreeMap<String, Range<usize>>) -> Self {
        Self { source, ranges }
    }

    /// Returns an error at a place of the file.
    pub fn error(&self, range: Range<usize>, summary: &str, detail: String) -> ParseError {
        self.source.error(Fault::new(range, summary, detail))
    }

    /// Returns the bytes of the field or block with this path, if the file has it.
    pub fn find(&self, path: &str) -> Option<Range<usize>> {
        self.ranges.get(path).cloned()
    }

    /// Returns the bytes of the field with this path, else of the nearest block around it.
    pub fn nearest(&self, field: &str) -> Range<usize> {
        let mut path = field;
        loop {
            if let Some(range) = self.ranges.get(path) {
                return range.clone();
            }
            match parent(path) {
                Some(shorter) => path = shorter,
                None => return self.ranges.get("").cloned().unwrap_or(0..0),
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
    fn a_missing_field_leads_to_the_block_around_it() {
        let source = Arc::new(Source::new("f", "job \"a\" {\n  group \"g\" {\n  }\n}\n"));
        let ranges = BTreeMap::from([(String::new(), 0..7), ("group[\"g\"]".to_owned(), 12..21)]);
        let places = Places::new(source, ranges);
        assert_eq!(places.nearest("group[\"g\"].task"), 12..21);
        assert_eq!(places.nearest("priority"), 0..7);
        assert_eq!(places.find("priority"), None);
    }
}
