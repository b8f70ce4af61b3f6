//! Collector of errors, warnings and field positions of a file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::places::Places;
use crate::report::{ParseError, ParseErrors};
use crate::source::{Fault, Source};

/// Maximum number of errors and of warnings, chosen to keep the output readable.
const MAX_ERRORS: usize = 50;

pub struct Collector {
    pub source: Arc<Source>,
    pub errors: Vec<ParseError>,
    pub warnings: Vec<String>,
    ranges: BTreeMap<String, Range<usize>>,
    /// Number of dropped errors.
    dropped: usize,
}

impl Collector {
    pub fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            errors: Vec::new(),
            warnings: Vec::new(),
            ranges: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Starts to read a text of at most `max_bytes`.
    ///
    /// # Errors
    /// The text is longer.
    pub fn open(file: &str, text: &str, max_bytes: usize) -> Result<Self, ParseErrors> {
        if text.len() <= max_bytes {
            return Ok(Self::new(Arc::new(Source::new(file, text))));
        }
        let head = Source::new(file, text.lines().next().unwrap_or_default());
        // Readers of files stop at the limit, so the size may be unknown.
        let detail = format!("the file has more than {max_bytes} bytes: keep data out of the file");
        let fault = Fault::new(0..1, "File too large", detail);
        Err(ParseErrors(vec![head.error(fault)]))
    }

    /// Records a fault in the file.
    pub fn fault(&mut self, fault: Fault) {
        // Locating a line is slow for long lines, so dropped errors are not located.
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(self.source.error(fault));
        } else {
            self.dropped += 1;
        }
    }

    /// Returns the value of a `result`, or records its fault.
    pub fn ok_or_fault<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.fault(fault)).ok()
    }

    /// Records an error of this or another text.
    pub fn error(&mut self, error: ParseError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.dropped += 1;
        }
    }

    pub fn warn(&mut self, warning: impl Into<String>) {
        if self.has_room_for_warnings() {
            self.warnings.push(warning.into());
        }
    }

    /// Records the position of a field or block.
    pub fn place(&mut self, path: &str, range: Range<usize>) {
        self.ranges.insert(path.to_owned(), range);
    }

    /// Tells whether another warning would be kept.
    pub fn has_room_for_warnings(&self) -> bool {
        self.warnings.len() < MAX_ERRORS
    }

    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns the errors; requires at least one.
    pub fn into_errors(mut self) -> ParseErrors {
        // Sorted by position, this file first: evaluation visits attributes before blocks.
        let file = self.source.file.as_str();
        self.errors
            .sort_by_key(|error| (error.file != file, error.line, error.column));
        if self.dropped > 0
            && let Some(last) = self.errors.last_mut()
        {
            last.detail
                .push_str(&format!(" (and {} more errors)", self.dropped));
        }
        ParseErrors(self.errors)
    }

    pub fn into_places(self) -> (Vec<String>, Places) {
        (self.warnings, Places::new(self.source, self.ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_refused_without_a_size_that_may_be_cut_off() {
        assert!(Collector::open("a.hcl", "12345678", 8).is_ok());
        // Readers of files stop after the limit.
        for text in ["123456789", "123456789 and more"] {
            let refused = Collector::open("a.hcl", text, 8).err().unwrap().to_string();
            assert!(
                refused.contains("the file has more than 8 bytes"),
                "{refused}"
            );
        }
    }
}
