//! Carries out what the machine wants done; answers come back as events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::{Effect, Event};
use model::{AllocId, ClientStatus};
use task_drivers::{AllocDirs, Driver, DriverError, TaskId};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, warn};

use super::start::TaskPlan;
use super::{Progress, Runner};
use crate::alloc_dir;
use crate::context::Context;

/// How often forgetting an attempt is tried: its supervisor has told of its end, so one more try
/// covers a machine in distress; what stays then goes with the allocation, or when the agent starts
/// next.
const FORGET_TRIES: u32 = 3;
const FORGET_PAUSE: Duration = Duration::from_secs(1);
/// What an attempt of an earlier run of the agent that is of no use gets to end in good order.
const LEFTOVER_GRACE: Duration = Duration::from_secs(5);

impl Runner {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Prerun { must_exist } => self.prerun(must_exist),
            Effect::Start { task, attempt } => self.start(task, attempt),
            Effect::CancelStart { task, .. } => {
                if let Some(start) = self.starts.get(&task) {
                    start.cancel();
                }
            }
            Effect::Recover { task, attempt } => self.recover(task, attempt),
            Effect::Stop {
                task,
                attempt,
                signal,
                grace,
            } => {
                self.stop(task, attempt, signal, grace);
            }
            Effect::Forget { task, attempt } => self.forget(task, attempt),
            Effect::Report => self.report(),
            Effect::Ended => {
                info!(
                    status = self.machine.client().status.as_str(),
                    "allocation ended"
                );
                self.clear_leftovers();
            }
        }
    }

    fn id(&self, task: &str, attempt: u32) -> TaskId {
        TaskId {
            alloc_id: self.alloc_id,
            task: task.to_owned(),
            attempt,
        }
    }

    /// Builds or finds the directories, after what earlier runs of the agent left of no use is
    /// gone: there must never be two copies of a task.
    fn prerun(&mut self, must_exist: bool) {
        let leftovers = self.take_useless_leftovers();
        let context = Arc::clone(&self.context);
        let dirs = context
            .alloc_dir
            .as_deref()
            .map(|base| AllocDirs::new(base, self.alloc_id));
        let previous = self.previous_dirs();
        let names: Vec<String> = self.machine.spec().tasks.keys().cloned().collect();
        let build = move || {
            let names = names.iter().map(String::as_str);
            match dirs {
                None => Ok(()),
                Some(dirs) if must_exist => alloc_dir::check(&dirs, names),
                Some(dirs) => alloc_dir::build(&dirs, names, previous.as_ref()),
            }
        };
        let answers = self.answers.clone();
        self.work.spawn(
            async move {
                for id in leftovers {
                    clear(&context, &id).await;
                }
                let built = offload::spawn(build).await;
                let built = built.unwrap_or_else(|error| Err(error.to_string()));
                let _ = answers.send(Event::PrerunDone(built)).await;
            }
            .in_current_span(),
        );
    }

    /// Attempts that drivers keep something of, and that neither run nor are started next. One that
    /// is started next may run already: then nothing but the memory of its start was lost, and the
    /// start finds it. It stays a leftover until then: the allocation may end before.
    fn take_useless_leftovers(&mut self) -> Vec<TaskId> {
        let expected: BTreeMap<&str, u32> = self.machine.expected_attempts().collect();
        let is_useful = |id: &TaskId| expected.get(id.task.as_str()) == Some(&id.attempt);
        let (useful, useless) = std::mem::take(&mut self.leftovers)
            .into_iter()
            .partition(is_useful);
        self.leftovers = useful;
        useless
    }

    /// Ends and removes what is left of an allocation that has ended, and says then that nothing of
    /// it runs any more. The agent may have died between the memory of an end and the removal, and
    /// one that ends before it begins has not looked at what was left of it.
    pub(super) fn clear_leftovers(&mut self) {
        let leftovers = std::mem::take(&mut self.leftovers);
        let (context, progress) = (Arc::clone(&self.context), self.progress.clone());
        let say = move || {
            progress.send_if_modified(|progress| {
                let is_news = *progress == Progress::Live;
                *progress = (*progress).max(Progress::Ended);
                is_news
            })
        };
        if leftovers.is_empty() {
            say();
            return;
        }
        let clearing = async move {
            // As with forgetting: the end must be known for good.
            if !context.state.flushed().await {
                return;
            }
            for id in leftovers {
                clear(&context, &id).await;
            }
            say();
        };
        self.work.spawn(clearing.in_current_span());
    }

    /// The directories whose data moves over.
    fn previous_dirs(&self) -> Option<AllocDirs> {
        let (job, alloc) = (&self.assignment.job, &self.assignment.alloc);
        let disk = job.task_group(&alloc.task_group)?.ephemeral_disk;
        let base = self.context.alloc_dir.as_deref()?;
        let previous = alloc
            .previous_alloc
            .filter(|_| disk.sticky || disk.migrate)?;
        Some(AllocDirs::new(base, previous))
    }

    fn start(&mut self, task: String, attempt: u32) {
        let cancel = CancellationToken::new();
        self.starts.insert(task.clone(), cancel.clone());
        let plan = TaskPlan::new(
            &self.context,
            &self.assignment,
            self.id(&task, attempt),
            cancel,
        );
        self.work
            .spawn(plan.start(self.answers.clone()).in_current_span());
    }

    fn recover(&mut self, task: String, attempt: u32) {
        let client = self.machine.client();
        let started_at = client
            .task_states
            .get(&task)
            .map(|state| state.started_at)
            .unwrap_or_default();
        let cancel = CancellationToken::new();
        let plan = TaskPlan::new(
            &self.context,
            &self.assignment,
            self.id(&task, attempt),
            cancel,
        );
        self.work.spawn(
            plan.recover(started_at, self.answers.clone())
                .in_current_span(),
        );
    }

    fn driver(&self, task: &str) -> Option<Arc<dyn Driver>> {
        let group = self
            .assignment
            .job
            .task_group(&self.assignment.alloc.task_group)?;
        self.context
            .drivers
            .get(group.task(task)?.driver.as_str())
            .cloned()
    }

    fn stop(&mut self, task: String, attempt: u32, signal: String, grace: Duration) {
        let Some(driver) = self.driver(&task) else {
            return;
        };
        let (id, answers) = (self.id(&task, attempt), self.answers.clone());
        let stop = async move {
            // Its end, when it comes, is told by whoever waits for it.
            if let Err(error) = driver.stop(&id, &signal, grace).await {
                let error = service_kit::run::chain(&error);
                let _ = answers
                    .send(Event::StopFailed {
                        task,
                        attempt,
                        error,
                    })
                    .await;
            }
        };
        self.work.spawn(stop.in_current_span());
    }

    fn forget(&mut self, task: String, attempt: u32) {
        let Some(driver) = self.driver(&task) else {
            return;
        };
        let (id, state) = (self.id(&task, attempt), self.context.state.clone());
        self.leftovers.retain(|leftover| *leftover != id);
        let forget = async move {
            // How it ended must be known for good before the last trace of it goes.
            if !state.flushed().await {
                return;
            }
            for _ in 0..FORGET_TRIES {
                match driver.forget(&id).await {
                    Ok(()) => return,
                    Err(error) => {
                        let error = service_kit::run::chain(&error);
                        warn!(%id, error, "cannot remove what is kept of a task");
                    }
                }
                tokio::time::sleep(FORGET_PAUSE).await;
            }
        };
        self.work.spawn(forget.in_current_span());
    }

    pub(super) fn report(&mut self) {
        let client = self.machine.client();
        if client.status != self.last_status {
            let metrics = &self.context.metrics;
            match client.status {
                ClientStatus::Complete => metrics.allocs_complete.inc(),
                ClientStatus::Failed => metrics.allocs_failed.inc(),
                _ => 0,
            };
            debug!(status = client.status.as_str(), "client status");
            self.last_status = client.status;
        }
        if self.is_kept {
            self.context.reporter.offer(self.alloc_id, client);
        }
    }
}

/// Ends and removes what is kept of an attempt, whatever driver it is of.
pub(crate) async fn clear(context: &Context, id: &TaskId) {
    for driver in context.drivers.values() {
        for _ in 0..FORGET_TRIES {
            if !driver.leftovers_of(id.alloc_id).contains(id) {
                break;
            }
            info!(%id, driver = driver.name(), "removing what was left of a task");
            let cleared = async {
                driver.stop(id, "", LEFTOVER_GRACE).await?;
                driver.forget(id).await?;
                Ok::<(), DriverError>(())
            };
            let Err(error) = cleared.await else {
                break;
            };
            let error = service_kit::run::chain(&error);
            warn!(%id, error, "cannot remove what was left of a task");
            tokio::time::sleep(FORGET_PAUSE).await;
        }
    }
}

/// Ends and removes what is kept of an allocation's attempts; tells whether nothing is left.
pub(super) async fn clear_all(context: &Context, alloc_id: AllocId) -> bool {
    let left = || {
        let drivers = context.drivers.values();
        drivers.flat_map(move |driver| driver.leftovers_of(alloc_id))
    };
    for id in left().collect::<Vec<_>>() {
        clear(context, &id).await;
    }
    left().next().is_none()
}
