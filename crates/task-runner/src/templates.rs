//! Templates of a task: rendered before each start, files and variables.
//!
//! [`files`] keeps reads and writes below the task's directories; [`interfaces`] lists the node's
//! addresses for `sockaddr`. The language is in `crates/template`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use lifecycle::{StartFailure, StartStep};
use model::AllocPath;
use model::Timestamp;
use model::template::Template;
use task_drivers::TaskDirs;
use template::{Files, Limits, Lookup, RenderContext, Rendered};
use template_watch::Snapshot;

use crate::sources::{CONSUL, Systems, VAULT, has_source};

mod files;
mod interfaces;

pub(crate) use files::{Content, Folder};

/// Look-ups that an event names; it counts the others. Source: Nomad's events.
const NAMED_LOOKUPS: usize = 3;
/// See [`first_message_delay`].
const FIRST_MESSAGE_DELAY: Duration = Duration::from_secs(1);

/// Everything that a task's templates are rendered from, besides data that is looked up.
pub(crate) struct Input {
    pub(crate) templates: Vec<Template>,
    pub(crate) dirs: TaskDirs,
    /// The environment that the templates see.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) namespace: String,
    pub(crate) region: String,
}

/// One rendering of all templates.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rendering {
    pub(crate) outcome: Outcome,
    /// All look-ups of the templates.
    pub(crate) asked: BTreeSet<Lookup>,
}

/// The outcome of a rendering.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The files are written; these are the variables of templates with `env`.
    Written(BTreeMap<String, String>),
    /// No file is written: these look-ups have no answer.
    Waiting(Vec<Lookup>),
}

impl Outcome {
    pub(crate) fn into_variables(self) -> BTreeMap<String, String> {
        match self {
            Self::Written(variables) => variables,
            Self::Waiting(_) => BTreeMap::new(),
        }
    }
}

/// A rendering while the task runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rerendering {
    /// Positions of the templates whose file has changed.
    pub(crate) written: Vec<usize>,
    /// Templates that cannot be rendered or written now.
    pub(crate) problems: Vec<String>,
    pub(crate) asked: BTreeSet<Lookup>,
}

/// Renders all templates, then writes all files: none is written while one of them waits.
///
/// Blocks on files.
///
/// # Errors
/// The first template that can't be rendered or written; the restart policy applies.
pub(crate) fn render(
    input: &Input,
    now: Timestamp,
    snapshot: Snapshot,
) -> Result<Rendering, StartFailure> {
    let roots = Roots::open(&input.dirs)
        .map_err(|error| failure(&format!("cannot open the task's directories: {error}")))?;
    let mut texts = Vec::new();
    let mut missing = BTreeSet::new();
    for template in &input.templates {
        match roots
            .render(template, (input, now), &snapshot)
            .map_err(|message| failure_of(template, &message))?
        {
            Rendered::Text(text) => texts.push((template, text)),
            Rendered::Waiting(lookups) => missing.extend(lookups),
        }
    }
    if !missing.is_empty() {
        return Ok(Rendering {
            outcome: Outcome::Waiting(missing.into_iter().collect()),
            asked: snapshot.into_asked(),
        });
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
    Ok(Rendering {
        outcome: Outcome::Written(variables),
        asked: snapshot.into_asked(),
    })
}

/// Renders all templates, and writes the files of those that are `ready` and whose text is another one.
///
/// Blocks on files.
pub(crate) fn rerender(
    input: &Input,
    now: Timestamp,
    snapshot: Snapshot,
    ready: &[bool],
) -> Rerendering {
    let mut again = Rerendering::default();
    let roots = match Roots::open(&input.dirs) {
        Ok(roots) => roots,
        Err(error) => {
            again
                .problems
                .push(format!("cannot open the task's directories: {error}"));
            return again;
        }
    };
    for (position, template) in input.templates.iter().enumerate() {
        let rendered = roots.render(template, (input, now), &snapshot);
        if !ready.get(position).copied().unwrap_or(false) {
            continue;
        }
        let written = match rendered {
            Ok(Rendered::Text(text)) => roots.write_if_other(template, &text),
            // Its data is on its way.
            Ok(Rendered::Waiting(_)) => Ok(false),
            Err(message) => Err(message),
        };
        match written {
            Ok(true) => again.written.push(position),
            Ok(false) => {}
            Err(message) => again.problems.push(message_of(template, &message)),
        }
    }
    again.asked = snapshot.into_asked();
    again
}

fn failure_of(template: &Template, message: &str) -> StartFailure {
    failure(&message_of(template, message))
}

fn message_of(template: &Template, message: &str) -> String {
    format!("template for {:?}: {message}", template.destination)
}

fn failure(message: &str) -> StartFailure {
    StartFailure {
        step: StartStep::Hook,
        message: message.to_owned(),
        recoverable: true,
    }
}

/// The message about an error of a template that reads secrets, which the error may quote. The name of a
/// missing key that stands in the template is no secret.
fn without_secrets(error: &template::Error, source: &str) -> String {
    let is_key = error.message.starts_with("the map has no key ");
    let mut quoted = error.message.split('"').skip(1).step_by(2);
    if is_key && quoted.all(|part| source.contains(part)) {
        return error.to_string();
    }
    let function = error.message.split(':').next().unwrap_or_default();
    let about = match template::function_names().binary_search(&function) {
        Ok(_) => format!("{function}: "),
        Err(_) => String::new(),
    };
    format!(
        "line {}, column {}: {about}it cannot be rendered with the data of Vault or Consul. The reason is not shown, \
         because it may quote a secret",
        error.line, error.column
    )
}

/// The event's message: the first look-ups by name, with the reasons why they failed, and the systems that
/// this node does not have.
pub(crate) fn waiting(
    missing: &[Lookup],
    problems: &BTreeMap<Lookup, String>,
    systems: Systems,
) -> String {
    let named = missing.iter().take(NAMED_LOOKUPS).map(|lookup| {
        let problem = problems.get(lookup).filter(|_| has_source(lookup, systems));
        problem.map_or_else(
            || lookup.to_string(),
            |problem| format!("{lookup} ({problem})"),
        )
    });
    let mut message = format!("Missing: {}", named.collect::<Vec<_>>().join(", "));
    if missing.len() > NAMED_LOOKUPS {
        message.push_str(&format!(", and {} more", missing.len() - NAMED_LOOKUPS));
    }
    let without = missing.iter().filter(|lookup| !has_source(lookup, systems));
    let without: BTreeSet<&str> = without.map(Lookup::system).collect();
    if without.contains(VAULT) {
        message.push_str(". The task has no token of Vault: add a vault block to it");
    }
    if without.contains(CONSUL) {
        message.push_str(
            ". This node has no Consul, so the task waits until it is stopped: set consul.enabled of the node, or \
             pass the values with env or meta",
        );
    }
    message
}

/// The time before the first message: answers of a source are a moment away.
pub(crate) fn first_message_delay(missing: &[Lookup], systems: Systems) -> Duration {
    if missing.iter().all(|lookup| has_source(lookup, systems)) {
        FIRST_MESSAGE_DELAY
    } else {
        Duration::ZERO
    }
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
        (input, now): (&Input, Timestamp),
        snapshot: &Snapshot,
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
        let now = i64::try_from(now.0).unwrap_or(i64::MAX);
        let context = RenderContext {
            env: &input.env,
            files: self,
            source: snapshot,
            namespace: &input.namespace,
            region: &input.region,
            interfaces: &interfaces::list(),
            now: template::timestamp(now),
            missing_key_is_error: template.error_on_missing_key,
            limits,
        };
        text.render(&context).map_err(|error| {
            // Values of Consul may be secrets, too.
            if snapshot.has_asked(VAULT) || snapshot.has_asked(CONSUL) {
                return without_secrets(&error, &data);
            }
            error.to_string()
        })
    }

    /// Writes the file unless it has this text. Returns whether it was written.
    fn write_if_other(&self, template: &Template, text: &str) -> Result<bool, String> {
        let (folder, path) = self.find(&template.destination)?;
        if folder
            .read(&path, text.len())
            .is_ok_and(|found| found == text.as_bytes())
        {
            return Ok(false);
        }
        self.write(template, text)?;
        if template.env {
            template::env_file::parse(text).map_err(|error| error.to_string())?;
        }
        Ok(true)
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

    /// The directory that a path is below, and the rest of the path.
    fn find(&self, path: &str) -> Result<(&Folder, std::path::PathBuf), String> {
        let file = AllocPath::file(&of_job_file(self.dirs, path));
        match file {
            Some(AllocPath::Task(path)) => Ok((&self.task, path)),
            Some(AllocPath::Shared(path)) => Ok((&self.shared, path)),
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

/// Returns a path as job files have it. It may begin with the node's path of the task's directory, as
/// `${NOMAD_TASK_DIR}` does for a driver without a file system of its own.
pub(crate) fn of_job_file<'a>(dirs: &TaskDirs, path: &'a str) -> Cow<'a, str> {
    let beneath = |root: &Path| Path::new(path).strip_prefix(root).ok();
    if let Some(rest) = beneath(&dirs.root) {
        return rest.to_string_lossy();
    }
    match beneath(&dirs.shared) {
        Some(rest) => Cow::Owned(format!("/alloc/{}", rest.display())),
        None => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests;
