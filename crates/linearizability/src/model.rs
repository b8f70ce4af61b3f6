//! Sequential specification of a system.

use std::hash::Hash;

/// A sequential specification.
pub trait Model {
    /// The state that later answers depend on.
    type State: Clone + Eq + Hash;
    /// The call.
    type Input: PartialEq;
    /// The answer.
    type Output;

    /// Returns the state before the first operation.
    fn initial(&self) -> Self::State;

    /// Returns the state after `input` if a system in `state` may answer `output`; `None` if it may
    /// not. Without an output every answer is allowed.
    fn step(
        &self,
        state: &Self::State,
        input: &Self::Input,
        output: Option<&Self::Output>,
    ) -> Option<Self::State>;

    /// Returns whether `input` never changes the state, which shortens the search.
    fn only_looks(&self, _input: &Self::Input) -> bool {
        false
    }
}
