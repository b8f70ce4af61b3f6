//! Identities of a task: their tokens before each start, as files and variables.
//!
//! `renewal` replaces the tokens while the task runs. Which tokens a task may have is decided by the
//! gateway.

mod owner;
mod renewal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lifecycle::{Event, StartFailure, StartStep};
use model::template::ChangeMode;
use model::{AllocId, AllocPath, Task, WorkloadIdentity};
use rand::Rng;
use service_kit::Backoff;
use task_drivers::{TaskDirs, TaskEnv};
use tokio::sync::mpsc;
use tokio::time::sleep;
use workload_identity::{SignedToken, TokenRequest, Workload};

use crate::templates::{Content, Folder};
use crate::token_source::{TokenError, TokenSource};

pub(crate) use owner::TaskUser;
pub(crate) use renewal::{Renewal, RenewedIdentity};

/// Shortest and longest pause between attempts of a start that waits for a gateway.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Only the task's user reads its tokens.
const MODE: u32 = 0o600;
/// The mode where the user's number is not known on the node: `secrets`, or the directory above it, keeps
/// other users of the node out.
const MODE_OF_UNKNOWN_USER: u32 = 0o644;

/// An identity whose token the task gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    /// The variable with the token; `None`: none.
    pub(crate) variable: Option<String>,
    /// `None`: no file.
    pub(crate) file: Option<AllocPath>,
    pub(crate) change: Change,
}

/// The reaction to a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Noop,
    Restart,
    Signal(String),
}

/// Returns the identities of `task` that have a file or a variable.
///
/// # Errors
/// The path of a file is outside of the task's directory.
pub(crate) fn of_task(task: &Task, env: &TaskEnv<'_>) -> Result<Vec<Identity>, StartFailure> {
    let wanted = task.identities.iter().filter(|it| it.env || it.file);
    wanted
        .map(|wanted| {
            let file = wanted.file.then(|| path_of(wanted, env)).transpose()?;
            Ok(Identity {
                name: wanted.name.clone(),
                variable: wanted.env.then(|| variable_of(&wanted.name)),
                file,
                change: match wanted.change_mode {
                    Some(ChangeMode::Restart) => Change::Restart,
                    Some(ChangeMode::Signal) => Change::Signal(wanted.change_signal.clone()),
                    Some(ChangeMode::Noop | ChangeMode::Script) | None => Change::Noop,
                },
            })
        })
        .collect()
}

/// `NOMAD_TOKEN` of the default identity, and `NOMAD_TOKEN_<name>` of others.
fn variable_of(name: &str) -> String {
    if name == WorkloadIdentity::DEFAULT_NAME {
        return "NOMAD_TOKEN".to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let clean: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    format!("NOMAD_TOKEN_{clean}")
}

fn path_of(wanted: &WorkloadIdentity, env: &TaskEnv<'_>) -> Result<AllocPath, StartFailure> {
    let path = match (wanted.filepath.as_str(), wanted.name.as_str()) {
        ("", WorkloadIdentity::DEFAULT_NAME) => "secrets/nomad_token".to_owned(),
        ("", name) => format!("secrets/nomad_{name}.jwt"),
        (path, _) => env.interpolate(path),
    };
    AllocPath::file(&path).ok_or_else(|| StartFailure {
        step: StartStep::Validation,
        message: format!(
            "identity {:?}: filepath {path:?} is not a file below the task's directory or ../alloc",
            wanted.name
        ),
        recoverable: false,
    })
}

/// Returns the requests for the tokens of a task.
pub(crate) fn requests(
    alloc_id: AllocId,
    task: &str,
    identities: &[Identity],
) -> Vec<TokenRequest> {
    let request = |identity: &Identity| TokenRequest {
        alloc_id,
        workload: Workload::Task(task.to_owned()),
        identity: identity.name.clone(),
        audience: Vec::new(),
    };
    identities.iter().map(request).collect()
}

/// Gets a token for each request; waits while no gateway answers, for ever. The caller stops waiting
/// when the start is cancelled. Each new reason becomes an event of `task`.
///
/// # Errors
/// The gateway refuses one of them.
pub(crate) async fn wait_for_tokens(
    tokens: &dyn TokenSource,
    requests: &[TokenRequest],
    rng: &mut impl Rng,
    (task, answers): (&str, &mpsc::Sender<Event>),
) -> Result<Vec<SignedToken>, String> {
    let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
    let mut told = None;
    loop {
        match tokens.sign(requests.to_vec()).await {
            Ok(signed) if signed.len() == requests.len() => return Ok(signed),
            Ok(_) => return Err("the gateway sent another number of tokens".to_owned()),
            Err(TokenError::Refused(reason)) => return Err(reason),
            Err(TokenError::Unavailable(reason)) => {
                if told.as_ref() != Some(&reason) {
                    let message = format!("Waiting for an identity token: {reason}");
                    let task = task.to_owned();
                    let _ = answers.send(Event::IdentityMessage { task, message }).await;
                    told = Some(reason);
                }
            }
        }
        sleep(backoff.next(rng)).await;
    }
}

/// Returns the variables of the tokens.
pub(crate) fn variables(
    identities: &[Identity],
    tokens: &[SignedToken],
) -> BTreeMap<String, String> {
    let pairs = identities.iter().zip(tokens);
    pairs
        .filter_map(|(identity, signed)| {
            let name = identity.variable.clone()?;
            Some((name, signed.token.expose().to_owned()))
        })
        .collect()
}

/// Writes the files of the tokens. Blocks.
///
/// # Errors
/// The first file that can't be written.
pub(crate) fn write_files<'a>(
    dirs: &TaskDirs,
    user: &TaskUser,
    tokens: impl Iterator<Item = (&'a Identity, &'a SignedToken)>,
) -> Result<(), String> {
    for (identity, signed) in tokens {
        let Some(file) = &identity.file else {
            continue;
        };
        write_secret(dirs, user, file, signed.token.expose())
            .map_err(|error| format!("identity {:?}: {error}", identity.name))?;
    }
    Ok(())
}

/// Writes a file that only the task's user reads. Blocks.
///
/// # Errors
/// The file can't be written.
pub(crate) fn write_secret(
    dirs: &TaskDirs,
    user: &TaskUser,
    file: &AllocPath,
    text: &str,
) -> Result<(), String> {
    let owner = owner::of(user, &dirs.secrets);
    let content = Content {
        bytes: text.as_bytes(),
        mode: match owner {
            owner::Owner::Unknown => MODE_OF_UNKNOWN_USER,
            owner::Owner::Agent | owner::Owner::User { .. } => MODE,
        },
        uid: owner.uid(),
        gid: owner.gid(),
    };
    let (directory, path) = place(dirs, file);
    Folder::open(directory)
        .and_then(|folder| folder.write(path, &content))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Returns the text of a token file; `None`: there is none. Blocks.
pub(crate) fn read_file(dirs: &TaskDirs, file: &AllocPath) -> Option<String> {
    let (directory, path) = place(dirs, file);
    let folder = Folder::open(directory).ok()?;
    let bytes = folder.read(path, workload_identity::jwks::TOKEN_MAX).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the directory that a file is below, and the rest of its path.
fn place<'a>(dirs: &'a TaskDirs, file: &'a AllocPath) -> (&'a Path, &'a Path) {
    match file {
        AllocPath::Task(path) => (&dirs.root, path),
        AllocPath::Shared(path) => (&dirs.shared, path),
    }
}
