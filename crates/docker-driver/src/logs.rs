//! Copy of a container's output from the engine's log into the task's files.
//!
//! The engine keeps the output while no agent runs. A new run of the agent goes on where the last one
//! stopped, see [`copier`] and [`position`].

mod copier;
mod position;

use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::query_parameters::LogsOptionsBuilder;
use futures::StreamExt;
use task_drivers::log_files::LogStream;
use task_drivers::{Messages, TaskId};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use self::copier::Copier;
use self::position::Moment;
use crate::container::State;
use crate::records::LogFiles;
use crate::settings::EngineKind;
use crate::tasks::Docker;

/// Messages of the engine that are written together.
const BATCH: usize = 256;
/// Interval at which the position is stored while output arrives.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Pauses between requests of a log that ended while its container runs: doubled from the first.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(15);
const GAP: &str = "output is missing: the engine removed some before the agent had read it; raise max-size or \
                   max-file in log_options of the node, or in the task's logging block";

/// Copies until the container has ended and all of its output is written.
pub(crate) async fn copy(docker: &Docker, id: &TaskId, files: LogFiles, messages: &Messages) {
    let file = docker.records.position_file(id);
    let position = docker.records.position(id);
    let opened = blocking::spawn(move || Copier::open(&files, file, position)).await;
    let Ok(mut copier) = opened else {
        return;
    };
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        let followed = follow(docker, id, copier, true, messages).await;
        let Some(returned) = followed else {
            return;
        };
        copier = returned;
        match docker.find_attempt(id).await {
            Ok(Some(found)) if found.state == State::Running => {}
            Ok(Some(_)) => {
                // The follower of a container that ends may miss its last messages.
                follow(docker, id, copier, false, messages).await;
                return;
            }
            Ok(None) => return,
            Err(problem) => debug!(%id, %problem, "cannot follow a container's output"),
        }
        if began.elapsed() > LAST_PAUSE {
            pause = FIRST_PAUSE;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Copies one answer of the engine. Returns `None` when the writer is gone: the runtime ends.
async fn follow(
    docker: &Docker,
    id: &TaskId,
    mut copier: Copier,
    is_following: bool,
    messages: &Messages,
) -> Option<Copier> {
    let Ok(client) = docker.engine.client().await else {
        return Some(copier);
    };
    let options = LogsOptionsBuilder::default()
        .follow(is_following)
        .stdout(true)
        .stderr(true)
        .timestamps(true)
        .since(copier.resume())
        .build();
    let name = crate::names::of_task(id);
    let mut output = client.logs(&name, Some(options)).ready_chunks(BATCH);
    let mut saved = Instant::now();
    let mut is_dirty = false;
    loop {
        let batch = if is_dirty {
            match timeout(SAVE_INTERVAL, output.next()).await {
                Ok(batch) => batch,
                Err(_) => Some(Vec::new()),
            }
        } else {
            output.next().await
        };
        let is_last = batch.is_none();
        let (frames, error) = frames(batch.unwrap_or_default());
        let is_idle = frames.is_empty();
        let is_due = is_last || is_idle || error.is_some() || saved.elapsed() >= SAVE_INTERVAL;
        let written = blocking::spawn(move || {
            let problem = copier.write(&frames, Moment::now());
            let has_gap = copier.take_gap();
            if is_due {
                copier.save();
            }
            (copier, problem, has_gap)
        });
        let (returned, problem, has_gap) = written.await.ok()?;
        copier = returned;
        is_dirty = !is_due;
        if is_due {
            saved = Instant::now();
        }
        // Podman begins its only file anew, which removes the last message without a loss.
        if has_gap && docker.settings.engine_kind == EngineKind::Docker {
            let _ = messages.try_send(GAP.to_owned());
        }
        if let Some(problem) = problem {
            let _ = messages.try_send(format!("output is being dropped: {problem}"));
        }
        if let Some(error) = &error {
            warn!(%id, %error, "cannot read a container's output");
        }
        if is_last || error.is_some() {
            return Some(copier);
        }
    }
}

type Frame = (LogStream, Vec<u8>);

/// Returns the messages up to the first error.
fn frames(batch: Vec<Result<LogOutput, Error>>) -> (Vec<Frame>, Option<Error>) {
    let mut frames = Vec::new();
    for output in batch {
        match output {
            Ok(LogOutput::StdErr { message }) => frames.push((LogStream::Stderr, message.into())),
            Ok(
                LogOutput::StdOut { message }
                | LogOutput::Console { message }
                | LogOutput::StdIn { message },
            ) => frames.push((LogStream::Stdout, message.into())),
            Err(error) => return (frames, Some(error)),
        }
    }
    (frames, None)
}
