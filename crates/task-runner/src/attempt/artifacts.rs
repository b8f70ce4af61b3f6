//! Downloads of artifacts, before the first start of a task.

use lifecycle::{Event, StartFailure, StartStep};
use tokio::sync::mpsc;

use super::Attempt;
use crate::artifacts;

impl Attempt {
    /// Downloads the task's artifacts that no earlier start downloaded.
    pub(super) async fn fetch_artifacts(
        &self,
        answers: &mpsc::Sender<Event>,
    ) -> Result<(), StartFailure> {
        let (_, task) = self.task()?;
        // A node without storage simulates its tasks.
        let Some(dirs) = self.dirs(task).filter(|_| !task.artifacts.is_empty()) else {
            return Ok(());
        };
        let facts = self.facts();
        let env = self.env(&facts)?;
        let interpolated = |text: &str| env.interpolate(text);
        let all = artifacts::interpolate(&task.artifacts, interpolated);
        let fetch = artifacts::Fetch::new(all, dirs, &task.name, env.interpolate(&task.user));
        if fetch.is_done() {
            return Ok(());
        }
        let task = self.id.task.clone();
        let _ = answers.send(Event::DownloadingArtifacts { task }).await;
        tokio::select! {
            done = fetch.run(self.context.artifacts.as_ref()) => done,
            () = self.cancel.cancelled() => Err(StartFailure {
                step: StartStep::Artifacts,
                message: "stopped during the download of artifacts".to_owned(),
                recoverable: false,
            }),
        }
    }
}
