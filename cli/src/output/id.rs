//! Short and full IDs.

/// Length of a short ID.
const SHORT: usize = 8;

/// Length of shown IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Full,
}

impl Length {
    pub(crate) fn verbose(verbose: bool) -> Self {
        if verbose { Self::Full } else { Self::Short }
    }

    /// Returns the ID in this length.
    pub(crate) fn of(self, id: &str) -> String {
        match self {
            Self::Short => id.chars().take(SHORT).collect(),
            Self::Full => id.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_characters_unless_asked_for_more() {
        let id = "8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234";
        assert_eq!(Length::verbose(false).of(id), "8a3f2c1e");
        assert_eq!(Length::verbose(true).of(id), id);
        assert_eq!(Length::Short.of(""), "");
    }
}
