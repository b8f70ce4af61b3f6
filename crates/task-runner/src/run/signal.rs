//! Signals to running tasks, requested by a gateway.
//!
//! The tasks' events tell of the signal before it is sent: it may end the task. Nothing is repeated, also
//! after an agent that ended meanwhile: a second signal may mean another thing to the task.

use lifecycle::Event;
use model::RestartScope;
use tracing::{Instrument as _, info};

use crate::handle::{RunningTask, SignalAnswer, SignalError};
use crate::runner::Runner;

impl Runner {
    /// Sends a signal to one task, or without a name to all that run.
    pub(crate) async fn send_signal(
        &mut self,
        task: Option<String>,
        signal: String,
        answer: SignalAnswer,
    ) {
        let tasks = match self.signalled(task) {
            Ok(tasks) => tasks,
            Err(error) => {
                // The caller may have gone, here and below.
                let _ = answer.send(Err(error));
                return;
            }
        };
        let names: Vec<String> = tasks.iter().map(|task| task.id.task.clone()).collect();
        for task in names.clone() {
            let signal = signal.clone();
            self.step(Event::Signaling { task, signal }).await;
        }
        let sending = async move {
            let mut result = Ok(names);
            for task in tasks {
                info!(task = %task.id, signal, "signal sent to a task");
                // A driver that refuses does not keep the signal from the others.
                if let Err(source) = task.driver.signal(&task.id, &signal).await {
                    let driver = task.driver.name();
                    result = result.and(Err(SignalError::Driver { driver, source }));
                }
            }
            let _ = answer.send(result);
        };
        self.effects.work.spawn(sending.in_current_span());
    }

    fn signalled(&self, task: Option<String>) -> Result<Vec<RunningTask>, SignalError> {
        if let Some(task) = task {
            return Ok(vec![self.find_task(&task)?]);
        }
        let running = self.state.machine().restartable(&RestartScope::Running);
        let running = running.map_err(|_| SignalError::NothingRuns)?;
        let found = running.iter().map(|task| self.find_task(task));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        Ok(found)
    }
}
