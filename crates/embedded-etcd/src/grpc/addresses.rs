//! Client URLs of the store, announced while a listener serves them.

use std::sync::{Arc, Mutex, PoisonError};

/// The client URLs that the store is served at, shared by its listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    urls: Arc<Mutex<Vec<String>>>,
}

impl Addresses {
    /// Adds `url` for as long as the returned value lives.
    pub(crate) fn announce(&self, url: String) -> Announced {
        self.with(|urls| urls.push(url.clone()));
        Announced {
            addresses: self.clone(),
            url,
        }
    }

    pub(super) fn list(&self) -> Vec<String> {
        self.with(|urls| urls.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<String>) -> T) -> T {
        act(&mut self.urls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An address that is being served.
#[derive(Debug)]
pub(crate) struct Announced {
    addresses: Addresses,
    url: String,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let url = &self.url;
        self.addresses
            .with(|urls| urls.retain(|other| other != url));
    }
}
