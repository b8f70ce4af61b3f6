//! Delivery tokens.

use std::fmt;
use std::str::FromStr;

/// Names one delivery of one evaluation: `<term>.<number>`.
///
/// The term is the create revision of the broker's election key, so the plan-applier can refuse
/// plans for deliveries of a former leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub term: u64,
    /// Counts up within the term, from 1.
    pub number: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.number)
    }
}

/// The error for a text that is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a delivery token: want <term>.<number>, as the delivery had it")]
pub struct InvalidToken {
    pub text: String,
}

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let parsed = text
            .split_once('.')
            .and_then(|(term, number)| Some((term.parse().ok()?, number.parse().ok()?)));
        match parsed {
            Some((term, number)) => Ok(Self { term, number }),
            None => Err(InvalidToken {
                text: text.to_owned(),
            }),
        }
    }
}
