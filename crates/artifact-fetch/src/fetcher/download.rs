//! Downloads of files: from the cache, or by the helper, verified.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use artifact::{Checksum, Digest, Getter};

use super::Artifacts;
use super::orders;
use crate::cache::Blob;
use crate::failure::Failure;
use crate::request::ArtifactRequest;
use crate::wire::{PART, Report, Validators};
use crate::{digests, key};

/// Downloads of one call: a second one after content that another one began and that is wrong, a third
/// one after content in the cache that is no longer that of the list of checksums.
const ROUNDS: u32 = 3;

impl Artifacts {
    /// Returns a file of the cache if it is still that of its source; else downloads it.
    pub(super) async fn download(
        &self,
        key: &str,
        wanted: &ArtifactRequest,
    ) -> Result<Arc<Blob>, Failure> {
        let mut cached = self.cache.find(key);
        if let (Some((blob, _)), Some(_)) = (&cached, key::digest(&wanted.source)) {
            // Verified when it came in, and the checksum is part of the key.
            self.metrics.cache_hits.inc();
            return Ok(Arc::clone(blob));
        }
        let folder = self.workspace.part(key).map_err(unusable)?;
        let mut last = Failure::passing("no download");
        for _ in 0..ROUNDS {
            let validators = cached.as_ref().map(|(_, validators)| validators.clone());
            let validators = validators.filter(|it| *it != Validators::default());
            let work = || orders::work(wanted, validators.as_ref(), &self.config);
            let what = wanted.source.getter.to_string();
            let report = match self.run(work, &folder, &what).await {
                Ok(report) => report,
                Err(failure) => {
                    self.workspace.sweep(self.config.parallel);
                    return Err(failure);
                }
            };
            let (list, resumed) = match report {
                Report::Unchanged { list } => match cached.take() {
                    Some((blob, _)) => match check(blob.path(), wanted, list.as_deref()).await {
                        Ok(()) => {
                            self.metrics.cache_hits.inc();
                            self.workspace.remove_part(key);
                            return Ok(blob);
                        }
                        Err(failure) => {
                            self.cache.remove(key);
                            self.note_cache();
                            last = failure;
                            continue;
                        }
                    },
                    None => return Err(Failure::passing("the server answered 304 unasked")),
                },
                Report::Fetched {
                    validators,
                    list,
                    resumed,
                } => {
                    let part = folder.join(PART);
                    let checked = match own(&part) {
                        Ok(()) => check(&part, wanted, list.as_deref()).await,
                        Err(failure) => Err(failure),
                    };
                    if let Err(failure) = checked {
                        (Some(failure), resumed)
                    } else {
                        self.metrics.downloads.inc();
                        let is_kept = key::digest(&wanted.source).is_some()
                            || validators != Validators::default();
                        let is_kept = is_kept && !matches!(wanted.source.getter, Getter::File(_));
                        let added = self.cache.add(key, &part, validators, is_kept);
                        self.note_cache();
                        self.workspace.remove_part(key);
                        return added.map_err(unusable);
                    }
                }
                _ => return Err(Failure::passing("the helper gave another answer")),
            };
            self.workspace.remove_part(key);
            if let Some(failure) = list {
                last = failure;
            }
            if !resumed {
                break;
            }
            // The part may have been of other content: once more, from the start.
            self.workspace.part(key).map_err(unusable)?;
        }
        Err(last)
    }
}

/// Takes a file over that the helper wrote.
fn own(part: &Path) -> Result<(), Failure> {
    let taken = (|| {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
            .open(part)?;
        let found = file.metadata()?;
        if !found.is_file() || found.nlink() != 1 {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
        std::os::unix::fs::fchown(&file, Some(uid.as_raw()), Some(gid.as_raw()))
    })();
    taken.map_err(unusable)
}

/// Checks a file against the checksum of its source.
async fn check(path: &Path, wanted: &ArtifactRequest, list: Option<&str>) -> Result<(), Failure> {
    let digest = match &wanted.source.checksum {
        None => return Ok(()),
        Some(Checksum::Digest(digest)) => digest.clone(),
        Some(Checksum::List(_)) => {
            let name = wanted.source.name.as_deref().unwrap_or_default();
            Digest::in_list(list.unwrap_or_default(), name).map_err(Failure::passing)?
        }
    };
    let path = path.to_owned();
    let algorithm = digest.algorithm;
    let found = blocking::spawn(move || digests::of_file(File::open(path)?, algorithm)).await;
    let found = found.map_err(|error| Failure::passing(error.to_string()))?;
    let found = found.map_err(unusable)?;
    if found != digest {
        return Err(Failure::passing(format!(
            "checksum mismatch: want {digest}, got {found}"
        )));
    }
    Ok(())
}

/// A failure of the node's own files.
pub(super) fn unusable(error: std::io::Error) -> Failure {
    Failure::passing(format!("files of the node: {error}"))
}
