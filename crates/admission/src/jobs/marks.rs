//! Labels of job versions: the mark of a stable version, and tags.
//!
//! **Invariant**: a tag names one version. All tags of a job are one value, which every change of a
//! tag and every deletion of a version compares.

use std::sync::Arc;

use model::{FieldErrors, Indexed, Job, JobKey, JobTags, Timestamp, VersionTag};
use state::{Entity, Key, Snapshot, Write};

use model::refusal::{Kind, Refusal};

use super::missing::{NoSuchJob, find_job};

/// The largest number of tagged versions of a job: each is kept forever, with its whole job. Ours:
/// more than a tag a week for a year.
const MAX_TAGS: usize = 64;
/// The length limit of a tag, in bytes. Ours: names of releases and branches are shorter.
const MAX_NAME_BYTES: usize = 128;
/// Source: Nomad's limit of a tag's description.
const MAX_DESCRIPTION_BYTES: usize = 1_000;

/// The reason why a version stays as it is.
///
/// Source of the texts as far as the colon: Nomad, whose clients show them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(transparent)]
    NoSuchJob(#[from] NoSuchJob),
    #[error(
        "can't revert to current version: 'kafila job history' shows the earlier ones, and 'kafila job \
         run -force' runs the same again"
    )]
    CurrentVersion,
    #[error(
        "Current job has version {current}; enforcing version {want}: look at the job again, and ask \
         for its current version"
    )]
    PriorVersion { current: u64, want: u64 },
    #[error(
        "job {job_id:?} in namespace {namespace:?} at version {version} not found: it keeps {kept}"
    )]
    NoVersion {
        namespace: String,
        job_id: String,
        version: u64,
        kept: String,
    },
    #[error("tag {name:?} not found: {known}")]
    NoTag { name: String, known: String },
    #[error(
        "tag {name:?} already exists on a different version of job {job_id:?}: version {version}"
    )]
    TagTaken {
        name: String,
        job_id: String,
        version: u64,
    },
    #[error("job {job_id:?} has {MAX_TAGS} tagged versions, the maximum: untag one first")]
    TooManyTags { job_id: String },
}

impl Refusal for VersionRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::NoSuchJob(refusal) => refusal.kind(),
            Self::CurrentVersion | Self::TooManyTags { .. } => Kind::Precondition,
            Self::PriorVersion { .. } => Kind::Outdated,
            Self::NoVersion { .. } | Self::NoTag { .. } => Kind::NotFound,
            Self::TagTaken { .. } => Kind::AlreadyExists,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// The decision on a label of a version, as of one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelDecision<T> {
    /// It is as requested since this revision.
    Unchanged { answer: T, index: u64 },
    /// To be written in one transaction.
    Commit { answer: T, writes: Vec<Write> },
}

/// A tag and the version that has it, or had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    pub version: u64,
    pub tag: VersionTag,
}

/// Decides on marking a version as stable, or on removing the mark.
///
/// # Errors
/// There is no such job or version.
pub fn set_stable(
    snapshot: &Snapshot,
    key: &JobKey,
    version: u64,
    stable: bool,
) -> Result<LabelDecision<()>, VersionRefusal> {
    find_job(snapshot, key)?;
    let row = find_version(snapshot, key, version)?;
    let marker = Key::JobStable(key.clone(), version);
    let mark = match (stable, snapshot.stable_index(key, version)) {
        (true, None) => Write::Create {
            key: marker,
            entity: Entity::JobStable,
        },
        (false, Some(modify_index)) => Write::Delete {
            key: marker,
            modify_index,
        },
        (_, index) => {
            return Ok(LabelDecision::Unchanged {
                answer: (),
                index: index.unwrap_or(row.modify_index),
            });
        }
    };
    Ok(LabelDecision::Commit {
        answer: (),
        writes: vec![mark, Write::version_unchanged(row)],
    })
}

/// A request to tag a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRequest {
    pub job: JobKey,
    pub name: String,
    pub description: String,
    /// `None`: the current version.
    pub version: Option<u64>,
}

/// Decides on tagging a version; its previous tag is replaced.
///
/// # Errors
/// See [`VersionRefusal`].
pub fn tag(
    snapshot: &Snapshot,
    request: &TagRequest,
    now: Timestamp,
) -> Result<LabelDecision<Tagged>, VersionRefusal> {
    check_tag(request)?;
    let key = &request.job;
    let job = find_job(snapshot, key)?;
    let version = request.version.unwrap_or(job.value.version);
    let row = find_version(snapshot, key, version)?;
    let stored = snapshot.job_tags(key);
    let mut tags = stored.map_or_else(JobTags::default, |stored| stored.value.clone());
    if let Some(other) = tags.find(&request.name).filter(|other| *other != version) {
        return Err(VersionRefusal::TagTaken {
            name: request.name.clone(),
            job_id: key.job_id.to_string(),
            version: other,
        });
    }
    if let (Some(tag), Some(stored)) = (tags.versions.get(&version), stored)
        && tag.name == request.name
        && tag.description == request.description
    {
        let tag = tag.clone();
        return Ok(LabelDecision::Unchanged {
            answer: Tagged { version, tag },
            index: stored.modify_index,
        });
    }
    let tag = VersionTag {
        name: request.name.clone(),
        description: request.description.clone(),
        tagged_time: now,
    };
    tags.versions.insert(version, tag.clone());
    if tags.versions.len() > MAX_TAGS {
        let job_id = key.job_id.to_string();
        return Err(VersionRefusal::TooManyTags { job_id });
    }
    Ok(LabelDecision::Commit {
        answer: Tagged { version, tag },
        // The job, too: tags do not outlive a purge.
        writes: vec![
            put_tags(key, stored, tags),
            Write::version_unchanged(row),
            Write::job_unchanged(job),
        ],
    })
}

/// Decides on removing a tag.
///
/// # Errors
/// There is no such job, or no version has the tag.
pub fn untag(
    snapshot: &Snapshot,
    key: &JobKey,
    name: &str,
) -> Result<LabelDecision<Tagged>, VersionRefusal> {
    find_job(snapshot, key)?;
    let version = find_tag(snapshot, key, name)?;
    let stored = snapshot.job_tags(key).expect("a tag was found in them");
    let mut tags = stored.value.clone();
    let tag = tags.versions.remove(&version).expect("it was found there");
    let write = if tags.versions.is_empty() {
        Write::Delete {
            key: Key::JobTags(key.clone()),
            modify_index: stored.modify_index,
        }
    } else {
        put_tags(key, Some(stored), tags)
    };
    Ok(LabelDecision::Commit {
        answer: Tagged { version, tag },
        writes: vec![write],
    })
}

fn put_tags(key: &JobKey, stored: Option<&Arc<Indexed<JobTags>>>, tags: JobTags) -> Write {
    let key = Key::JobTags(key.clone());
    let entity = Entity::JobTags(Box::new(tags));
    match stored {
        Some(stored) => Write::Update {
            key,
            modify_index: stored.modify_index,
            entity,
        },
        None => Write::Create { key, entity },
    }
}

/// Returns the version with the tag `name`.
///
/// # Errors
/// No version has it.
pub fn find_tag(snapshot: &Snapshot, key: &JobKey, name: &str) -> Result<u64, VersionRefusal> {
    let tags = snapshot.job_tags(key);
    let found = tags.and_then(|tags| tags.value.find(name));
    found.ok_or_else(|| {
        let tags = tags
            .into_iter()
            .flat_map(|tags| tags.value.versions.values());
        let names: Vec<&str> = tags.map(|tag| tag.name.as_str()).collect();
        VersionRefusal::NoTag {
            name: name.to_owned(),
            known: if names.is_empty() {
                "no version of the job has a tag".to_owned()
            } else {
                format!("there is {}", names.join(", "))
            },
        }
    })
}

/// Returns a kept version.
///
/// # Errors
/// It is not kept.
pub fn find_version<'a>(
    snapshot: &'a Snapshot,
    key: &JobKey,
    version: u64,
) -> Result<&'a Indexed<Job>, VersionRefusal> {
    let row = snapshot.job_version(key, version).map(AsRef::as_ref);
    row.ok_or_else(|| {
        let kept = snapshot.job_versions(key);
        let kept: Vec<String> = kept.map(|row| row.value.version.to_string()).collect();
        VersionRefusal::NoVersion {
            namespace: key.namespace.to_string(),
            job_id: key.job_id.to_string(),
            version,
            kept: kept.join(", "),
        }
    })
}

fn check_tag(request: &TagRequest) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let name = &request.name;
    if name.is_empty() {
        errors.push("name", "missing: want a name for the version");
    } else if name.len() > MAX_NAME_BYTES {
        errors.push(
            "name",
            format!("has {} bytes: want at most {MAX_NAME_BYTES}", name.len()),
        );
    } else if name.chars().any(char::is_control) {
        errors.push(
            "name",
            format!("{name:?} has control characters: leave them out"),
        );
    } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
        errors.push(
            "name",
            format!("{name:?} looks like the number of a version: want a letter in it"),
        );
    }
    let described = request.description.len();
    if described > MAX_DESCRIPTION_BYTES {
        errors.push(
            "description",
            format!("has {described} bytes: want at most {MAX_DESCRIPTION_BYTES}"),
        );
    }
    errors.into_result(())
}
