//! One line of a log, as data: a reader chooses the form.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// Most bytes of text in the values of one record: thousands of usual lines. Longer texts are cut.
const MAX_BYTES: usize = 8 << 10;
/// Stands at the end of a text that was cut.
const CUT: &str = "…";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Unix nanoseconds.
    pub time_ns: u64,
    pub level: Level,
    /// The module that logged, as in filters.
    pub target: &'static str,
    pub file: Option<&'static str>,
    pub line: Option<u32>,
    pub message: String,
    /// In the order of the source.
    pub fields: Fields,
    /// The outermost first.
    pub spans: Vec<Arc<SpanRecord>>,
}

/// Names and values.
pub type Fields = Vec<(&'static str, String)>;

/// A span around a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanRecord {
    pub name: &'static str,
    pub fields: Fields,
}

impl Record {
    pub(crate) fn new(event: &Event<'_>, time_ns: u64, spans: Vec<Arc<SpanRecord>>) -> Self {
        let metadata = event.metadata();
        let mut values = Values::default();
        event.record(&mut values);
        Self {
            time_ns,
            level: *metadata.level(),
            target: metadata.target(),
            file: metadata.file(),
            line: metadata.line(),
            message: values.message,
            fields: values.fields,
            spans,
        }
    }

    /// Returns the size of the record in memory, about, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let fields = |fields: &Fields| -> usize {
            let sizes = fields.iter().map(|(_, value)| 40 + value.len());
            sizes.sum()
        };
        let spans = self.spans.iter().map(|span| 48 + fields(&span.fields));
        size_of::<Self>() + self.message.len() + fields(&self.fields) + spans.sum::<usize>()
    }
}

/// Collects the values of an event or a span.
#[derive(Debug, Default)]
pub(crate) struct Values {
    message: String,
    pub(crate) fields: Fields,
    bytes: usize,
}

impl Values {
    /// Replaces the value of a known field: a span's field may be recorded later.
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let mut text = Limited {
            text: String::new(),
            left: MAX_BYTES.saturating_sub(self.bytes),
        };
        // An error is the end of the limit.
        let _ = text.write_fmt(value);
        self.bytes += text.text.len();
        if field.name() == "message" {
            self.message = text.text;
            return;
        }
        // As tracing's own formats show raw identifiers.
        let name = field.name().trim_start_matches("r#");
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value = text.text,
            None => self.fields.push((name, text.text)),
        }
    }

    /// Continues the values of a span.
    pub(crate) fn of(fields: Fields) -> Self {
        let bytes = fields.iter().map(|(_, value)| value.len()).sum();
        Self {
            message: String::new(),
            fields,
            bytes,
        }
    }
}

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value}"));
    }
}

/// Text up to a number of bytes.
struct Limited {
    text: String,
    left: usize,
}

impl fmt::Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part.len() <= self.left {
            self.left -= part.len();
            self.text.push_str(part);
            return Ok(());
        }
        let mut end = self.left;
        while !part.is_char_boundary(end) {
            end -= 1;
        }
        self.text.push_str(&part[..end]);
        self.text.push_str(CUT);
        self.left = 0;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let mut text = Limited {
            text: String::new(),
            left: 6,
        };
        text.write_str("abcd").unwrap();
        text.write_str("ef€g").unwrap_err();
        assert_eq!(text.text, "abcdef…");
        text.write_str("h").unwrap_err();
        let mut text = Limited {
            text: String::new(),
            left: 3,
        };
        text.write_str("ab€").unwrap_err();
        assert_eq!(text.text, "ab…");
    }
}
