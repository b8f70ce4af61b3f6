//! Pulls of images: one at a time per image, shared by all tasks that wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::auth::DockerCredentials;
use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;
use task_drivers::Messages;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::engine::Problem;
use crate::image::Image;

/// Interval of progress messages. Source: Nomad's public behaviour.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(120);

/// Image, and the user that pulls it: a private image is not for users without its credentials.
type Key = (String, Option<String>);

#[derive(Debug, Default)]
pub(crate) struct Pulls {
    running: Arc<Mutex<HashMap<Key, watch::Sender<Progress>>>>,
}

#[derive(Clone, Debug)]
enum Progress {
    Running(String),
    Done(Result<(), PullError>),
}

/// A failed pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PullError {
    /// The registry has no such image.
    NotFound(String),
    /// The registry wants credentials, or others.
    Unauthorised(String),
    /// The network, the registry or the engine failed. The task's restart policy tries again.
    Failed(String),
}

/// A pull's parameters.
#[derive(Clone)]
pub(crate) struct Pull {
    pub(crate) image: Image,
    pub(crate) credentials: Option<DockerCredentials>,
    pub(crate) limit: Duration,
    /// Timeout without progress.
    pub(crate) activity_limit: Duration,
}

impl Pulls {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<Progress>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the pull of this image, or begins one. It ends early when no task waits for it.
    pub(crate) async fn pull(
        &self,
        client: bollard::Docker,
        pull: Pull,
        name: &str,
        messages: &Messages,
    ) -> Result<(), PullError> {
        let user = pull.credentials.as_ref().and_then(|it| it.username.clone());
        let key = (name.to_owned(), user);
        let mut progress = self.join(client, pull, key);
        loop {
            if let Progress::Done(result) = &*progress.borrow_and_update() {
                return result.clone();
            }
            tokio::select! {
                changed = changed_to_done(&mut progress) => {
                    if !changed {
                        return Err(PullError::Failed("the pull was aborted".to_owned()));
                    }
                }
                () = sleep(PROGRESS_INTERVAL) => {
                    let text = match &*progress.borrow() {
                        Progress::Running(text) => text.clone(),
                        Progress::Done(_) => continue,
                    };
                    send_message(messages, format!("Image pull progress: {text}"));
                }
            }
        }
    }

    fn join(&self, client: bollard::Docker, pull: Pull, key: Key) -> watch::Receiver<Progress> {
        let mut running = self.lock();
        if let Some(sender) = running.get(&key) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Progress::Running("starting".to_owned()));
        running.insert(key.clone(), sender.clone());
        let map = Arc::clone(&self.running);
        tokio::spawn(async move {
            let result = {
                let pulling = run(&client, &pull, &sender);
                tokio::pin!(pulling);
                loop {
                    tokio::select! {
                        result = &mut pulling => break Some(result),
                        () = sender.closed() => {
                            let mut running = map.lock().unwrap_or_else(PoisonError::into_inner);
                            // A task may have joined in between.
                            if sender.receiver_count() == 0 {
                                running.remove(&key);
                                break None;
                            }
                        }
                    }
                }
            };
            if let Some(result) = result {
                // Later tasks look at the image again.
                map.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&key);
                sender.send_replace(Progress::Done(result));
            }
        });
        receiver
    }
}

/// Returns whether the pull has ended with a result.
async fn changed_to_done(progress: &mut watch::Receiver<Progress>) -> bool {
    progress
        .wait_for(|progress| matches!(progress, Progress::Done(_)))
        .await
        .is_ok()
}

async fn run(
    client: &bollard::Docker,
    pull: &Pull,
    progress: &watch::Sender<Progress>,
) -> Result<(), PullError> {
    let options = CreateImageOptionsBuilder::default()
        .from_image(&pull.image.repository())
        .tag(pull.image.version())
        .build();
    let mut stream = Box::pin(client.create_image(Some(options), None, pull.credentials.clone()));
    let mut layers = Layers::default();
    let following = async {
        loop {
            let Ok(step) = timeout(pull.activity_limit, stream.next()).await else {
                let text = format!("no progress within {:?}", pull.activity_limit);
                return Err(PullError::Failed(text));
            };
            match step {
                None => return Ok(()),
                Some(Ok(step)) => {
                    layers.add(&step);
                    progress.send_if_modified(|shown| {
                        *shown = Progress::Running(layers.to_string());
                        // Readers look at it at an interval.
                        false
                    });
                }
                Some(Err(error)) => return Err(classify(error)),
            }
        }
    };
    timeout(pull.limit, following).await.unwrap_or_else(|_| {
        let text = format!(
            "not finished within {:?}; raise image_pull_timeout",
            pull.limit
        );
        Err(PullError::Failed(text))
    })
}

fn classify(error: Error) -> PullError {
    match error {
        Error::DockerStreamError { error } => classify_text(error),
        other => match Problem::from(other) {
            Problem::Refused { message, .. } | Problem::NotFound(message) => classify_text(message),
            Problem::Unreachable(message) => PullError::Failed(message),
        },
    }
}

/// Tells errors apart by the registry's words, because the engine has one status for most.
fn classify_text(message: String) -> PullError {
    let text = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&[
        "dial tcp",
        "lookup ",
        "no such host",
        "timeout",
        "connection refused",
        "tls: ",
    ]) {
        PullError::Failed(message)
    } else if has(&[
        "unauthorized",
        "authentication required",
        "denied",
        "no basic auth",
    ]) {
        PullError::Unauthorised(message)
    } else if has(&[
        "manifest unknown",
        "not found",
        "no such image",
        "no matching manifest",
    ]) {
        PullError::NotFound(message)
    } else {
        PullError::Failed(message)
    }
}

/// Progress of a pull's layers.
#[derive(Default)]
struct Layers {
    /// Layer → bytes so far and in total.
    bytes: HashMap<String, (i64, i64)>,
    done: usize,
}

impl Layers {
    fn add(&mut self, step: &CreateImageInfo) {
        let Some(layer) = &step.id else {
            return;
        };
        match step.status.as_deref() {
            Some("Pull complete" | "Already exists") => self.done += 1,
            Some("Downloading") => {
                if let Some(detail) = &step.progress_detail {
                    let so_far = detail.current.unwrap_or(0);
                    let total = detail.total.unwrap_or(0);
                    self.bytes.insert(layer.clone(), (so_far, total));
                }
            }
            Some("Download complete") => {
                if let Some((so_far, total)) = self.bytes.get_mut(layer) {
                    *so_far = *total;
                }
            }
            _ => {}
        }
    }
}

impl std::fmt::Display for Layers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (so_far, total) = self
            .bytes
            .values()
            .fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        let mib = |bytes: i64| bytes / 1024 / 1024;
        write!(
            f,
            "{} layers complete, {} of {} MiB downloaded",
            self.done,
            mib(so_far),
            mib(total)
        )
    }
}

pub(crate) fn send_message(messages: &Messages, text: String) {
    // A full queue drops messages: the start does not wait for its readers.
    let _ = messages.try_send(text);
}

#[cfg(test)]
mod tests;
