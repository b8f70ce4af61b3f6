//! Jobs: [`v1::Job`] and [`spec::Job`], in which everything is optional.
//!
//! A list or map that is empty and one that is missing look the same on the wire; both are read as
//! missing, so the default applies.

use model::spec::{self, Span};
use model::{FieldErrors, Indexed, VersionTag};

use crate::fields::At as _;
use crate::v1;

mod launches;
mod read;
mod write;

impl TryFrom<v1::Job> for spec::Job {
    /// Everything that is wrong, not only the first.
    type Error = FieldErrors;

    fn try_from(job: v1::Job) -> Result<Self, FieldErrors> {
        read::job(job).at("job")
    }
}

impl TryFrom<&spec::Job> for v1::Job {
    type Error = FieldErrors;

    /// Refuses spans that are still a text: see [`v1::Job::from_spec`].
    fn try_from(job: &spec::Job) -> Result<Self, FieldErrors> {
        Self::from_spec(job, &parse_nothing)
    }
}

/// Refuses every text: for specs whose spans were all parsed before.
///
/// # Errors
/// Always.
pub fn parse_nothing(text: &str) -> Result<i64, String> {
    Err(format!(
        "{text:?} has to be parsed before it is sent: want nanoseconds"
    ))
}

/// What reading a job adds to what is stored.
#[derive(Clone, Copy, Debug)]
pub struct JobRead<'a> {
    /// pending, running or dead.
    pub status: &'static str,
    pub stable: bool,
    /// What the version is called.
    pub tag: Option<&'a VersionTag>,
}

impl From<&VersionTag> for v1::VersionTag {
    fn from(tag: &VersionTag) -> Self {
        Self {
            name: tag.name.clone(),
            description: tag.description.clone(),
            tagged_time_ns: tag.tagged_time.0,
        }
    }
}

impl v1::Job {
    /// Writes a job as its user gave it; `parse_span` reads a span that is still a text, as
    /// nanoseconds, or says what is wrong with it.
    ///
    /// # Errors
    /// Spans that cannot be parsed and integers that the wire cannot hold, all of them.
    pub fn from_spec(
        job: &spec::Job,
        parse_span: &dyn Fn(&str) -> Result<i64, String>,
    ) -> Result<Self, FieldErrors> {
        write::job(job, write::Mode::Given(parse_span)).at("job")
    }

    /// Writes a stored job as readers get it.
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

impl From<&model::Job> for v1::Job {
    fn from(job: &model::Job) -> Self {
        write::job(&spec::Job::from(job), write::Mode::Stored)
            .expect("a stored job holds no text spans, and its large integers become strings")
    }
}

/// Returns a span as it stands in a spec.
fn span(nanoseconds: i64) -> Span {
    Span::Nanoseconds(nanoseconds)
}
