//! Combinations of the spreads' keys, which buckets of nodes share.

use crate::rank::search::Search;
use crate::rank::spread::{SpreadUse, total};

impl Search<'_, '_> {
    pub(super) fn combination_at(&mut self, position: usize) -> u32 {
        let table = self.cluster.table;
        let spreads = &self.spreads;
        let key = |spread: &SpreadUse| spread.key_at(table, position);
        if let [spread] = spreads.as_slice() {
            let keys = [key(spread)];
            return self.buckets.combination(&keys, |keys| total(spreads, keys));
        }
        let keys: Vec<_> = spreads.iter().map(key).collect();
        self.buckets.combination(&keys, |keys| total(spreads, keys))
    }
}
