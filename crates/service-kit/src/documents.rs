//! JSON documents that a process serves beside its metrics, to every caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the text of a document; `None`: it is not available now.
type Produce = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Documents by path. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Documents {
    by_path: Arc<Mutex<BTreeMap<&'static str, Produce>>>,
}

/// The answer to a request for a document.
pub(crate) enum Found {
    Text(String),
    Unavailable,
    Unknown,
}

impl Documents {
    pub(crate) fn add(&self, path: &'static str, produce: Produce) {
        self.lock().insert(path, produce);
    }

    pub(crate) fn find(&self, path: &str) -> Found {
        let produce = self.lock().get(path).cloned();
        match produce.map(|produce| produce()) {
            Some(Some(text)) => Found::Text(text),
            Some(None) => Found::Unavailable,
            None => Found::Unknown,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, Produce>> {
        // An insertion leaves the map whole.
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}
