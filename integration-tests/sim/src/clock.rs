//! Simulated clocks and random numbers.
//!
//! The binary replaces the C library's functions with these, so they apply to the whole process: the
//! standard library's clocks and hash maps, and every library's random numbers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Start of every simulation, in Unix nanoseconds: a day in 2030.
pub const EPOCH: u64 = 1_900_000_000_000_000_000;

static IS_SIMULATED: AtomicBool = AtomicBool::new(false);
static STEADY: AtomicU64 = AtomicU64::new(0);
static WALL: AtomicU64 = AtomicU64::new(EPOCH);
static RANDOM: AtomicU64 = AtomicU64::new(0);

/// Starts the simulation, for the rest of the process.
pub fn begin(seed: u64) {
    RANDOM.store(seed, Ordering::Relaxed);
    IS_SIMULATED.store(true, Ordering::Relaxed);
}

pub fn is_simulated() -> bool {
    IS_SIMULATED.load(Ordering::Relaxed)
}

/// Sets both clocks, in nanoseconds: since the start, and since 1970.
pub fn set(steady: u64, wall: u64) {
    STEADY.store(steady, Ordering::Relaxed);
    WALL.store(wall, Ordering::Relaxed);
}

/// Nanoseconds since the start; never 0, which some libraries treat as unset.
pub fn steady() -> u64 {
    STEADY.load(Ordering::Relaxed) + 1_000_000_000
}

/// Unix nanoseconds, on the wall clock of the current machine.
pub fn wall() -> u64 {
    WALL.load(Ordering::Relaxed)
}

/// Fills `bytes` with random numbers from the seed. Source: SplitMix64.
pub fn random(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let state = RANDOM.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        chunk.copy_from_slice(&mixed.to_le_bytes()[..chunk.len()]);
    }
}
