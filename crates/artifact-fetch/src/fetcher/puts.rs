//! Downloaded content, put to its destination.

use std::path::{Path, PathBuf};

use artifact::{Archive, Git};

use super::download::unusable;
use super::{Artifacts, Destination, orders};
use crate::cache::Blob;
use crate::failure::Failure;
use crate::install::{self, Form, Target};
use crate::request::ArtifactRequest;
use crate::wire::{self, TREE, Work};

/// Mode of a file that stays as it is. Source: Nomad's `exec` makes a task's program executable, so jobs
/// start programs that they download as plain files.
const FILE_MODE: u32 = 0o755;

impl Artifacts {
    /// Clones a repository into the destination.
    pub(super) async fn put_repository(
        &self,
        git: &Git,
        wanted: &ArtifactRequest,
        destination: &Destination,
    ) -> Result<(), Failure> {
        if destination.form == Form::File {
            let message = "a git repository is a directory: use `mode = \"any\"` or \"dir\"";
            return Err(Failure::lasting(message));
        }
        let scratch = self.workspace.scratch().map_err(unusable)?;
        let work = || orders::repository(git, wanted.insecure, &self.config);
        let what = wanted.source.getter.to_string();
        self.run(work, scratch.path(), &what).await?;
        self.metrics.downloads.inc();
        let tree = below(&scratch.path().join(TREE), wanted)?;
        install(destination.clone(), move |target| {
            install::put_tree(&tree, target)
        })
        .await
    }

    pub(super) async fn put_blob(
        &self,
        blob: &Blob,
        wanted: &ArtifactRequest,
        destination: &Destination,
    ) -> Result<(), Failure> {
        let source = &wanted.source;
        let Some(archive) = source.archive else {
            return put_plain(blob, wanted, destination).await;
        };
        let scratch = self.workspace.scratch().map_err(unusable)?;
        let name = source.name.as_deref().unwrap_or("content");
        let work = || {
            Work::Unpack(wire::Unpack {
                blob: blob.path().to_owned(),
                archive: archive.name().to_owned(),
                name: Archive::strip(name).to_owned(),
                entries_max: self.config.unpacked_entries_max,
                bytes_max: self.config.unpacked_bytes_max,
            })
        };
        let what = source.getter.to_string();
        self.run(work, scratch.path(), &what).await?;
        let tree = below(&scratch.path().join(TREE), wanted)?;
        let is_file = destination.form == Form::File;
        install(destination.clone(), move |target| {
            if is_file {
                install::put_file(&install::only_file(&tree)?, FILE_MODE, target)
            } else {
                install::put_tree(&tree, target)
            }
        })
        .await
    }
}

/// Copies a file that is no archive.
async fn put_plain(
    blob: &Blob,
    wanted: &ArtifactRequest,
    destination: &Destination,
) -> Result<(), Failure> {
    let mut destination = destination.clone();
    match (destination.form, &wanted.source.name) {
        (Form::File, _) => {}
        (Form::Any, Some(name)) => destination.path.push(name),
        (Form::Any, None) => {
            return Err(Failure::lasting(
                "the source names no file: set `mode = \"file\"`, or the option `filename`",
            ));
        }
        (Form::Dir, _) => {
            return Err(Failure::lasting(
                "with `mode = \"dir\"` want an archive or a git repository; set the option `archive` if \
                 the name has no suffix",
            ));
        }
    }
    let path = blob.path().to_owned();
    install(destination, move |target| {
        install::put_file(&path, FILE_MODE, target)
    })
    .await
}

/// Returns the part of a tree that the source names. Its links are checked with the tree; the path to it
/// must have none.
fn below(tree: &Path, wanted: &ArtifactRequest) -> Result<PathBuf, Failure> {
    let mut path = tree.to_owned();
    for component in wanted.source.subdir.iter().flat_map(|it| it.components()) {
        path.push(component);
        if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            let subdir = wanted.source.subdir.as_deref().unwrap_or(Path::new(""));
            return Err(Failure::passing(format!(
                "it has no directory {:?}",
                subdir.to_string_lossy()
            )));
        }
    }
    Ok(path)
}

async fn install(
    destination: Destination,
    put: impl FnOnce(&Target<'_>) -> std::io::Result<()> + Send + 'static,
) -> Result<(), Failure> {
    let done = blocking::spawn(move || {
        let own = || {
            (
                nix::unistd::geteuid().as_raw(),
                nix::unistd::getegid().as_raw(),
            )
        };
        let target = Target {
            base: &destination.base,
            path: &destination.path,
            owner: destination.owner.unwrap_or_else(own),
        };
        put(&target)
    });
    let done = done
        .await
        .map_err(|error| Failure::passing(error.to_string()))?;
    done.map_err(|error| Failure::passing(format!("cannot put it to its destination: {error}")))
}
