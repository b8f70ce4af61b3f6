//! The answers at one moment, as a rendering asks for them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use template::Lookup;
use template::source::{Answer, Source};

/// Answers from memory; it remembers the look-ups that it was asked for.
#[derive(Debug, Default)]
pub struct Snapshot {
    answers: Arc<BTreeMap<Lookup, Answer>>,
    asked: RefCell<BTreeSet<Lookup>>,
}

impl Snapshot {
    pub(crate) fn new(answers: Arc<BTreeMap<Lookup, Answer>>) -> Self {
        Self {
            answers,
            asked: RefCell::default(),
        }
    }

    /// Returns whether a look-up so far was one of this system ([`Lookup::system`]).
    pub fn has_asked(&self, system: &str) -> bool {
        self.asked
            .borrow()
            .iter()
            .any(|lookup| lookup.system() == system)
    }

    /// The look-ups so far, missing ones included.
    pub fn into_asked(self) -> BTreeSet<Lookup> {
        self.asked.into_inner()
    }
}

impl Source for Snapshot {
    fn look_up(&self, lookup: &Lookup) -> Answer {
        self.asked.borrow_mut().insert(lookup.clone());
        self.answers.get(lookup).cloned().unwrap_or(Answer::Missing)
    }
}
