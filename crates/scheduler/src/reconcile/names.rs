//! Name indexes of allocations, `job.group[index]`: those in use, and the next free ones.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

const WORD_BITS: u32 = u64::BITS;

/// The name indexes that a group's allocations use.
///
/// **Invariant**: an index is assigned once, and nowhere else, so live allocations of a group share
/// one only if they did before.
#[derive(Clone, Debug)]
pub(crate) struct NameIndex {
    /// Indexes from here on are kept only by allocations that have them already.
    count: u32,
    words: Vec<u64>,
    /// Index → number of allocations with it beyond the first.
    duplicates: FxHashMap<u32, u32>,
    /// Words before this one have no clear bit.
    first_open_word: usize,
}

impl NameIndex {
    /// Creates the index set of a group of `count` with the indexes `used`.
    pub(crate) fn new(count: u32, used: impl IntoIterator<Item = u32>) -> Self {
        let mut index = Self {
            count,
            words: Vec::new(),
            duplicates: FxHashMap::default(),
            first_open_word: 0,
        };
        for number in used {
            if index.is_set(number) {
                *index.duplicates.entry(number).or_insert(0) += 1;
            } else {
                index.set(number);
            }
        }
        index
    }

    /// Returns the index of the successor of an allocation with `number`: the same, unless another
    /// allocation shares it or it is beyond the count; then the lowest free one.
    pub(crate) fn inherit(&mut self, number: u32) -> u32 {
        if let Some(others) = self.duplicates.get_mut(&number) {
            *others -= 1;
            if *others == 0 {
                self.duplicates.remove(&number);
            }
            return self.lowest_free();
        }
        if number >= self.count {
            let free = self.lowest_free();
            if free < self.count {
                return free;
            }
            self.clear(free);
        }
        number
    }

    /// Takes the lowest free index.
    pub(crate) fn lowest_free(&mut self) -> u32 {
        while self.words.get(self.first_open_word) == Some(&u64::MAX) {
            self.first_open_word += 1;
        }
        let word = self.words.get(self.first_open_word).copied().unwrap_or(0);
        let word_position =
            u32::try_from(self.first_open_word).expect("a name number is a u32, so its word is");
        let number = word_position * WORD_BITS + word.trailing_ones();
        self.set(number);
        number
    }

    /// Returns indexes for `wanted` canaries: first those of the allocations that they may replace,
    /// in order, then free ones; none in `taken`.
    ///
    /// They stay free here: a canary shares its index with the allocation that it may replace.
    pub(crate) fn of_canaries(
        &self,
        wanted: u32,
        replaceable: impl Iterator<Item = u32>,
        taken: &mut BTreeSet<u32>,
    ) -> Vec<u32> {
        let replaceable = replaceable.filter(|number| *number < self.count);
        let free = (0..self.count).filter(|number| !self.is_set(*number));
        let mut numbers = Vec::new();
        for number in replaceable.chain(free).chain(self.count..) {
            if numbers.len() >= usize::try_from(wanted).unwrap_or(usize::MAX) {
                break;
            }
            if taken.insert(number) {
                numbers.push(number);
            }
        }
        numbers
    }

    fn is_set(&self, number: u32) -> bool {
        let (word, mask) = place(number);
        self.words.get(word).is_some_and(|bits| bits & mask != 0)
    }

    fn set(&mut self, number: u32) {
        let (word, mask) = place(number);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= mask;
    }

    fn clear(&mut self, number: u32) {
        let (word, mask) = place(number);
        if let Some(bits) = self.words.get_mut(word) {
            *bits &= !mask;
            self.first_open_word = self.first_open_word.min(word);
        }
    }
}

fn place(number: u32) -> (usize, u64) {
    let word = usize::try_from(number / WORD_BITS).expect("a u32 fits in a usize");
    (word, 1 << (number % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_numbers_come_first() {
        let mut names = NameIndex::new(10, [0, 1, 3, 64]);
        let taken: Vec<_> = (0..4).map(|_| names.lowest_free()).collect();
        assert_eq!(taken, [2, 4, 5, 6]);
    }

    #[test]
    fn a_full_word_is_passed() {
        let mut names = NameIndex::new(100, 0..64);
        assert_eq!(names.lowest_free(), 64);
        assert_eq!(names.lowest_free(), 65);
    }

    #[test]
    fn scenario_022_a_shared_number_is_given_up_for_a_free_one() {
        let mut names = NameIndex::new(3, [0, 1, 1]);
        let inherited: Vec<_> = [0, 1, 1].map(|number| names.inherit(number)).into();
        assert_eq!(inherited, [0, 2, 1]);
    }

    #[test]
    fn scenario_023_numbers_beyond_the_count_are_no_trouble() {
        let mut names = NameIndex::new(8, [8]);
        assert_eq!(
            names.inherit(8),
            0,
            "the replacement moves within the count"
        );
        assert_eq!(names.lowest_free(), 1);
        let mut full = NameIndex::new(2, [0, 1, 2]);
        assert_eq!(full.inherit(2), 2, "nothing within the count is free");
        assert_eq!(full.lowest_free(), 3);
    }
}
