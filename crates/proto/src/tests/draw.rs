//! Random values from a seed, so that a property prints one number to repeat it by.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Timestamp;

/// A stream of random values (splitmix64).
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    pub(super) fn u8(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::try_from(self.below(1 << 16)).unwrap()
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::try_from(self.below(1 << 32)).unwrap()
    }

    pub(super) fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    pub(super) fn text(&mut self) -> String {
        let length = self.below(8);
        (0..length)
            .map(|_| self.one_of(&['a', 'B', '3', '-', '/', ' ', 'ü', '"', '\n']))
            .collect()
    }

    pub(super) fn id<I: From<Id>>(&mut self) -> I {
        I::from(Id(u128::from(self.bits()) << 64 | u128::from(self.bits())))
    }

    pub(super) fn time(&mut self) -> Timestamp {
        Timestamp(self.bits())
    }

    pub(super) fn duration(&mut self) -> Duration {
        let shift = self.below(64);
        Duration::from_nanos(self.bits() >> shift)
    }

    pub(super) fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw(self))
    }

    pub(super) fn list<T>(&mut self, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| draw(self)).collect()
    }

    pub(super) fn map<T>(&mut self, mut draw: impl FnMut(&mut Self) -> T) -> BTreeMap<String, T> {
        (0..self.below(4))
            .map(|_| (self.text(), draw(self)))
            .collect()
    }
}

/// The bits of an id.
pub(super) struct Id(u128);

macro_rules! from_bits {
    ($($id:ident),*) => {
        $(impl From<Id> for model::$id {
            fn from(bits: Id) -> Self {
                Self::from_random(bits.0)
            }
        })*
    };
}

from_bits!(AllocId, EvalId, NodeId, DeploymentId);
