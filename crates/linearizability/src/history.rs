//! What clients saw.

/// One operation of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<I, O> {
    pub input: I,
    /// When it was asked, on a clock that all clients share; in any unit.
    pub invoked: u64,
    /// When it was answered, and what; `None`: no answer came, so it may have been carried out at
    /// any time since, or never. One that surely was not carried out is left out of a history.
    pub completed: Option<(u64, O)>,
}

impl<I, O> Operation<I, O> {
    pub fn known(input: I, invoked: u64, completed: u64, output: O) -> Self {
        Self {
            input,
            invoked,
            completed: Some((completed, output)),
        }
    }

    pub fn unknown(input: I, invoked: u64) -> Self {
        Self {
            input,
            invoked,
            completed: None,
        }
    }
}
