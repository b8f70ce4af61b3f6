//! Stored jobs as readers get them.

use model::{Indexed, VersionTag};

use crate::Job;

/// Facts about a stored job that its readers get with it.
#[derive(Clone, Copy, Debug)]
pub struct JobRead<'a> {
    /// pending, running or dead.
    pub status: &'static str,
    pub stable: bool,
    /// The name of the version.
    pub tag: Option<&'a VersionTag>,
}

impl Job {
    /// Returns a stored job as readers get it.
    pub fn from_stored(job: &Indexed<model::Job>, read: JobRead<'_>) -> Self {
        Self {
            status: Some(read.status.to_owned()),
            stable: Some(read.stable),
            version_tag: read.tag.map(Into::into),
            create_index: Some(job.create_index),
            modify_index: Some(job.modify_index),
            job_modify_index: Some(job.modify_index),
            ..Self::from(&job.value)
        }
    }
}
