//! Templates of a task: rendered before each start, files and variables.
//!
//! [`files`] keeps reads and writes below the task's directories; [`interfaces`] lists the node's
//! addresses for `sockaddr`. The language is in `crates/template`.

use std::collections::BTreeMap;
use std::path::Path;

use lifecycle::{StartFailure, StartStep};
use model::Timestamp;
use model::template::{Template, TemplateFile};
use task_drivers::TaskDirs;
use template::{Files, Limits, Lookup, Rendered, Source, Surroundings};

mod files;
mod interfaces;

pub(crate) use files::{Content, Folder};

/// Look-ups that an event names; it counts the others. Source: Nomad's events.
const NAMED_LOOKUPS: usize = 3;

/// Everything that a task's templates are rendered from.
pub(crate) struct Input {
    pub(crate) templates: Vec<Template>,
    pub(crate) dirs: TaskDirs,
    /// The environment that the templates see.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) namespace: String,
    pub(crate) region: String,
    pub(crate) now: Timestamp,
}

/// The outcome of one rendering of all templates.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The files are written; these are the variables of templates with `env`.
    Written(BTreeMap<String, String>),
    /// No file is written. The message says what is missing.
    Waiting(String),
}

/// Renders all templates, then writes all files: none is written while one of them waits.
///
/// Blocks on files.
///
/// # Errors
/// The first template that can't be rendered or written; the restart policy applies.
pub(crate) fn render(input: &Input, source: &dyn Source) -> Result<Outcome, StartFailure> {
    let roots = Roots::open(&input.dirs)
        .map_err(|error| failure(&format!("cannot open the task's directories: {error}")))?;
    let mut texts = Vec::new();
    let mut missing = Vec::new();
    for template in &input.templates {
        match roots
            .render(template, input, source)
            .map_err(|message| failure_of(template, &message))?
        {
            Rendered::Text(text) => texts.push((template, text)),
            Rendered::Waiting(lookups) => missing.extend(lookups),
        }
    }
    if !missing.is_empty() {
        missing.sort();
        missing.dedup();
        return Ok(Outcome::Waiting(waiting(&missing)));
    }
    let mut variables = BTreeMap::new();
    for (template, text) in texts {
        roots
            .write(template, &text)
            .map_err(|message| failure_of(template, &message))?;
        if template.env {
            let of_file = template::env_file::parse(&text)
                .map_err(|error| failure_of(template, &error.to_string()))?;
            variables.extend(of_file);
        }
    }
    Ok(Outcome::Written(variables))
}

fn failure_of(template: &Template, message: &str) -> StartFailure {
    failure(&format!(
        "template for {:?}: {message}",
        template.destination
    ))
}

fn failure(message: &str) -> StartFailure {
    StartFailure {
        step: StartStep::Hook,
        message: message.to_owned(),
        recoverable: true,
    }
}

/// The event's message: the first look-ups by name, and the systems that this node does not have.
fn waiting(missing: &[Lookup]) -> String {
    let named: Vec<String> = missing
        .iter()
        .take(NAMED_LOOKUPS)
        .map(ToString::to_string)
        .collect();
    let mut message = format!("Missing: {}", named.join(", "));
    if missing.len() > NAMED_LOOKUPS {
        message.push_str(&format!(", and {} more", missing.len() - NAMED_LOOKUPS));
    }
    let mut systems: Vec<&str> = missing.iter().map(Lookup::system).collect();
    systems.sort_unstable();
    systems.dedup();
    message.push_str(&format!(
        ". This version of Kafila has no {}: the task waits until it is stopped. Pass the values with env or meta",
        systems.join(" and "),
    ));
    message
}

/// The directories that a task's templates may read and write.
struct Roots<'a> {
    dirs: &'a TaskDirs,
    task: Folder,
    shared: Folder,
}

impl<'a> Roots<'a> {
    fn open(dirs: &'a TaskDirs) -> std::io::Result<Self> {
        Ok(Self {
            dirs,
            task: Folder::open(&dirs.root)?,
            shared: Folder::open(&dirs.shared)?,
        })
    }

    fn render(
        &self,
        template: &Template,
        input: &Input,
        source: &dyn Source,
    ) -> Result<Rendered, String> {
        let limits = Limits::default();
        let data = if template.source.is_empty() {
            template.data.clone()
        } else {
            self.read(&template.source, limits.output_max)?
        };
        let text =
            template::Template::parse(&data, &template.left_delimiter, &template.right_delimiter)
                .map_err(|error| error.to_string())?;
        let now = i64::try_from(input.now.0).unwrap_or(i64::MAX);
        let surroundings = Surroundings {
            env: &input.env,
            files: self,
            source,
            namespace: &input.namespace,
            region: &input.region,
            interfaces: &interfaces::list(),
            now: template::timestamp(now),
            missing_key_is_error: template.error_on_missing_key,
            limits,
        };
        text.render(&surroundings)
            .map_err(|error| error.to_string())
    }

    fn write(&self, template: &Template, text: &str) -> Result<(), String> {
        let (folder, path) = self.find(&template.destination)?;
        let mode = u32::from_str_radix(&template.perms, 8)
            .map_err(|_| format!("perms {:?} are not octal digits", template.perms))?;
        let content = Content {
            bytes: text.as_bytes(),
            mode,
            uid: template.uid,
            gid: template.gid,
        };
        folder
            .write(&path, &content)
            .map_err(|error| format!("cannot write the file: {error}"))
    }

    /// The directory that a path is below, and the rest of the path. A path may begin with the node's path
    /// of the task's directory, as `${NOMAD_TASK_DIR}` does for a driver without a file system of its own.
    fn find(&self, path: &str) -> Result<(&Folder, std::path::PathBuf), String> {
        let beneath = |root: &Path| {
            Path::new(path)
                .strip_prefix(root)
                .ok()
                .map(|rest| rest.to_string_lossy().into_owned())
        };
        let file = match (beneath(&self.dirs.root), beneath(&self.dirs.shared)) {
            (Some(rest), _) => TemplateFile::at(&rest),
            (None, Some(rest)) => TemplateFile::at(&format!("/alloc/{rest}")),
            (None, None) => TemplateFile::at(path),
        };
        match file {
            Some(TemplateFile::Task(path)) => Ok((&self.task, path)),
            Some(TemplateFile::Shared(path)) => Ok((&self.shared, path)),
            None => Err(format!(
                "{path:?} is not a file below the task's directory or ../alloc"
            )),
        }
    }
}

impl Files for Roots<'_> {
    fn read(&self, path: &str, size_max: usize) -> Result<String, String> {
        let (folder, rest) = self.find(path)?;
        let bytes = folder
            .read(&rest, size_max)
            .map_err(|error| format!("cannot read {path:?}: {error}"))?;
        String::from_utf8(bytes).map_err(|_| format!("{path:?} is not a text in UTF-8"))
    }
}

#[cfg(test)]
mod tests;
