//! Images of the node, for starts and removals: the pulled ones, on disk, and their use, in memory.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

use crate::image;
use crate::image_use::ImageUse;
use crate::pulled_images::PulledImages;
use crate::records;

/// The file in the driver's directory; names of allocations' directories are UUIDs.
const FILE: &str = "images.json";

#[derive(Debug)]
pub(crate) struct ImageStore {
    file: PathBuf,
    state: Mutex<State>,
    /// Woken at the end of a removal.
    removed: Notify,
    /// Times are since then.
    started: Instant,
}

#[derive(Debug)]
struct State {
    pulled: PulledImages,
    usage: ImageUse,
}

impl ImageStore {
    /// Opens the store of a driver's directory. An unreadable file counts as empty: its images stay.
    pub(crate) fn open(directory: &Path) -> Self {
        let file = directory.join(FILE);
        let pulled = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                warn!(file = %file.display(), %error, "pulled images are not known; they stay");
                PulledImages::default()
            }),
            Err(_) => PulledImages::default(),
        };
        Self {
            file,
            state: Mutex::new(State {
                pulled,
                usage: ImageUse::default(),
            }),
            removed: Notify::new(),
            started: Instant::now(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the images of these names, and waits for a removal of one. In any form of the names.
    pub(crate) async fn hold(&self, names: &[&str]) -> Hold<'_> {
        let names: Vec<String> = names.iter().map(|name| image::key(name)).collect();
        loop {
            let mut removed = pin!(self.removed.notified());
            removed.as_mut().enable();
            if self.lock().usage.hold(&names) {
                return Hold {
                    images: self,
                    names,
                };
            }
            removed.await;
        }
    }

    /// Records that a start uses an image.
    pub(crate) fn mark_used(&self, id: &str) {
        self.lock().usage.mark_used(id);
    }

    /// Records that a pull begins. `before`: id of the image that has the name now.
    pub(crate) fn begin_pull(&self, name: &str, before: Option<String>) {
        self.change(|pulled| pulled.begin_pull(name, before));
    }

    /// Records that a pull has succeeded. `after`: id of the image that has the name now.
    pub(crate) fn end_pull(&self, name: &str, after: Option<&str>) {
        self.change(|pulled| pulled.end_pull(name, after));
    }

    /// Returns names of pulls that did not succeed, as far as is known, and that no start waits for.
    pub(crate) fn open_pulls(&self) -> Vec<String> {
        let state = self.lock();
        let mut names = state.pulled.open_pulls();
        names.retain(|name| !state.usage.is_held(&image::key(name)));
        names
    }

    pub(crate) fn has_pulled(&self) -> bool {
        !self.lock().pulled.ids().is_empty()
    }

    /// Returns the pulled images that are unused for at least `delay`.
    /// `in_use`: ids of the images of all containers.
    pub(crate) fn due(&self, in_use: &HashSet<String>, delay: Duration) -> Vec<String> {
        let now = self.started.elapsed();
        let state = &mut *self.lock();
        let ids = state.pulled.ids();
        state.usage.due(now, &ids, in_use, delay)
    }

    /// Begins the removal of a due image with all names that it has; `None`: a start uses it.
    pub(crate) fn begin_removal(&self, id: &str, names: &[String]) -> Option<Removal<'_>> {
        let names: Vec<String> = names.iter().map(|name| image::key(name)).collect();
        let begun = self.lock().usage.begin_removal(id, &names);
        begun.then(|| Removal {
            images: self,
            id: id.to_owned(),
            names,
        })
    }

    /// Returns the names by which an image was pulled.
    pub(crate) fn names(&self, id: &str) -> Vec<String> {
        self.lock().pulled.names(id)
    }

    /// Records that a pulled image is gone, or has other programs' names alone.
    pub(crate) fn forget(&self, id: &str) {
        self.change(|pulled| pulled.forget(id));
    }

    /// Changes the pulled images, on disk too. What cannot be written is known until the agent ends.
    fn change(&self, change: impl FnOnce(&mut PulledImages)) {
        let mut state = self.lock();
        let before = state.pulled.clone();
        change(&mut state.pulled);
        if state.pulled == before {
            return;
        }
        if let Err(error) = self.write(&state.pulled) {
            let file = self.file.display();
            warn!(%file, %error, "cannot write the pulled images");
        }
    }

    fn write(&self, pulled: &PulledImages) -> io::Result<()> {
        if let Some(directory) = self.file.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(directory)?;
        }
        records::write(&self.file, pulled, true)
    }
}

/// Keeps images from being removed while a start uses them. A container keeps its image by itself.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    images: &'a ImageStore,
    names: Vec<String>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.images.lock().usage.release(&self.names);
    }
}

/// Makes starts wait while an image is removed.
#[derive(Debug)]
pub(crate) struct Removal<'a> {
    images: &'a ImageStore,
    id: String,
    names: Vec<String>,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        let usage = &mut self.images.lock().usage;
        usage.end_removal(&self.id, &self.names);
        self.images.removed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "sha256:a";

    fn pulled(store: &ImageStore) {
        store.begin_pull("redis:7", None);
        store.end_pull("redis:7", Some(ID));
    }

    #[tokio::test(start_paused = true)]
    async fn pulled_images_and_open_pulls_are_known_after_a_restart_and_the_delay_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("containers");
        let (none, delay) = (HashSet::new(), Duration::from_secs(180));
        let store = ImageStore::open(&directory);
        pulled(&store);
        store.begin_pull("app", None);
        assert!(store.due(&none, delay).is_empty());
        tokio::time::advance(delay).await;
        assert_eq!(store.due(&none, delay), [ID]);

        let store = ImageStore::open(&directory);
        assert_eq!(store.names(ID), ["redis:7"]);
        assert_eq!(store.open_pulls(), ["app"]);
        assert!(store.due(&none, delay).is_empty());
        tokio::time::advance(delay).await;
        assert_eq!(store.due(&none, delay), [ID]);
        store.forget(ID);
        assert!(!ImageStore::open(&directory).has_pulled());

        fs::write(directory.join(FILE), "nonsense").unwrap();
        assert!(!ImageStore::open(&directory).has_pulled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_waits_for_the_removal_of_its_image_and_prevents_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::open(folder.path());
        let tags = ["docker.io/library/redis:7".to_owned()];
        pulled(&store);
        let none = HashSet::new();
        assert_eq!(store.due(&none, Duration::ZERO), [ID]);
        let removal = store.begin_removal(ID, &tags).unwrap();
        let held = tokio::time::timeout(Duration::from_secs(60), store.hold(&["redis:7"]));
        assert!(held.await.is_err(), "it waits");
        let (hold, ()) = tokio::join!(store.hold(&["redis:7"]), async { drop(removal) });
        // A pull of another start keeps its entry open.
        store.begin_pull("redis:7", None);
        assert!(store.open_pulls().is_empty(), "a start waits for it");
        store.due(&none, Duration::ZERO);
        assert!(store.begin_removal(ID, &tags).is_none());
        drop(hold);
        assert_eq!(store.open_pulls(), ["redis:7"]);
        store.due(&none, Duration::ZERO);
        assert!(store.begin_removal(ID, &tags).is_some());
    }
}
