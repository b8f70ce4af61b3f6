//! Limits of an archive's contents, counted while it is unpacked.

/// Entries and bytes that may still be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    entries_max: u64,
    bytes_max: u64,
    entries: u64,
    bytes: u64,
}

/// A limit that an archive exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    #[error(
        "the archive has more than {0} entries; raise `artifact.unpacked_entries_max` of the node, or split it"
    )]
    Entries(u64),
    #[error(
        "the archive unpacks to more than {0} bytes; raise `artifact.unpacked_bytes_max` of the node, or split it"
    )]
    Bytes(u64),
}

impl Budget {
    pub fn new(entries_max: u64, bytes_max: u64) -> Self {
        Self {
            entries_max,
            bytes_max,
            entries: 0,
            bytes: 0,
        }
    }

    /// Counts one entry: a file, a directory or a link.
    ///
    /// # Errors
    /// It is one too many.
    pub fn entry(&mut self) -> Result<(), BudgetExceeded> {
        self.entries = self.entries.saturating_add(1);
        if self.entries > self.entries_max {
            return Err(BudgetExceeded::Entries(self.entries_max));
        }
        Ok(())
    }

    /// Counts `bytes` of a file.
    ///
    /// # Errors
    /// They exceed the limit.
    pub fn bytes(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.bytes_max {
            return Err(BudgetExceeded::Bytes(self.bytes_max));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_064_the_entry_after_the_last_is_refused() {
        let mut budget = Budget::new(4096, u64::MAX);
        for entry in 1..=4096 {
            assert_eq!(budget.entry(), Ok(()), "{entry}");
        }
        assert_eq!(budget.entry(), Err(BudgetExceeded::Entries(4096)));
    }

    #[test]
    fn bytes_add_up_without_overflow() {
        let mut budget = Budget::new(1, 10);
        assert_eq!(budget.bytes(10), Ok(()));
        assert_eq!(budget.bytes(1), Err(BudgetExceeded::Bytes(10)));
        assert_eq!(budget.bytes(u64::MAX), Err(BudgetExceeded::Bytes(10)));
    }
}
