//! Flags, width and precision of a verb.

#[derive(Default, Clone, Copy)]
pub(super) struct Flags {
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}
