//! The node's cache of downloaded files: bounded in bytes, the least recently used one leaves first. It
//! survives the agent.
//!
//! Shape, below its folder: `<key>-<number>` is a file, `<key>-<number>.json` has its [`BlobRecord`]. A file
//! without the latter is incomplete.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};

use crate::wire::Validators;

/// A file of the cache, or one that it does not keep. It exists as long as this is held.
#[derive(Debug)]
pub(crate) struct Blob {
    path: PathBuf,
    is_discarded: AtomicBool,
}

impl Blob {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        if self.is_discarded.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct BlobRecord {
    bytes: u64,
    validators: Validators,
}

struct Entry {
    blob: Arc<Blob>,
    record: BlobRecord,
    /// The number of its last use.
    used: u64,
}

/// The cache; cheap to share behind an [`Arc`].
pub(crate) struct Cache {
    folder: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    bytes: u64,
    uses: u64,
    /// Above the numbers of all files.
    next: u64,
}

impl Cache {
    /// Reads the files of earlier runs of the agent, and removes incomplete ones.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn open(folder: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let mut found = Vec::new();
        for item in fs::read_dir(&folder)? {
            let path = item?.path();
            if path.extension().is_some_and(|it| it == "json") {
                if !path.with_extension("").is_file() {
                    fs::remove_file(&path)?;
                }
                continue;
            }
            let record = path.with_extension("json");
            let modified = fs::metadata(&record).and_then(|it| it.modified());
            match (modified, read_record(&record), name_of(&path)) {
                (Ok(modified), Some(record), Some((key, number))) => {
                    found.push((modified, number, key, path, record));
                }
                _ => fs::remove_file(&path)?,
            }
        }
        found.sort_by_key(|one| (one.0, one.1));
        let mut state = State::default();
        for (_, number, key, path, record) in found {
            state.next = state.next.max(number + 1);
            state.insert(key, path, record);
        }
        let cache = Self {
            folder,
            bytes_max,
            state: Mutex::new(state),
        };
        cache.evict(&mut cache.state());
        Ok(cache)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Returns a file and its validators, and notes its use.
    pub(crate) fn find(&self, key: &str) -> Option<(Arc<Blob>, Validators)> {
        let mut state = self.state();
        state.uses += 1;
        let uses = state.uses;
        let entry = state.entries.get_mut(key)?;
        entry.used = uses;
        let record = entry.blob.path.with_extension("json");
        // The order of uses survives the agent by this time.
        let (now, flags) = (TimeSpec::UTIME_NOW, UtimensatFlags::NoFollowSymlink);
        let _ = utimensat(AT_FDCWD, &record, &now, &now, flags);
        Some((Arc::clone(&entry.blob), entry.record.validators.clone()))
    }

    /// Takes a file over, in the place of one of the same key. A file that is larger than the whole cache
    /// is removed after its use.
    ///
    /// # Errors
    /// The file cannot be moved.
    pub(crate) fn add(
        &self,
        key: &str,
        file: &Path,
        validators: Validators,
        is_kept: bool,
    ) -> io::Result<Arc<Blob>> {
        let bytes = fs::symlink_metadata(file)?.len();
        let mut state = self.state();
        let path = self.folder.join(format!("{key}-{}", state.next));
        state.next += 1;
        fs::rename(file, &path)?;
        let record = BlobRecord { bytes, validators };
        if !is_kept || bytes > self.bytes_max {
            return Ok(Arc::new(Blob {
                path,
                is_discarded: AtomicBool::new(true),
            }));
        }
        let text = serde_json::to_vec(&record).map_err(io::Error::other)?;
        fs::write(path.with_extension("json"), text)?;
        state.remove(key);
        let blob = state.insert(key.to_owned(), path, record);
        self.evict(&mut state);
        Ok(blob)
    }

    /// Forgets a file; it is removed after its last use.
    pub(crate) fn remove(&self, key: &str) {
        self.state().remove(key);
    }

    fn evict(&self, state: &mut State) {
        while state.bytes > self.bytes_max {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            state.remove(&key);
        }
    }
}

impl State {
    fn insert(&mut self, key: String, path: PathBuf, record: BlobRecord) -> Arc<Blob> {
        self.uses += 1;
        self.bytes = self.bytes.saturating_add(record.bytes);
        let blob = Arc::new(Blob {
            path,
            is_discarded: AtomicBool::new(false),
        });
        let entry = Entry {
            blob: Arc::clone(&blob),
            record,
            used: self.uses,
        };
        if let Some(old) = self.entries.insert(key, entry) {
            self.discard(&old);
        }
        blob
    }

    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.discard(&entry);
        }
    }

    fn discard(&mut self, entry: &Entry) {
        self.bytes = self.bytes.saturating_sub(entry.record.bytes);
        // First: without it, an agent that dies now leaves a file that the next one removes.
        let _ = fs::remove_file(entry.blob.path.with_extension("json"));
        entry.blob.is_discarded.store(true, Ordering::Relaxed);
    }
}

fn read_record(path: &Path) -> Option<BlobRecord> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn name_of(path: &Path) -> Option<(String, u64)> {
    let (key, number) = path.file_name()?.to_str()?.rsplit_once('-')?;
    Some((key.to_owned(), number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            fs::create_dir(folder.0.path().join("cache")).unwrap();
            folder
        }

        fn open(&self, bytes_max: u64) -> Cache {
            Cache::open(self.0.path().join("cache"), bytes_max).unwrap()
        }

        fn add(&self, cache: &Cache, key: &str, content: &str) -> Arc<Blob> {
            let part = self.0.path().join("part");
            fs::write(&part, content).unwrap();
            let validators = Validators {
                etag: Some(key.to_owned()),
                modified: None,
            };
            cache.add(key, &part, validators, true).unwrap()
        }

        fn files(&self) -> usize {
            fs::read_dir(self.0.path().join("cache")).unwrap().count()
        }
    }

    fn text(blob: &Blob) -> String {
        fs::read_to_string(blob.path()).unwrap()
    }

    #[test]
    fn the_least_recently_used_file_leaves_first_also_after_a_restart() {
        let folder = Folder::new();
        let cache = folder.open(10);
        for key in ["a", "b"] {
            folder.add(&cache, key, "12345");
        }
        // The times of files on disk are coarse.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(cache.find("a").unwrap().1.etag.as_deref(), Some("a"));
        drop(cache);
        let cache = folder.open(10);
        assert_eq!(cache.bytes(), 10);
        folder.add(&cache, "c", "123");
        assert!(cache.find("b").is_none());
        assert_eq!(text(&cache.find("a").unwrap().0), "12345");
        assert_eq!((cache.bytes(), folder.files()), (8, 4));
        drop(cache);
        // With a smaller limit, the rest leaves.
        assert_eq!(folder.open(3).bytes(), 3);
        assert_eq!(folder.files(), 2);
    }

    #[test]
    fn a_file_in_use_stays_until_its_use_ends() {
        let folder = Folder::new();
        let cache = folder.open(10);
        let old = folder.add(&cache, "a", "old");
        let new = folder.add(&cache, "a", "new");
        assert_eq!(
            (text(&old), text(&new)),
            ("old".to_owned(), "new".to_owned())
        );
        cache.remove("a");
        drop(old);
        assert_eq!((text(&new), cache.bytes()), ("new".to_owned(), 0));
        drop(new);
        assert_eq!(folder.files(), 0);
    }

    #[test]
    fn a_file_above_the_limit_is_used_and_not_kept() {
        let folder = Folder::new();
        let cache = folder.open(2);
        let blob = folder.add(&cache, "a", "123");
        assert_eq!(text(&blob), "123");
        assert!(cache.find("a").is_none());
        drop(blob);
        assert_eq!(folder.files(), 0);
    }

    #[test]
    fn incomplete_files_of_an_agent_that_died_are_removed() {
        let folder = Folder::new();
        let base = folder.0.path().join("cache");
        fs::write(base.join("a-1"), "x").unwrap();
        fs::write(base.join("b-2.json"), "{}").unwrap();
        fs::write(base.join("stray"), "x").unwrap();
        assert_eq!(folder.open(10).bytes(), 0);
        assert_eq!(folder.files(), 0);
    }
}
