//! Free ports of a range by bitmap: used when random draws have failed, so that a nearly exhausted
//! range is not searched port by port.

use std::ops::RangeInclusive;

use state::AddressPorts;
use state::ports::WORD_BITS;

/// Returns one of the free ports of `range`, each equally likely; `None`: there is none.
///
/// `held` are the held ports of the address; `is_free` filters the others.
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
