//! What reading a file gathers beside the job: errors, warnings, and where things stand.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::places::Places;
use crate::report::{ParseError, ParseErrors};
use crate::source::{Fault, Source};

/// How many errors are kept: more than anybody reads at once, little enough to send and print.
const MAX_ERRORS: usize = 50;

pub(crate) struct Collector {
    pub(crate) source: Arc<Source>,
    pub(crate) errors: Vec<ParseError>,
    pub(crate) warnings: Vec<String>,
    spans: BTreeMap<String, Range<usize>>,
    /// How many errors there were beyond those kept.
    dropped: usize,
}

impl Collector {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            errors: Vec::new(),
            warnings: Vec::new(),
            spans: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Records a fault in the job file.
    pub(crate) fn fault(&mut self, fault: Fault) {
        // Finding the line takes a while where lines are long, so not for what is dropped anyway.
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(self.source.error(fault));
        } else {
            self.dropped += 1;
        }
    }

    /// Records an error of this or another text.
    pub(crate) fn error(&mut self, error: ParseError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        // As many as errors, for the same reason.
        if self.has_room_for_warnings() {
            self.warnings.push(warning.into());
        }
    }

    /// Remembers where the field or block with this path stands.
    pub(crate) fn place(&mut self, path: &str, span: Range<usize>) {
        self.spans.insert(path.to_owned(), span);
    }

    /// Tells whether another warning would be kept.
    pub(crate) fn has_room_for_warnings(&self) -> bool {
        self.warnings.len() < MAX_ERRORS
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns the errors; call it only when there are some.
    pub(crate) fn into_errors(mut self) -> ParseErrors {
        // In reading order, this file first: evaluation meets attributes before blocks.
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

    pub(crate) fn into_places(self) -> (Vec<String>, Places) {
        (self.warnings, Places::new(self.source, self.spans))
    }
}
