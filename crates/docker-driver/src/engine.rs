//! Link to the engine: one client, made when the socket first answers, and its errors by kind.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ContainerStatsResponse, ContainerSummary};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, StatsOptionsBuilder,
    WaitContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures::StreamExt;
use tokio::time::timeout;

use crate::container::{self, Found};
use crate::settings::EngineKind;

mod images;

pub(crate) use self::images::FoundImage;

/// Timeout for the head of an answer. The engine serializes starts, so a busy one takes long.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);
/// Timeout for the end of a removal that another request began. The engine takes up to seconds for the files.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    NotFound(String),
    /// The engine answered with another error.
    Refused {
        status: u16,
        message: String,
    },
    /// No answer: nothing is known about the request's effect.
    Unreachable(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound(message) => write!(f, "{message}"),
            Self::Refused { status, message } => write!(f, "{message} (status {status})"),
            Self::Unreachable(message) => write!(f, "cannot reach the engine: {message}"),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError {
                status_code: 404,
                message,
            } => Self::NotFound(message),
            Error::DockerResponseServerError {
                status_code: status,
                message,
            } => Self::Refused {
                status: status_of(status, &message),
                message,
            },
            other => {
                let mut text = other.to_string();
                let mut source = std::error::Error::source(&other);
                while let Some(error) = source {
                    text = format!("{text}: {error}");
                    source = error.source();
                }
                Self::Unreachable(text)
            }
        }
    }
}

/// Returns the status that docker has for a problem: podman has 500 for most, and tells them apart by its texts.
fn status_of(status: u16, message: &str) -> u16 {
    const TAKEN: [&str; 2] = ["name is already in use", "is already in use by"];
    const WRONG_COMMAND: [&str; 2] = [
        "attempted to invoke a command that was not found",
        "OCI runtime permission denied error",
    ];
    let has = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    match status {
        500 if has(&TAKEN) => 409,
        500 if has(&WRONG_COMMAND) => 400,
        status => status,
    }
}

/// Returns whether the engine refuses a removal because it is removing the container already.
fn is_being_removed(problem: &Problem) -> bool {
    matches!(problem, Problem::Refused { status: 409, message }
        if message.contains("removal of container") && message.contains("already in progress"))
}

#[derive(Debug)]
pub(crate) struct Engine {
    kind: EngineKind,
    socket: PathBuf,
    client: Mutex<Option<Docker>>,
}

impl Engine {
    pub(crate) fn new(kind: EngineKind, socket: PathBuf) -> Self {
        Self {
            kind,
            socket,
            client: Mutex::default(),
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns a client that speaks the engine's version of the API.
    pub(crate) async fn client(&self) -> Result<Docker, Problem> {
        let known = self.lock().clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let socket = self.socket.display().to_string();
        let client =
            Docker::connect_with_unix(&socket, ANSWER_LIMIT.as_secs(), API_DEFAULT_VERSION)?;
        let client = client.negotiate_version().await?;
        *self.lock() = Some(client.clone());
        Ok(client)
    }

    /// Makes the next client negotiate again: the engine may be replaced by another version.
    pub(crate) fn reset(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Docker>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn find(&self, name: &str) -> Result<Option<Found>, Problem> {
        let client = self.client().await?;
        match client.inspect_container(name, None).await {
            Ok(inspected) => Ok(Some(container::found(inspected, self.kind))),
            Err(error) => match error.into() {
                Problem::NotFound(_) => Ok(None),
                problem => Err(problem),
            },
        }
    }

    /// Lists the containers that a node made, running or not.
    pub(crate) async fn list(&self, node_id: &str) -> Result<Vec<ContainerSummary>, Problem> {
        let label = format!("{}={node_id}", container::NODE);
        let filters = std::collections::HashMap::from([("label", vec![label.as_str()])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        Ok(self.client().await?.list_containers(Some(options)).await?)
    }

    /// Returns the new container's id.
    pub(crate) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, Problem> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let client = self.client().await?;
        Ok(client.create_container(Some(options), body).await?.id)
    }

    /// Starts a container; one that runs already is left alone.
    pub(crate) async fn start(&self, container: &str) -> Result<(), Problem> {
        let client = self.client().await?;
        let options = None::<StartContainerOptions>;
        Ok(client.start_container(container, options).await?)
    }

    /// Returns what a container uses now; `None`: it does not exist.
    pub(crate) async fn stats(
        &self,
        container: &str,
    ) -> Result<Option<ContainerStatsResponse>, Problem> {
        // One reading: with two, the engine waits for a second in between.
        let options = StatsOptionsBuilder::default()
            .stream(false)
            .one_shot(true)
            .build();
        let client = self.client().await?;
        let mut answers = Box::pin(client.stats(container, Some(options)));
        match answers.next().await.transpose() {
            Ok(answer) => Ok(answer),
            Err(error) => match error.into() {
                Problem::NotFound(_) => Ok(None),
                problem => Err(problem),
            },
        }
    }

    pub(crate) async fn kill(&self, container: &str, signal: &str) -> Result<(), Problem> {
        let options = KillContainerOptionsBuilder::default()
            .signal(signal)
            .build();
        let client = self.client().await?;
        Ok(client.kill_container(container, Some(options)).await?)
    }

    /// Removes a container and its anonymous volumes. A missing one is not an error; a removal that has
    /// begun already is waited for.
    pub(crate) async fn remove(&self, container: &str, force: bool) -> Result<(), Problem> {
        let options = RemoveContainerOptionsBuilder::default()
            .force(force)
            .v(true)
            .build();
        let client = self.client().await?;
        match client.remove_container(container, Some(options)).await {
            Ok(()) => Ok(()),
            Err(error) => match error.into() {
                Problem::NotFound(_) => Ok(()),
                problem if is_being_removed(&problem) => {
                    let removed = timeout(REMOVAL_LIMIT, self.until_removed(container)).await;
                    removed.map_err(|_| problem)
                }
                problem => Err(problem),
            },
        }
    }

    /// Returns when the container does not exist, or when the engine does not answer any more.
    async fn until_removed(&self, container: &str) {
        let Ok(client) = self.client().await else {
            return;
        };
        let options = WaitContainerOptionsBuilder::default()
            .condition("removed")
            .build();
        // An error, too, ends the wait: the container's exit code, or that it does not exist.
        let mut removed = Box::pin(client.wait_container(container, Some(options)));
        let _ = removed.next().await;
    }

    /// Returns when the container does not run, or when the engine does not answer any more. The
    /// caller inspects the container.
    pub(crate) async fn wait(&self, container: &str) {
        let Ok(client) = self.client().await else {
            return;
        };
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let mut ended = Box::pin(client.wait_container(container, Some(options)));
        let _ = ended.next().await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::{Engine, Problem, status_of};
    use crate::settings::EngineKind;

    /// Serves an engine that refuses removals with `message`. Returns the requests, such as `DELETE /…`.
    fn serve(socket: &Path, message: &'static str) -> Arc<Mutex<Vec<String>>> {
        let listener = UnixListener::bind(socket).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let request = head.split(" HTTP/").next().unwrap().to_owned();
                let (status, body) = match request.split(' ').next() {
                    Some("DELETE") => ("409 Conflict", format!("{{\"message\":\"{message}\"}}")),
                    Some("POST") => ("200 OK", "{\"StatusCode\":137}\n".to_owned()),
                    _ => ("200 OK", "{\"ApiVersion\":\"1.41\"}".to_owned()),
                };
                seen.lock().unwrap().push(request);
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        requests
    }

    #[tokio::test]
    async fn a_removal_in_progress_is_waited_for_and_another_conflict_is_a_problem() {
        for (message, is_removed) in [
            ("removal of container web-1 is already in progress", true),
            ("You cannot remove a running container web-1", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let socket = folder.path().join("engine.sock");
            let requests = serve(&socket, message);
            let engine = Engine::new(EngineKind::Docker, socket);
            let removed = engine.remove("web-1", true).await;
            let conflict = Problem::Refused {
                status: 409,
                message: message.to_owned(),
            };
            assert_eq!(removed, if is_removed { Ok(()) } else { Err(conflict) });
            let requests = requests.lock().unwrap().clone();
            let waits = requests
                .iter()
                .filter(|it| it.contains("condition=removed"));
            assert_eq!(waits.count(), usize::from(is_removed), "{requests:?}");
        }
    }

    #[test]
    fn podmans_problems_have_the_status_of_dockers() {
        let taken = "creating container storage: the container name \"web-1\" is already in use by 1f0e. You have \
                     to remove that container to be able to reuse that name: that name is already in use";
        let command = "runc: exec: \"/no\": stat /no: no such file or directory: OCI runtime attempted to invoke a \
                       command that was not found";
        let rights =
            "runc: error setting rlimit type 6: operation not permitted: OCI permission denied";
        for (status, message, want) in [
            (500, taken, 409),
            (500, command, 400),
            (500, rights, 500),
            (404, taken, 404),
            (500, "", 500),
        ] {
            assert_eq!(status_of(status, message), want, "{message}");
        }
    }
}
