//! Which of several nodes that are about as good is taken.

/// How far from the best node a choice may go, so that workers that plan at the same time differ.
///
/// Public for the example `contention` alone, which measures other choices than ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Scores closer than this are near-ties, between which a number that every node draws decides.
    pub near_tie: f64,
    /// The node is drawn among this many of the best, of which only the fit may be worse; 0 and 1:
    /// it is the best.
    pub among: u32,
}

impl Choice {
    /// The choice of who knows of no others: the best, and of equals any.
    ///
    /// The near-tie is the resolution that scores are shown with.
    pub const FIRST: Self = Self {
        near_tie: 0.001,
        among: 1,
    };
}
