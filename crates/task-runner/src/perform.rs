//! Performance of the machine's effects; results come back as events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::{Effect, Event};
use model::{AllocClient, AllocId, ClientStatus};
use task_drivers::{AllocDirs, TaskId, alloc_dirs};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, warn};

use crate::attempt::Attempt;
use crate::context::Context;
use crate::csi_volumes::Ensured;
use crate::handle::Progress;
use crate::job_counters::Count;
use crate::leftovers::{ATTEMPT_RETRY_PAUSE, REMOVE_TRIES, remove_attempt};
use crate::network::AllocNetwork;
use crate::runner::Runner;
use crate::services;

impl Runner {
    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Prerun { must_exist } => self.prerun(must_exist),
            Effect::Start { task, attempt } => self.start(task, attempt),
            Effect::CancelStart { task, .. } => {
                if let Some(start) = self.effects.starts.get(&task) {
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
                    status = self.state.machine().client().status.as_str(),
                    "allocation ended"
                );
                self.remove_leftovers();
            }
        }
    }

    /// Creates or checks the directories and the network, after obsolete attempts of earlier runs of the agent are
    /// removed: a task must never run twice.
    fn prerun(&mut self, must_exist: bool) {
        let leftovers = self.take_obsolete_leftovers();
        let context = Arc::clone(&self.inputs.context);
        let dirs = context
            .alloc_dir
            .as_deref()
            .map(|base| AllocDirs::new(base, self.inputs.alloc_id));
        let previous = self.previous_dirs();
        let names: Vec<String> = self.state.machine().spec().tasks.keys().cloned().collect();
        let build = move || {
            let names = names.iter().map(String::as_str);
            match dirs {
                None => Ok(()),
                Some(dirs) if must_exist => alloc_dirs::check(&dirs, names),
                Some(dirs) => alloc_dirs::build(&dirs, names, previous.as_ref()),
            }
        };
        let answers = self.inputs.answers.clone();
        let (network, assignment) = (
            Arc::clone(&self.inputs.network),
            self.state.assignment().clone(),
        );
        let volumes = Arc::clone(&self.inputs.volumes);
        self.effects.work.spawn(
            async move {
                for id in leftovers {
                    remove_attempt(&context, &id).await;
                }
                let built = blocking::spawn(build).await;
                let mut built = built.unwrap_or_else(|error| Err(error.to_string()));
                if built.is_ok() {
                    let made = network.ensure(&context, &assignment).await;
                    built = made.map_err(|error| format!("cannot set up the network: {error}"));
                }
                if built.is_ok() {
                    match volumes.ensure(&context, &assignment, &answers).await {
                        Ensured::Mounted => {}
                        Ensured::Failed(error) => {
                            built = Err(format!("cannot mount the volumes: {error}"));
                        }
                        Ensured::Closed => return,
                    }
                }
                let _ = answers.send(Event::PrerunDone(built)).await;
            }
            .in_current_span(),
        );
    }

    /// Takes the leftover attempts that neither run nor start next. The next attempt to start may run
    /// already, if only the record of its start was lost; the start finds it. It stays a leftover
    /// until then, because the allocation may end before.
    fn take_obsolete_leftovers(&mut self) -> Vec<TaskId> {
        let expected: BTreeMap<&str, u32> = self.state.machine().expected_attempts().collect();
        let is_expected = |id: &TaskId| expected.get(id.task.as_str()) == Some(&id.attempt);
        let (expected_attempts, obsolete) = std::mem::take(&mut self.effects.leftovers)
            .into_iter()
            .partition(is_expected);
        self.effects.leftovers = expected_attempts;
        obsolete
    }

    /// Stops and removes the leftover attempts of an ended allocation and its network, then publishes its
    /// end: a replacement may get the same ports. There are leftovers if the agent died between storing the
    /// end and removing the records, or if the allocation ended before it started.
    pub(crate) fn remove_leftovers(&mut self) {
        let leftovers = std::mem::take(&mut self.effects.leftovers);
        let network = Arc::clone(&self.inputs.network);
        let (context, progress) = (Arc::clone(&self.inputs.context), self.record.publisher());
        let alloc_id = self.inputs.alloc_id;
        let networks = context.networks.as_ref();
        let has_network = networks.is_some_and(|networks| networks.owner(alloc_id).is_some());
        let has_volumes = self.inputs.volumes.end(&self.inputs.context, alloc_id);
        let volumes = Arc::clone(&self.inputs.volumes);
        let ended_at = self.state.machine().ended_at().unwrap_or_default();
        let publish = move || {
            progress.send_if_modified(|progress| {
                let is_first = *progress == Progress::Live;
                *progress = (*progress).max(Progress::Ended(ended_at));
                is_first
            })
        };
        if leftovers.is_empty() && !has_network && !has_volumes {
            publish();
            return;
        }
        let clearing = async move {
            // The end must be durable before its last record is removed.
            if !context.state.flushed().await {
                return;
            }
            for id in leftovers {
                remove_attempt(&context, &id).await;
            }
            if has_volumes {
                volumes.release(&context, alloc_id).await;
            }
            if has_network {
                remove_network(&context, &network, alloc_id).await;
            }
            publish();
        };
        self.effects.work.spawn(clearing.in_current_span());
    }

    /// Returns the directories whose data this allocation takes over.
    fn previous_dirs(&self) -> Option<AllocDirs> {
        let (job, alloc) = (&self.state.assignment().job, &self.state.assignment().alloc);
        let disk = job.task_group(&alloc.task_group)?.ephemeral_disk;
        let base = self.inputs.context.alloc_dir.as_deref()?;
        let previous = alloc
            .previous_alloc
            .filter(|_| disk.sticky || disk.migrate)?;
        Some(AllocDirs::new(base, previous))
    }

    fn start(&mut self, task: String, attempt: u32) {
        let cancel = CancellationToken::new();
        self.effects.starts.insert(task.clone(), cancel.clone());
        let shared = self.shared(&task);
        let run = Attempt::new(
            &self.inputs.context,
            self.state.assignment(),
            &self.inputs.network,
            &shared,
            self.task_id(&task, attempt),
            cancel,
        );
        self.effects
            .work
            .spawn(run.start(self.inputs.answers.clone()).in_current_span());
    }

    fn recover(&mut self, task: String, attempt: u32) {
        let client = self.state.machine().client();
        let started_at = client
            .task_states
            .get(&task)
            .map(|state| state.started_at)
            .unwrap_or_default();
        let cancel = CancellationToken::new();
        let shared = self.shared(&task);
        let run = Attempt::new(
            &self.inputs.context,
            self.state.assignment(),
            &self.inputs.network,
            &shared,
            self.task_id(&task, attempt),
            cancel,
        );
        self.effects.work.spawn(
            run.recover(started_at, self.inputs.answers.clone())
                .in_current_span(),
        );
    }

    fn stop(&mut self, task: String, attempt: u32, signal: String, grace: Duration) {
        let Some(driver) = self.driver(&task) else {
            return;
        };
        let (id, answers) = (self.task_id(&task, attempt), self.inputs.answers.clone());
        let stop = async move {
            // The attempt's own wait reports its end.
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
        self.effects.work.spawn(stop.in_current_span());
    }

    fn forget(&mut self, task: String, attempt: u32) {
        let Some(driver) = self.driver(&task) else {
            return;
        };
        let (id, state) = (
            self.task_id(&task, attempt),
            self.inputs.context.state.clone(),
        );
        self.effects.leftovers.retain(|leftover| *leftover != id);
        let forget = async move {
            // The exit must be durable before its last record is removed.
            if !state.flushed().await {
                return;
            }
            for _ in 0..REMOVE_TRIES {
                match driver.forget(&id).await {
                    Ok(()) => return,
                    Err(error) => {
                        let error = service_kit::run::chain(&error);
                        warn!(%id, error, "cannot remove the records of a task");
                    }
                }
                tokio::time::sleep(ATTEMPT_RETRY_PAUSE).await;
            }
        };
        self.effects.work.spawn(forget.in_current_span());
    }

    /// Returns the state to report, with the registrations of its services.
    pub(crate) fn client(&self) -> AllocClient {
        let owners = self.state.machine().registered();
        let own = |task: &str| self.driver_address(task);
        let mut client = AllocClient {
            services: services::registrations(
                self.state.assignment(),
                &owners,
                &self.facts(),
                own,
                |owner, service| self.state.machine().service_health(owner, service),
            ),
            network: self.inputs.network.status().map(Box::new),
            ..self.state.machine().client()
        };
        if self.inputs.volumes.is_releasing() {
            // Other allocations get the volumes once the servers hear of the end.
            client.status = ClientStatus::Running;
            client.description = "Tasks have ended; unmounting volumes".to_owned();
        }
        client
    }

    pub(crate) fn report(&mut self) {
        let client = self.client();
        let (jobs, assignment) = (&self.inputs.context.metrics.jobs, self.state.assignment());
        for (task, state) in client.task_states.iter() {
            if state.failed && self.record.has_failed_now(task) {
                jobs.count(Count::TaskFailed, assignment, task);
            }
        }
        if self.record.is_new(client.status) {
            match client.status {
                ClientStatus::Complete => jobs.count(Count::Complete, assignment, ""),
                ClientStatus::Failed => jobs.count(Count::Failed, assignment, ""),
                _ => {}
            }
            debug!(
                status = client.status.as_str(),
                "the client status of the allocation has changed"
            );
        }
        if self.record.is_kept() {
            self.inputs
                .context
                .reporter
                .offer(self.inputs.alloc_id, client);
        }
    }
}

/// Removes the network of an ended allocation. What is left after some tries is removed with its files,
/// or by the next run of the agent.
async fn remove_network(context: &Context, network: &AllocNetwork, alloc_id: AllocId) {
    for _ in 0..REMOVE_TRIES {
        match network.remove(context, alloc_id).await {
            Ok(()) => return,
            Err(error) => warn!(%alloc_id, error, "cannot remove the network of an allocation"),
        }
        tokio::time::sleep(ATTEMPT_RETRY_PAUSE).await;
    }
}
