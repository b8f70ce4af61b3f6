//! The last lines that a process printed, in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use super::record::Record;

/// Most lines: some minutes of a busy service at `info`.
const MAX_RECORDS: usize = 2_000;
/// Most memory of them, in bytes.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Recent {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
}

impl Recent {
    /// Adds a line and drops the oldest ones beyond the limits.
    pub(crate) fn push(&mut self, record: Arc<Record>) {
        self.bytes += record.bytes();
        self.records.push_back(record);
        while self.records.len() > MAX_RECORDS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.records.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes();
        }
    }

    /// Returns the newest `count` lines, the oldest first.
    pub(crate) fn newest(&self, count: usize) -> Vec<Arc<Record>> {
        let omitted = self.records.len().saturating_sub(count);
        self.records.iter().skip(omitted).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(message: String) -> Arc<Record> {
        Arc::new(Record {
            time_ns: 0,
            level: tracing::Level::INFO,
            target: "test",
            file: None,
            line: None,
            message,
            fields: Vec::new(),
            spans: Vec::new(),
        })
    }

    #[test]
    fn the_newest_lines_stay_within_the_limits() {
        let mut recent = Recent::default();
        for number in 0..MAX_RECORDS + 5 {
            recent.push(record(number.to_string()));
        }
        let kept = recent.newest(usize::MAX);
        assert_eq!(kept.len(), MAX_RECORDS);
        assert_eq!(kept[0].message, "5");
        let last: Vec<_> = recent
            .newest(2)
            .iter()
            .map(|it| it.message.clone())
            .collect();
        assert_eq!(last, ["2003", "2004"]);
        for _ in 0..300 {
            recent.push(record("x".repeat(8 << 10)));
        }
        let kept = recent.newest(usize::MAX);
        let bytes: usize = kept.iter().map(|it| it.bytes()).sum();
        assert!(bytes <= MAX_BYTES && bytes == recent.bytes, "{bytes}");
        assert!(kept.len() > 100, "{}", kept.len());
    }
}
