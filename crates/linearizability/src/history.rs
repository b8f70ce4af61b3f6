//! Operations as observed by clients.

/// One operation of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<I, O> {
    pub input: I,
    /// Time of the call, on a clock shared by all clients, in any unit.
    pub invoked: u64,
    /// Time and value of the answer; `None`: without an answer it may have been executed at any
    /// later time, or never. An operation that was not executed is left out of a history.
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
