//! FNV-1a with 64 and 128 bits: hashes that are stored or compared between versions.
//!
//! Written out, because such a hash must not change with the version of a dependency. It is not collision
//! resistant: use it only where a forged collision harms its author alone.
//!
//! Source: Fowler, Noll and Vo, public domain.

/// Of no UTF-8 text: the end of a field.
const END: u8 = 0xff;

/// A hash of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Fnv64(u64);

/// A hash of 128 bits.
#[derive(Clone, Copy, Debug)]
pub struct Fnv128(u128);

impl Fnv64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    #[must_use]
    pub fn new() -> Self {
        Self(Self::BASIS)
    }

    /// Returns the empty hash of a family of its own for each `seed`.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Self::BASIS ^ seed)
    }

    /// Hashes bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(Self::PRIME);
        Self(bytes.iter().fold(self.0, add))
    }

    /// Hashes a text and its end, so that `ab` and `c` differ from `a` and `bc`.
    #[must_use]
    pub fn field(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).bytes(&[END])
    }

    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }
}

impl Fnv128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    #[must_use]
    pub fn new() -> Self {
        Self(Self::BASIS)
    }

    /// Hashes bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let add = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        Self(bytes.iter().fold(self.0, add))
    }

    /// Hashes a text and its end, so that `ab` and `c` differ from `a` and `bc`.
    #[must_use]
    pub fn field(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).bytes(&[END])
    }

    #[must_use]
    pub fn finish(self) -> u128 {
        self.0
    }
}

impl Default for Fnv64 {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Fnv128 {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: the test vectors published with the algorithm.
    #[test]
    fn the_published_hashes() {
        let short = |text: &str| Fnv64::new().bytes(text.as_bytes()).finish();
        assert_eq!(short(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(short("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(short("foobar"), 0x8594_4171_f739_67e8);
        let long = |text: &str| Fnv128::new().bytes(text.as_bytes()).finish();
        assert_eq!(long("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(long("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn fields_end() {
        let of = |fields: [&str; 2]| Fnv64::new().field(fields[0]).field(fields[1]).finish();
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
        let of = |fields: [&str; 2]| Fnv128::new().field(fields[0]).field(fields[1]).finish();
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }

    #[test]
    fn a_seed_makes_a_family_of_its_own() {
        assert_ne!(
            Fnv64::seeded(1).field("a").finish(),
            Fnv64::seeded(2).field("a").finish()
        );
    }
}
