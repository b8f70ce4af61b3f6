//! Start of a task, and its recovery after a restart of the agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use task_drivers::dirs::is_safe_name;
use task_drivers::{Recovery, StartError, TaskConfig, TaskId};
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::container::{Found, State};
use crate::engine::Problem;
use crate::options::Options;
use crate::records::{LogFiles, Record};
use crate::request;
use crate::start_failure::failed;
use crate::tasks::Docker;

/// Pauses between attempts to create a container whose name is taken by an earlier attempt of the
/// task, while the engine removes that one.
const NAME_PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::from_secs(3),
    Duration::from_secs(6),
];
/// Pauses between attempts to inspect a container at recovery. Afterwards the wait goes on asking.
const FIND_PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(4),
];

impl Docker {
    pub(crate) async fn start_task(&self, mut config: TaskConfig) -> Result<(), StartError> {
        let id = config.id.clone();
        if !self.settings.config.enabled {
            let name = self.settings.engine_kind.name();
            let message = format!("driver {name} is not enabled on this node");
            return Err(StartError::Config(message));
        }
        if !is_safe_name(&id.task) {
            return Err(StartError::Config(format!(
                "task name {:?} is not a directory name",
                id.task
            )));
        }
        let options = crate::config_block::read(&config, self.settings.engine_kind)?;
        let own_files = self.network_files(&mut config, &options)?;
        let body = request::create(&config, &options, &self.settings);
        let mut body = body.map_err(StartError::Config)?;
        self.check_sources(&config, &options)?;
        let name = crate::names::of_task(&id);
        if self.records.has(&id)
            && let Some(found) = self.find_attempt(&id).await.map_err(engine_failed)?
        {
            debug!(%id, state = ?found.state, "the task was started before");
            match found.state {
                State::Created => return self.launch(&id, &found.id).await,
                State::Ended(_) if self.is_of_earlier_boot(&id) => {
                    let removed = self.engine.remove(&found.id, true).await;
                    removed.map_err(engine_failed)?;
                }
                State::Running | State::Ended(_) => {
                    self.keep_address(&id, &found);
                    return Ok(());
                }
            }
        }
        let record = Record {
            name: name.clone(),
            boot_id: self.boot_id.clone(),
            logs: log_files(&config),
        };
        self.records
            .put(&id, &record)
            .map_err(|error| failed(format!("cannot write the record of {id}: {error}"), true))?;
        for (path, text) in own_files {
            std::fs::write(&path, text).map_err(|error| {
                failed(format!("cannot write {}: {error}", path.display()), true)
            })?;
        }
        let started = async {
            let (image, hold) = self.get_image(&config, &options).await?;
            body.image = Some(image);
            let container = self.create(&id, &name, body).await?;
            drop(hold);
            self.launch(&id, &container).await
        };
        let started = started.await;
        if started.is_err() {
            self.clear(&id).await;
        }
        started
    }

    /// Returns the files of a task with hosts or a resolver of its own in its allocation's network, and
    /// makes them the task's. They are kept with its record.
    fn network_files(
        &self,
        config: &mut TaskConfig,
        options: &Options,
    ) -> Result<Vec<(PathBuf, String)>, StartError> {
        let Some(network) = &mut config.network else {
            return Ok(Vec::new());
        };
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let files = request::files(options, &read(&network.hosts), &read(&network.resolv_conf));
        let files = files.map_err(StartError::Config)?;
        let directory = self.records.directory(&config.id);
        let mut own = Vec::new();
        for (name, text, path) in [
            ("hosts", files.hosts, &mut network.hosts),
            ("resolv.conf", files.resolv_conf, &mut network.resolv_conf),
        ] {
            if let Some(text) = text {
                *path = directory.join(name);
                own.push((path.clone(), text));
            }
        }
        Ok(own)
    }

    /// Creates the container. It replaces the ended container of an earlier attempt.
    async fn create(
        &self,
        id: &TaskId,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, StartError> {
        let mut pauses = NAME_PAUSES.into_iter();
        loop {
            let problem = match self.engine.create(name, body.clone()).await {
                Ok(container) => return Ok(container),
                Err(problem) => problem,
            };
            let is_taken = matches!(problem, Problem::Refused { status: 409, .. });
            let Some(pause) = pauses.next().filter(|_| is_taken) else {
                return Err(create_failed(&problem));
            };
            match self.engine.find(name).await.map_err(engine_failed)? {
                Some(Found {
                    id: container,
                    task_id: Some(found),
                    ..
                }) if found == *id => return Ok(container),
                Some(Found {
                    id: container,
                    task_id: Some(found),
                    ..
                }) if found.alloc_id == id.alloc_id && found.task == id.task => {
                    info!(%id, earlier = %found, "removing the container of an earlier attempt");
                    if let Err(problem) = self.engine.remove(&container, true).await {
                        warn!(%id, %problem, "cannot remove the container of an earlier attempt");
                    }
                }
                Some(_) => {
                    let message = format!(
                        "a container that Kafila did not make has the name {name}: remove it with \
                         {} rm",
                        self.settings.engine_kind.name()
                    );
                    return Err(failed(message, true));
                }
                None => {}
            }
            sleep(pause).await;
        }
    }

    async fn launch(&self, id: &TaskId, container: &str) -> Result<(), StartError> {
        self.engine.start(container).await.map_err(|problem| {
            // A command that the image does not have.
            let is_wrong = matches!(problem, Problem::Refused { status: 400, .. });
            failed(format!("cannot start the container: {problem}"), !is_wrong)
        })?;
        debug!(%id, container, "container started");
        match self.find_attempt(id).await {
            Ok(Some(found)) => self.keep_address(id, &found),
            Ok(None) => {}
            Err(problem) => warn!(%id, %problem, "the address of a container is not known"),
        }
        Ok(())
    }

    /// Keeps the address of a started container with its record, for the services of its task.
    fn keep_address(&self, id: &TaskId, found: &Found) {
        let Some(address) = &found.address else {
            return;
        };
        if let Err(error) = self.records.put_address(id, address) {
            warn!(%id, %error, "cannot write the address of a container");
        }
    }

    /// Removes an attempt that did not start. What cannot be removed now is a leftover.
    async fn clear(&self, id: &TaskId) {
        let removed = match self.find_attempt(id).await {
            Ok(Some(found)) => self.engine.remove(&found.id, true).await,
            Ok(None) => Ok(()),
            Err(problem) => Err(problem),
        };
        match removed {
            Ok(()) => {
                if let Err(error) = self.records.remove(id) {
                    warn!(%id, %error, "cannot remove the record of a container");
                }
            }
            Err(problem) => warn!(%id, %problem, "cannot remove a container that did not start"),
        }
    }

    /// Returns the attempt's container; `None`: there is none.
    pub(crate) async fn find_attempt(&self, id: &TaskId) -> Result<Option<Found>, Problem> {
        let found = self.engine.find(&crate::names::of_task(id)).await?;
        Ok(found.filter(|found| found.task_id.as_ref() == Some(id)))
    }

    /// Returns whether a reboot of the machine ended the attempt: its exit is not the task's own.
    fn is_of_earlier_boot(&self, id: &TaskId) -> bool {
        let record = self.records.get(id);
        record.is_some_and(|record| record.boot_id != self.boot_id)
    }

    pub(crate) async fn recover_task(&self, id: &TaskId) -> Recovery {
        let not_found = |reason: &str| Recovery::NotFound {
            reason: reason.to_owned(),
        };
        let mut problem = None;
        for pause in FIND_PAUSES {
            match self.find_attempt(id).await {
                Ok(Some(found)) => {
                    // An earlier version of the agent kept no addresses.
                    self.keep_address(id, &found);
                    return match found.state {
                        State::Running => Recovery::Running { note: None },
                        State::Ended(_) if self.is_of_earlier_boot(id) => {
                            self.clear(id).await;
                            not_found("the node was rebooted")
                        }
                        State::Ended(exit) => Recovery::Exited(exit),
                        State::Created => {
                            self.clear(id).await;
                            not_found("its container was never started")
                        }
                    };
                }
                Ok(None) => {
                    self.clear(id).await;
                    return not_found("its container does not exist any more");
                }
                Err(found) => problem = Some(found),
            }
            sleep(pause).await;
        }
        // Not a reason to give a task up: waiting for its exit asks again.
        Recovery::Running {
            note: problem.map(|problem| {
                let title = self.settings.engine_kind.title();
                format!("{title} does not answer yet: {problem}")
            }),
        }
    }

    /// Checks that relative sources do not lead out of the allocation's directory by a link that an
    /// earlier run of the task made. Source: none; Nomad 2.0 mounts the link's target.
    fn check_sources(&self, config: &TaskConfig, options: &Options) -> Result<(), StartError> {
        let Some(dirs) = config
            .dirs
            .as_ref()
            .filter(|_| !self.settings.config.volumes)
        else {
            return Ok(());
        };
        let alloc_dir = dirs.root.parent().unwrap_or(&dirs.root);
        for path in request::host_paths(config, options) {
            if let Some(real) = leads_out(&path, alloc_dir) {
                return Err(StartError::Config(format!(
                    "{} is a link to {}, outside of the allocation's directory: remove the link, \
                     or set {} = true on the node",
                    path.display(),
                    real.display(),
                    self.settings.setting("volumes")
                )));
            }
        }
        Ok(())
    }
}

/// Returns the real path of `path`, or of its nearest existing ancestor, if that is outside of `base`.
fn leads_out(path: &Path, base: &Path) -> Option<PathBuf> {
    let base = base.canonicalize().ok()?;
    let real = path
        .ancestors()
        .find_map(|ancestor| ancestor.canonicalize().ok())?;
    (!real.starts_with(&base)).then_some(real)
}

fn log_files(config: &TaskConfig) -> Option<LogFiles> {
    let dirs = config.dirs.as_ref().filter(|_| !config.logs.disabled)?;
    Some(LogFiles {
        directory: dirs.logs.clone(),
        task: config.id.task.clone(),
        max_files: config.logs.max_files,
        max_file_bytes: u64::from(config.logs.max_file_size_mib) * 1024 * 1024,
    })
}

fn create_failed(problem: &Problem) -> StartError {
    let is_wrong = matches!(problem, Problem::Refused { status: 400, .. });
    failed(format!("cannot create the container: {problem}"), !is_wrong)
}

fn engine_failed(problem: Problem) -> StartError {
    failed(problem.to_string(), true)
}
