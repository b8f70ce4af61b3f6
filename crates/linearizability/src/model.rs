//! What a system may do, one operation at a time.

use std::hash::Hash;

/// A sequential specification.
pub trait Model {
    /// Everything that later answers depend on.
    type State: Clone + Eq + Hash;
    /// What was asked.
    type Input: PartialEq;
    /// What was answered.
    type Output;

    /// Returns the state before the first operation.
    fn initial(&self) -> Self::State;

    /// Returns the state after `input`, when a system in `state` may answer `output`; `None` when
    /// it may not. Without an output nobody knows the answer, so every one is allowed.
    fn step(
        &self,
        state: &Self::State,
        input: &Self::Input,
        output: Option<&Self::Output>,
    ) -> Option<Self::State>;

    /// Tells whether `input` only looks, in any state. Saying so makes the search shorter.
    fn only_looks(&self, _input: &Self::Input) -> bool {
        false
    }
}
