//! Wait for a task's end, while its output is copied.

use std::time::Duration;

use model::ExitResult;
use task_drivers::{DriverError, Messages, TaskId};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::container::State;
use crate::logs;
use crate::tasks::Docker;

/// Pauses between questions to an engine that does not answer: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// Timeout for the rest of the output of a container that has ended.
const OUTPUT_LIMIT: Duration = Duration::from_secs(10);

impl Docker {
    /// Available until the task is forgotten. While the engine does not answer, the task counts as
    /// running.
    pub(crate) async fn wait_task(
        &self,
        id: &TaskId,
        messages: &Messages,
    ) -> Result<ExitResult, DriverError> {
        let Some(record) = self.records.get(id) else {
            return Err(DriverError::UnknownTask { id: id.clone() });
        };
        let copying = async {
            if let Some(files) = record.logs {
                logs::copy(self, id, files, messages).await;
            }
        };
        tokio::pin!(copying);
        let (exit, is_copied) = {
            let exit = self.exit(id);
            tokio::pin!(exit);
            tokio::select! {
                exit = &mut exit => (exit, false),
                () = &mut copying => (exit.await, true),
            }
        };
        if !is_copied && timeout(OUTPUT_LIMIT, copying).await.is_err() {
            warn!(%id, "the last output of a container was not copied in time");
        }
        Ok(exit)
    }

    async fn exit(&self, id: &TaskId) -> ExitResult {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.find_attempt(id).await {
                Ok(Some(found)) => match found.state {
                    State::Ended(exit) => return exit,
                    State::Running => {
                        let began = tokio::time::Instant::now();
                        tokio::select! {
                            () = self.engine.wait(&found.id) => {}
                            () = self.notice_missed_end(id, &found) => {}
                        }
                        if began.elapsed() > LAST_PAUSE {
                            pause = FIRST_PAUSE;
                        }
                        if let Ok(Some(found)) = self.find_attempt(id).await
                            && let State::Ended(exit) = found.state
                        {
                            return exit;
                        }
                    }
                    State::Created => return lost("its container was never started"),
                },
                Ok(None) => return lost("its container was removed by another program"),
                Err(problem) => debug!(%id, %problem, "cannot inspect a container"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

fn lost(reason: &str) -> ExitResult {
    ExitResult {
        code: -1,
        message: reason.to_owned(),
        ..ExitResult::default()
    }
}
