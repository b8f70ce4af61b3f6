//! One attempt of a task: start or recovery, then the wait for its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use lifecycle::{Assignment, Event, StartFailure, StartStep};
use model::{ExitResult, Task, TaskGroup, Timestamp};
use service_kit::SpanParent;
use task_drivers::{
    AllocDirs, Driver, Messages, NodeFacts, Recovery, StartError, TaskConfig, TaskDirs, TaskEnv,
    TaskId, TaskNames, UserSource, alloc_dirs, dispatch_payload, volumes,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info, info_span, warn};

use crate::context::Context;
use crate::identities::{self, Identity, Renewal, RenewedIdentity, TaskUser};
use crate::job_counters::Count;
use crate::network::AllocNetwork;
use crate::task_shared::TaskShared;

mod artifacts;
mod consul;
mod login;
mod plugin;
mod signer;
mod templates;
#[cfg(test)]
mod tests;
mod vault;

/// Capacity of the queue of driver messages; the driver drops the rest. A task shows ten events.
const MESSAGES: usize = 16;

/// One attempt of one task.
pub(crate) struct Attempt {
    context: Arc<Context>,
    assignment: Assignment,
    network: Arc<AllocNetwork>,
    shared: Arc<TaskShared>,
    id: TaskId,
    cancel: CancellationToken,
}

impl Attempt {
    pub(crate) fn new(
        context: &Arc<Context>,
        assignment: &Assignment,
        network: &Arc<AllocNetwork>,
        shared: &Arc<TaskShared>,
        id: TaskId,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            assignment: assignment.clone(),
            network: Arc::clone(network),
            shared: Arc::clone(shared),
            id,
            cancel,
        }
    }

    /// Starts the task, then waits for its end. Both are sent as events.
    pub(crate) async fn start(self, answers: mpsc::Sender<Event>) {
        // Part of the trace of the job registration.
        let span = info_span!(
            "start task",
            alloc_id = %self.id.alloc_id,
            node_id = %self.context.node_id,
            task = self.id.task,
            attempt = self.id.attempt,
        );
        span.set_parent_from(&self.assignment.trace_parent);
        let began = Instant::now();
        let (messages, queue) = mpsc::channel(MESSAGES);
        let starting = self.start_process(messages, &answers).instrument(span);
        let started = self.forward(starting, queue, &answers).await;
        let metrics = &self.context.metrics;
        let (task, attempt) = (self.id.task.clone(), self.id.attempt);
        match started {
            Ok((driver, held)) => {
                metrics.task_starts.inc();
                metrics
                    .task_start_duration
                    .observe(began.elapsed().as_secs_f64());
                metrics.jobs.open(&self.assignment, &task);
                if attempt > 1 {
                    let jobs = &metrics.jobs;
                    jobs.count(Count::Restart, &self.assignment, &task);
                }
                let _ = answers.send(Event::Started { task, attempt }).await;
                self.wait(driver.as_ref(), held, &answers).await;
            }
            Err(failure) => {
                metrics.task_start_failures.inc();
                let failed = Event::StartFailed {
                    task,
                    attempt,
                    failure,
                };
                let _ = answers.send(failed).await;
            }
        }
    }

    async fn start_process(
        &self,
        messages: Messages,
        answers: &mpsc::Sender<Event>,
    ) -> Result<(Arc<dyn Driver>, Vec<RenewedIdentity>), StartFailure> {
        self.check_directories()?;
        let network = self.network.ensure(&self.context, &self.assignment);
        network.await.map_err(|error| StartFailure {
            step: StartStep::Hook,
            message: format!("cannot set up the network: {error}"),
            recoverable: true,
        })?;
        self.create_plugin_directories().await?;
        self.open_secrets()?;
        self.put_payload()?;
        let (mut variables, held) = self.get_tokens(answers).await?;
        variables.extend(self.get_consul_token(answers).await?);
        variables.extend(self.get_vault_token(answers).await?);
        self.fetch_artifacts(answers).await?;
        let of_templates = self.render_templates(&variables, answers).await?;
        variables.extend(of_templates);
        let (driver, config) = self.config(messages, variables)?;
        driver.start(config).await.map_err(|error| match error {
            StartError::Config(message) => StartFailure {
                step: StartStep::Validation,
                message,
                recoverable: false,
            },
            StartError::Failed {
                message,
                recoverable,
            } => StartFailure {
                step: StartStep::Driver,
                message,
                recoverable,
            },
        })?;
        info!("task started");
        Ok((driver, held))
    }

    /// Gets the tokens of the task's identities, if it has some, and writes their files. Returns the
    /// variables of those with `env`. Waits while no gateway answers.
    async fn get_tokens(
        &self,
        answers: &mpsc::Sender<Event>,
    ) -> Result<(BTreeMap<String, String>, Vec<RenewedIdentity>), StartFailure> {
        let (wanted, user) = self.identities()?;
        let (_, task) = self.task()?;
        let Some(dirs) = self.dirs(task).filter(|_| !wanted.is_empty()) else {
            return Ok(Default::default());
        };
        let mut rng = self.context.ids.rng();
        let requests = identities::requests(self.id.alloc_id, &self.id.task, &wanted);
        let of = (self.id.task.as_str(), answers);
        let tokens = self.context.tokens.as_ref();
        let getting = identities::wait_for_tokens(tokens, &requests, &mut rng, of);
        let signed = tokio::select! {
            signed = getting => signed.map_err(|reason| hook(format!("identity token: {reason}")))?,
            () = self.cancel.cancelled() => {
                return Err(StartFailure {
                    recoverable: false,
                    ..hook("stopped while waiting for an identity token".to_owned())
                });
            }
        };
        let (files, of_files) = (wanted.clone(), signed.clone());
        let written = blocking::spawn(move || {
            identities::write_files(&dirs, &user, files.iter().zip(of_files.iter()))
        });
        let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(hook)?;
        let held = wanted.iter().zip(&signed);
        let held =
            held.map(|(identity, signed)| RenewedIdentity::fresh(identity, signed, &mut rng));
        Ok((identities::variables(&wanted, &signed), held.collect()))
    }

    /// Returns the identities whose tokens the task gets, and the task's user.
    fn identities(&self) -> Result<(Vec<Identity>, TaskUser), StartFailure> {
        let (_, task) = self.task()?;
        if task.identities.is_empty() {
            return Ok(Default::default());
        }
        let facts = self.facts();
        let env = self.env(&facts)?;
        Ok((
            identities::of_task(task, &env)?,
            self.user(task, env.interpolate(&task.user))?,
        ))
    }

    fn user(&self, task: &Task, user: String) -> Result<TaskUser, StartFailure> {
        let source = self.driver(task)?.user_source();
        Ok(TaskUser { user, source })
    }

    /// Returns the identities of a task that an earlier run of the agent started.
    async fn found_identities(&self) -> Vec<RenewedIdentity> {
        let (Ok((identities, _)), Ok((_, task))) = (self.identities(), self.task()) else {
            return Vec::new();
        };
        let Some(dirs) = self.dirs(task).filter(|_| !identities.is_empty()) else {
            return Vec::new();
        };
        let mut rng = self.context.ids.rng();
        let found = blocking::spawn(move || {
            let held = identities.iter();
            held.map(|identity| RenewedIdentity::found(identity, &dirs, &mut rng))
                .collect()
        });
        found.await.unwrap_or_default()
    }

    /// Renews the task's tokens while it runs.
    async fn renew(
        &self,
        driver: &dyn Driver,
        held: Vec<RenewedIdentity>,
        answers: &mpsc::Sender<Event>,
    ) -> std::convert::Infallible {
        let dirs = self.task().ok().and_then(|(_, task)| self.dirs(task));
        let (Some(dirs), Ok((_, user))) = (dirs, self.identities()) else {
            return std::future::pending().await;
        };
        let renewal = Renewal {
            context: &self.context,
            id: &self.id,
            dirs,
            user,
            driver,
            answers,
        };
        renewal.run(held).await
    }

    /// Lets the users of the task's image read its secrets. Before the first of them is written.
    fn open_secrets(&self) -> Result<(), StartFailure> {
        let (_, task) = self.task()?;
        match (self.driver(task)?.user_source(), self.dirs(task)) {
            (UserSource::Image, Some(dirs)) => alloc_dirs::open_secrets(&dirs).map_err(hook),
            (UserSource::Node, _) | (_, None) => Ok(()),
        }
    }

    /// Writes the dispatch payload, if the task has one.
    fn put_payload(&self) -> Result<(), StartFailure> {
        let (_, task) = self.task()?;
        let Some(dirs) = self.dirs(task) else {
            return Ok(());
        };
        dispatch_payload::put(&self.assignment.job, task, &dirs.local).map_err(|message| {
            StartFailure {
                step: StartStep::Hook,
                message,
                recoverable: true,
            }
        })
    }

    /// Finds the task that an earlier run of the agent started, then waits for its end.
    pub(crate) async fn recover(self, started_at: Timestamp, answers: mpsc::Sender<Event>) {
        let (task, attempt) = (self.id.task.clone(), self.id.attempt);
        // A recovery has no messages besides its note.
        // Only a start reads the variables of templates.
        let found = match self.config(mpsc::channel(1).0, BTreeMap::new()) {
            Ok((driver, config)) => {
                let now = self.context.clocks.wall();
                let found = driver.recover(config, started_at, now).await;
                Ok((driver, found))
            }
            Err(failure) => Err(failure.message),
        };
        let event = match found {
            Ok((driver, Recovery::Running { note })) => {
                self.context.metrics.tasks_reattached.inc();
                info!(id = %self.id, "task recovered");
                let recovered = Event::Recovered {
                    task: task.clone(),
                    attempt,
                };
                let _ = answers.send(recovered).await;
                if let Some(message) = note {
                    let _ = answers.send(Event::DriverMessage { task, message }).await;
                }
                let held = self.found_identities().await;
                self.find_vault_token().await;
                self.find_consul_token().await;
                self.wait(driver.as_ref(), held, &answers).await;
                return;
            }
            Ok((_, Recovery::Exited(exit))) => {
                self.count_exit(&exit);
                Event::Exited {
                    task,
                    attempt,
                    exit,
                }
            }
            Ok((_, Recovery::NotFound { reason })) | Err(reason) => {
                self.context.metrics.tasks_lost.inc();
                warn!(id = %self.id, reason, "task not recovered");
                Event::NotRecovered {
                    task,
                    attempt,
                    reason,
                }
            }
        };
        let _ = answers.send(event).await;
    }

    async fn wait(
        &self,
        driver: &dyn Driver,
        held: Vec<RenewedIdentity>,
        answers: &mpsc::Sender<Event>,
    ) {
        self.context.metrics.tasks_running.inc();
        let (sender, messages) = mpsc::channel(MESSAGES);
        let waiting = driver.wait(&self.id, &sender);
        let ended = tokio::select! {
            ended = self.forward(waiting, messages, answers) => ended,
            never = self.renew(driver, held, answers) => match never {},
            never = self.follow_vault(driver, answers) => match never {},
            never = self.follow_consul(answers) => match never {},
            never = self.follow_templates(driver, answers) => match never {},
            never = self.follow_plugin(driver, answers) => match never {},
        };
        self.context.metrics.tasks_running.dec();
        let (task, attempt) = (self.id.task.clone(), self.id.attempt);
        let event = match ended {
            Ok(exit) => {
                self.count_exit(&exit);
                Event::Exited {
                    task,
                    attempt,
                    exit,
                }
            }
            Err(error) => {
                let message = service_kit::run::chain(&error);
                let exit = ExitResult {
                    code: -1,
                    message,
                    ..Default::default()
                };
                Event::Exited {
                    task,
                    attempt,
                    exit,
                }
            }
        };
        let _ = answers.send(event).await;
    }

    fn count_exit(&self, exit: &ExitResult) {
        if exit.oom_killed {
            let jobs = &self.context.metrics.jobs;
            jobs.count(Count::OomKilled, &self.assignment, &self.id.task);
        }
    }

    /// Runs an operation of the driver, and sends its messages as events meanwhile.
    async fn forward<T>(
        &self,
        operation: impl Future<Output = T>,
        mut messages: mpsc::Receiver<String>,
        answers: &mpsc::Sender<Event>,
    ) -> T {
        tokio::pin!(operation);
        let send = async |message| {
            let task = self.id.task.clone();
            let _ = answers.send(Event::DriverMessage { task, message }).await;
        };
        let result = loop {
            tokio::select! {
                result = &mut operation => break result,
                Some(message) = messages.recv() => send(message).await,
            }
        };
        // Messages of its last moment come before its result.
        while let Ok(message) = messages.try_recv() {
            send(message).await;
        }
        result
    }

    /// Checks that the volumes exist. Not repeated on recovery, because a running task has them.
    fn check_directories(&self) -> Result<(), StartFailure> {
        let Assignment { alloc, job, .. } = &self.assignment;
        let Some(group) = job.task_group(&alloc.task_group) else {
            return Ok(());
        };
        let registered = &self.assignment.volume_paths;
        let facts = self.context.facts.with_volumes(registered);
        volumes::check_directories(group, alloc, &facts, registered).map_err(invalid)
    }

    fn task(&self) -> Result<(&TaskGroup, &Task), StartFailure> {
        let (job, alloc) = (&self.assignment.job, &self.assignment.alloc);
        let group = job
            .task_group(&alloc.task_group)
            .ok_or_else(|| invalid(format!("the job has no group {:?}", alloc.task_group)))?;
        let task = group
            .task(&self.id.task)
            .ok_or_else(|| invalid(format!("the group has no task {:?}", self.id.task)))?;
        Ok((group, task))
    }

    fn driver(&self, task: &Task) -> Result<&Arc<dyn Driver>, StartFailure> {
        let driver = self.context.drivers.get(task.driver.as_str());
        driver.ok_or_else(|| invalid(format!("this node has no driver {:?}", task.driver)))
    }

    /// Returns the task's directories; `None` on a node without storage.
    fn dirs(&self, task: &Task) -> Option<TaskDirs> {
        let base = self.context.alloc_dir.as_deref()?;
        Some(AllocDirs::new(base, self.assignment.alloc.id).task(&task.name))
    }

    fn facts(&self) -> NodeFacts {
        let registered = &self.assignment.volume_paths;
        let facts = self.context.facts.with_volumes(registered);
        let storage = self.context.storage.as_ref();
        let mounted = storage.map(|storage| storage.mounts.paths(self.id.alloc_id));
        let mounted = mounted.unwrap_or_default().into_iter();
        let mounted = mounted.map(|(name, path)| (name, path.display().to_string()));
        facts
            .with_mounted(mounted.collect())
            .with_network(self.network.status())
    }

    /// Returns the task's environment without the variables of its templates.
    fn env<'a>(&self, facts: &'a NodeFacts) -> Result<TaskEnv<'a>, StartFailure> {
        let (job, alloc) = (&self.assignment.job, &self.assignment.alloc);
        let (group, task) = self.task()?;
        let driver = self.driver(task)?;
        let inside = self.dirs(task).map(|dirs| driver.inside(&dirs));
        Ok(TaskEnv::new(
            job,
            group,
            task,
            alloc,
            facts,
            inside.as_ref(),
        ))
    }

    /// Returns the driver and the task's configuration; `variables` are those of its tokens and templates,
    /// which override all others.
    fn config(
        &self,
        messages: Messages,
        variables: BTreeMap<String, String>,
    ) -> Result<(Arc<dyn Driver>, TaskConfig), StartFailure> {
        let (job, alloc) = (&self.assignment.job, &self.assignment.alloc);
        let (group, task) = self.task()?;
        let driver = self.driver(task)?;
        let facts = self.facts();
        let mut mounts =
            volumes::mounts(group, task, alloc, driver.as_ref(), &facts).map_err(invalid)?;
        let plugin = self.plugin_directories(group, task, driver.as_ref())?;
        let dirs = self.dirs(task);
        let mut env = self.env(&facts)?;
        env.extend(variables);
        if let Some(plugin) = plugin {
            mounts.extend(plugin.mounts);
            env.extend([plugin.endpoint].into());
        }
        let config = env
            .interpolate_config(&task.config)
            .map_err(|error| invalid(error.to_string()))?;
        let config = TaskConfig {
            id: self.id.clone(),
            user: env.interpolate(&task.user),
            config,
            env: env.into_variables(),
            dirs,
            resources: facts.resource_limits(task, alloc),
            logs: task.logs,
            ports: alloc.resources.ports_of(&task.name).cloned().collect(),
            mounts,
            network: self.network.task_network(),
            names: TaskNames {
                namespace: job.namespace.clone(),
                job_id: job.id.clone(),
                job_name: job.name.clone(),
                group: group.name.clone(),
            },
            machine: facts.machine(),
            messages,
            cancel: self.cancel.clone(),
        };
        Ok((Arc::clone(driver), config))
    }
}

/// A start that a hook prevents; the restart policy applies.
fn hook(message: String) -> StartFailure {
    StartFailure {
        step: StartStep::Hook,
        message,
        recoverable: true,
    }
}

/// A start that the job's own settings prevent.
fn invalid(message: String) -> StartFailure {
    StartFailure {
        step: StartStep::Validation,
        message,
        recoverable: false,
    }
}
