//! Selection among nodes with nearly equal scores.

/// The tolerance of the selection, which makes concurrent workers choose different nodes.
///
/// Public only for the example `contention`, which measures other values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Scores closer than this are near-ties, broken by a random number of each node.
    pub near_tie: f64,
    /// The number of best nodes to draw from, of which only the fit may be worse; 0 and 1: no draw.
    pub among: u32,
}

impl Selection {
    /// Default without known competitors: highest score, near-ties broken at random.
    ///
    /// The near-tie is the resolution of displayed scores.
    pub const FIRST: Self = Self {
        near_tie: 0.001,
        among: 1,
    };
}
