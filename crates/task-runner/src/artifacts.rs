//! Artifacts of a task: downloaded before its first start, once in the life of its allocation.
//!
//! A record below the allocation's directory has the artifacts that are done; tasks cannot write it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use artifact::Source;
use artifact_fetch::{ArtifactRequest, Artifacts, Destination, Failure, Form};
use lifecycle::{StartFailure, StartStep};
use model::AllocPath;
use model::artifact::{Artifact, ArtifactMode};
use task_drivers::TaskDirs;
use tokio::task::JoinSet;

use crate::templates::of_job_file;

/// Downloads of one task at a time. Source: Nomad's behaviour.
const PARALLEL: usize = 3;

/// Returns artifacts with their references replaced.
pub(crate) fn interpolate(
    artifacts: &[Artifact],
    interpolated: impl Fn(&str) -> String,
) -> Vec<Artifact> {
    let mut artifacts = artifacts.to_vec();
    for artifact in &mut artifacts {
        artifact.source = interpolated(&artifact.source);
        artifact.destination = interpolated(&artifact.destination);
        let values = artifact.options.values_mut();
        for value in values.chain(artifact.headers.values_mut()) {
            *value = interpolated(value);
        }
    }
    artifacts
}

/// The artifacts of one task that are not there yet.
pub(crate) struct Fetch {
    /// With the names of their records.
    missing: Vec<(String, Artifact)>,
    done: BTreeSet<String>,
    record: PathBuf,
    dirs: TaskDirs,
    user: String,
}

impl Fetch {
    /// `artifacts` have no references, `user` is the task's.
    pub(crate) fn new(artifacts: Vec<Artifact>, dirs: TaskDirs, task: &str, user: String) -> Self {
        let above = dirs.root.parent().unwrap_or(&dirs.root);
        let record = above.join(format!(".artifacts-{task}.json"));
        let done: BTreeSet<String> = fs::read(&record)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let named = artifacts.into_iter().map(|artifact| {
            // A hash: sources and headers may have secrets.
            let text = serde_json::to_string(&artifact).unwrap_or_default();
            (artifact_fetch::sha256_of(&text), artifact)
        });
        Self {
            missing: named.filter(|(name, _)| !done.contains(name)).collect(),
            done,
            record,
            dirs,
            user,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.missing.is_empty()
    }

    /// Downloads what is missing. Dropped before its end, it stops the downloads.
    pub(crate) async fn run(mut self, node: Option<&Arc<Artifacts>>) -> Result<(), StartFailure> {
        let Some(node) = node else {
            return Err(failed("this node downloads no artifacts".to_owned(), false));
        };
        let mut running = JoinSet::new();
        let mut missing = std::mem::take(&mut self.missing).into_iter();
        loop {
            while running.len() < PARALLEL
                && let Some((name, artifact)) = missing.next()
            {
                let (wanted, destination) = self.read(&artifact)?;
                let node = Arc::clone(node);
                running.spawn(async move { (name, node.put(&wanted, &destination).await) });
            }
            let Some(ended) = running.join_next().await else {
                return Ok(());
            };
            let (name, result) = ended.map_err(|error| failed(error.to_string(), true))?;
            result.map_err(|failure: Failure| failed(failure.message, failure.recoverable))?;
            self.note(name)?;
        }
    }

    fn read(&self, artifact: &Artifact) -> Result<(ArtifactRequest, Destination), StartFailure> {
        let source = Source::parse(&artifact.source, &artifact.options);
        let source =
            source.map_err(|problem| failed(format!("artifact source {problem}"), false))?;
        let form = match artifact.mode {
            ArtifactMode::Any => Form::Any,
            ArtifactMode::File => Form::File,
            ArtifactMode::Dir => Form::Dir,
        };
        let (base, mut path) = self.place(&artifact.destination)?;
        if form == Form::File && artifact.destination.ends_with('/') {
            path.extend(&source.name);
        }
        let owner = match artifact.chown && !self.user.is_empty() {
            true => Some(ids(&self.user).map_err(|message| failed(message, false))?),
            false => None,
        };
        let wanted = ArtifactRequest {
            source,
            headers: artifact.headers.clone(),
            insecure: artifact.insecure,
        };
        let destination = Destination {
            base,
            path,
            form,
            owner,
        };
        Ok((wanted, destination))
    }

    /// Returns the directory of a destination and the rest of its path.
    fn place(&self, destination: &str) -> Result<(PathBuf, PathBuf), StartFailure> {
        let place = AllocPath::at(&of_job_file(&self.dirs, destination));
        match place {
            Some(AllocPath::Task(path)) => Ok((self.dirs.root.clone(), path)),
            Some(AllocPath::Shared(path)) => Ok((self.dirs.shared.clone(), path)),
            None => {
                let message = format!(
                    "artifact destination {destination:?} is not below the task's directory or ../alloc"
                );
                Err(failed(message, false))
            }
        }
    }

    /// Records an artifact that is there.
    fn note(&mut self, name: String) -> Result<(), StartFailure> {
        self.done.insert(name);
        let text = serde_json::to_vec(&self.done).unwrap_or_default();
        let part = self.record.with_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, &self.record))
            .map_err(|error| failed(format!("cannot record an artifact: {error}"), true))
    }
}

/// Returns the ids of `user`, `user:group` or numbers in their place.
fn ids(user: &str) -> Result<(u32, u32), String> {
    let (name, group) = match user.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (user, None),
    };
    let unknown = |kind: &str, name: &str| {
        format!("`chown`: {kind} {name:?} does not exist on this node; leave chown out")
    };
    let (uid, own_gid) = match name.parse() {
        Ok(uid) => (uid, uid),
        Err(_) => match nix::unistd::User::from_name(name) {
            Ok(Some(found)) => (found.uid.as_raw(), found.gid.as_raw()),
            _ => return Err(unknown("user", name)),
        },
    };
    let gid = match group.map(|group| (group, group.parse())) {
        None => own_gid,
        Some((_, Ok(gid))) => gid,
        Some((group, Err(_))) => match nix::unistd::Group::from_name(group) {
            Ok(Some(found)) => found.gid.as_raw(),
            _ => return Err(unknown("group", group)),
        },
    };
    Ok((uid, gid))
}

fn failed(message: String, recoverable: bool) -> StartFailure {
    StartFailure {
        step: StartStep::Artifacts,
        message,
        recoverable,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn artifact(source: &str, destination: &str) -> Artifact {
        Artifact {
            source: source.to_owned(),
            options: Default::default(),
            headers: Default::default(),
            mode: ArtifactMode::Any,
            insecure: false,
            destination: destination.to_owned(),
            chown: false,
        }
    }

    fn dirs(base: &Path) -> TaskDirs {
        task_drivers::AllocDirs {
            root: base.to_owned(),
        }
        .task("web")
    }

    fn fetch(base: &Path, artifacts: &[Artifact]) -> Fetch {
        Fetch::new(artifacts.to_vec(), dirs(base), "web", String::new())
    }

    #[test]
    fn an_artifact_that_is_recorded_is_not_missing() {
        let base = tempfile::tempdir().unwrap();
        let one = artifact("https://h.test/a", "local/");
        let two = artifact("https://h.test/a", "local/two");
        let mut first = fetch(base.path(), std::slice::from_ref(&one));
        assert!(!first.is_done());
        let name = first.missing[0].0.clone();
        first.note(name).unwrap();
        assert!(fetch(base.path(), std::slice::from_ref(&one)).is_done());
        let both = fetch(base.path(), &[one, two.clone()]);
        assert_eq!(both.missing.len(), 1);
        assert_eq!(both.missing[0].1, two);
    }

    #[test]
    fn references_are_replaced_everywhere() {
        let mut with = artifact("https://${h}/a", "${d}/x");
        with.options
            .insert("checksum".to_owned(), "${c}".to_owned());
        with.headers.insert("X-Token".to_owned(), "${t}".to_owned());
        let replaced = interpolate(&[with], |text| text.replace("${", "<").replace('}', ">"));
        let replaced = &replaced[0];
        assert_eq!(
            (replaced.source.as_str(), replaced.destination.as_str()),
            ("https://<h>/a", "<d>/x")
        );
        assert_eq!(replaced.options["checksum"], "<c>");
        assert_eq!(replaced.headers["X-Token"], "<t>");
    }

    #[test]
    fn destinations_are_below_the_task_or_the_shared_directory() {
        let base = tempfile::tempdir().unwrap();
        let fetch = fetch(base.path(), &[]);
        let (task, shared) = (base.path().join("web"), base.path().join("alloc"));
        let of_node = format!("{}/data", shared.display());
        for (destination, want) in [
            ("local/x", (&task, "local/x")),
            ("/tmp/", (&task, "tmp")),
            ("/alloc/data", (&shared, "data")),
            ("../alloc/data", (&shared, "data")),
            (of_node.as_str(), (&shared, "data")),
        ] {
            let (root, path) = fetch.place(destination).unwrap();
            assert_eq!(
                (&root, path.as_path()),
                (want.0, Path::new(want.1)),
                "{destination}"
            );
        }
        assert!(
            fetch
                .place("../../x")
                .unwrap_err()
                .message
                .contains("../../x")
        );
    }

    #[test]
    fn a_file_into_a_directory_keeps_its_name() {
        let base = tempfile::tempdir().unwrap();
        let mut file = artifact("https://h.test/app.conf", "local/");
        file.mode = ArtifactMode::File;
        let (_, destination) = fetch(base.path(), &[]).read(&file).unwrap();
        assert_eq!(destination.path, Path::new("local/app.conf"));
    }

    #[test]
    fn users_are_names_or_numbers() {
        assert_eq!(ids("1000:7"), Ok((1000, 7)));
        assert_eq!(ids("root"), Ok((0, 0)));
        assert!(ids("no-such-user").unwrap_err().contains("chown"));
    }
}
