//! All free ports of a range at once: asked when drawing at random has found none, so that a range
//! that is nearly used up costs a look at its bitmap and not one at each port.

use std::ops::RangeInclusive;

use state::AddressPorts;
use state::ports::WORD_BITS;

/// Returns one of the free ports of `range`, each as likely; `None`: there is none.
///
/// `held` are those of the address's allocations; `is_free` is asked of those that are left.
pub(super) fn pick(
    range: RangeInclusive<u16>,
    held: Option<&AddressPorts>,
    is_free: impl Fn(u16) -> bool,
    draw: &mut impl FnMut(u32) -> u32,
) -> Option<u16> {
    let mut free = Vec::new();
    let (first, last) = (range.start() / WORD_BITS, range.end() / WORD_BITS);
    for word in first..=last {
        let mut left = !held.map_or(0, |ports| ports.word(word));
        while left != 0 {
            let bit = u16::try_from(left.trailing_zeros()).expect("a word has few bits");
            left &= left - 1;
            let port = word * WORD_BITS + bit;
            if range.contains(&port) && is_free(port) {
                free.push(port);
            }
        }
    }
    let count = u32::try_from(free.len()).expect("there are few ports");
    (count > 0).then(|| free[(draw(count) % count) as usize])
}
