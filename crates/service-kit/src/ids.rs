//! Random bits for ids, asked at the edges only.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fnv1a::Fnv64;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// Draws random bits; the same seed draws the same bits. Cheap to clone, and clones share one
/// stream.
#[derive(Clone)]
pub struct IdSource {
    /// `None`: seeded by the operating system, so children are too.
    seed: Option<u64>,
    rng: Arc<Mutex<StdRng>>,
}

impl IdSource {
    /// Returns an unpredictable source.
    pub fn from_os() -> Self {
        Self {
            seed: None,
            rng: Arc::new(Mutex::new(rand::make_rng())),
        }
    }

    /// Makes a source that repeats: for tests and simulation.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed: Some(seed),
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
        }
    }

    /// Makes a source for one purpose, whose bits do not depend on how many others were drawn.
    #[must_use]
    pub fn child(&self, purpose: &str) -> Self {
        match self.seed {
            None => Self::from_os(),
            Some(seed) => {
                let hash = Fnv64::seeded(seed).bytes(purpose.as_bytes());
                Self::seeded(hash.finish())
            }
        }
    }

    /// Returns 128 random bits, the input of a UUID.
    pub fn next_u128(&self) -> u128 {
        self.lock().random()
    }

    pub fn next_u64(&self) -> u64 {
        self.lock().next_u64()
    }

    /// Returns a generator of its own, seeded from this source.
    pub fn rng(&self) -> StdRng {
        StdRng::from_rng(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, StdRng> {
        // A generator has no half-done state that a panic could leave behind.
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdSource")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_system_does_not() {
        assert_eq!(
            IdSource::seeded(3).next_u128(),
            IdSource::seeded(3).next_u128()
        );
        assert_ne!(
            IdSource::from_os().next_u128(),
            IdSource::from_os().next_u128()
        );
    }

    #[test]
    fn a_child_does_not_depend_on_what_was_drawn_before() {
        let source = IdSource::seeded(3);
        let early = source.child("evals").next_u128();
        source.next_u128();
        assert_eq!(source.child("evals").next_u128(), early);
        assert_ne!(source.child("allocs").next_u128(), early);
    }
}
