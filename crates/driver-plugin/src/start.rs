//! Start of a task. Its record is written first, so that the outcome of an unanswered start can be settled.

use task_drivers::{DriverAddress, StartError, TaskConfig, TaskDirs, TaskId, output_copy};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::calls::{CallError, bounded, done};
use crate::instance::Instance;
use crate::plugin::Plugin;
use crate::records::TaskRecord;
use crate::task::{RETRY_PAUSE, Unattached, plugin_id};
use crate::wire::drivers::start_task_response::Result as StartResult;
use crate::wire::drivers::{StartTaskRequest, StartTaskResponse};
use crate::{msgpack, schema};

mod request;

impl Plugin {
    pub(crate) async fn start_task(&self, config: TaskConfig) -> Result<(), StartError> {
        let id = config.id.clone();
        let instance = self.ready().await.map_err(|reason| failed(reason, true))?;
        if self.is_started(&instance, &id).await? {
            return Ok(());
        }
        let Some(dirs) = config.dirs.clone() else {
            return Err(failed(
                "the node has no directories for tasks".to_owned(),
                false,
            ));
        };
        let block = self.encode(&instance, &config)?;
        let record = TaskRecord {
            task_id: plugin_id(&id),
        };
        let written = self.records.put(&id, &record);
        written
            .map_err(|error| failed(format!("cannot write the task's record: {error}"), true))?;
        let pipes = self.collect_output(&config, &dirs)?;
        let task = request::task(
            &self.settings,
            &self.facts(),
            config.clone(),
            &dirs,
            block,
            pipes,
        );
        let request = StartTaskRequest {
            task: Some(task.clone()),
        };
        let answering = answer(&instance, request);
        tokio::pin!(answering);
        // Without a deadline: a driver may load an image for a long time.
        let answer = tokio::select! {
            answer = &mut answering => answer,
            () = config.cancel.cancelled() => {
                // What has started already ends at once.
                let _ = self.clear_unconfirmed(&instance, &id).await;
                // The driver goes on without its caller, and may start the task yet: it is removed after that.
                let _ = timeout(instance.timing.work_limit, answering).await;
                self.clear(&id).await;
                return Err(failed("the task was stopped during its start".to_owned(), false));
            }
        };
        let kept = match answer {
            Ok(answer) => self.keep(&id, answer, task).await,
            Err(error) => Err(of_call(error)),
        };
        match kept {
            Ok(()) => {
                instance.known.lock().await.insert(id);
                Ok(())
            }
            Err(error) => {
                self.clear(&id).await;
                Err(error)
            }
        }
    }

    /// Returns whether an earlier call started the task. One whose outcome is unknown is destroyed.
    async fn is_started(&self, instance: &Instance, id: &TaskId) -> Result<bool, StartError> {
        if self.records.get(id).is_none() {
            return Ok(false);
        }
        match self.attach(instance, id).await {
            Ok(()) => Ok(true),
            Err(Unattached::Unknown(reason)) => Err(failed(reason, true)),
            Err(Unattached::Lost(_)) => {
                self.remove_record(id).await;
                Ok(false)
            }
        }
    }

    /// Returns the config block in the plugin's form.
    fn encode(&self, instance: &Instance, config: &TaskConfig) -> Result<Vec<u8>, StartError> {
        let Some(spec) = &instance.schema else {
            if config.config.is_empty() {
                return Ok(Vec::new());
            }
            let problem = format!("config: driver {} has no options: remove it", self.name);
            return Err(StartError::Config(problem));
        };
        let value = schema::decode(spec, &config.config);
        let value = value.map_err(|problem| {
            StartError::Config(format!("config of driver {}: {problem}", self.name))
        })?;
        Ok(msgpack::encode(&value))
    }

    /// Makes the pipes for the task's output, and the process that copies it.
    fn collect_output(
        &self,
        config: &TaskConfig,
        dirs: &TaskDirs,
    ) -> Result<Option<output_copy::Pipes>, StartError> {
        if !self.facts().has_output {
            return Ok(None);
        }
        let directory = self.records.directory(&config.id);
        let made = output_copy::prepare(&directory, config, dirs);
        let pipes =
            made.map_err(|error| failed(format!("cannot collect its output: {error}"), true))?;
        if pipes.is_some() {
            self.copy_output(&config.id)
                .map_err(|error| failed(format!("cannot collect its output: {error}"), true))?;
        }
        Ok(pipes)
    }

    /// Starts the process that copies a task's output, unless it runs.
    pub(crate) fn copy_output(&self, id: &TaskId) -> std::io::Result<()> {
        let directory = self.records.directory(id);
        let mut child = output_copy::spawn(&self.settings.supervisor, &directory)?;
        // Not a zombie when it ends.
        tokio::spawn(async move { child.wait().await });
        Ok(())
    }

    /// Writes what a later process needs to know of the task.
    async fn keep(
        &self,
        id: &TaskId,
        answer: StartTaskResponse,
        task: crate::wire::drivers::TaskConfig,
    ) -> Result<(), StartError> {
        let message = bounded(&answer.driver_error_msg);
        match answer.result() {
            StartResult::Success => {}
            StartResult::Retry => return Err(failed(message, true)),
            StartResult::Fatal => return Err(failed(message, false)),
        }
        let Some(mut handle) = answer.handle else {
            return Err(failed(
                "the plugin started the task without a handle".to_owned(),
                false,
            ));
        };
        handle.config.get_or_insert(task);
        let written = self.records.put_handle(id, &handle);
        written
            .map_err(|error| failed(format!("cannot write the task's handle: {error}"), true))?;
        if let Some(network) = answer.network_override.filter(|it| !it.addr.is_empty()) {
            let config = handle.config.unwrap_or_default();
            let address = request::address(network, &config);
            self.keep_address(id, &address);
        }
        Ok(())
    }

    fn keep_address(&self, id: &TaskId, address: &DriverAddress) {
        if let Err(error) = self.records.put_address(id, address) {
            warn!(%id, %error, "cannot write the address of a task");
        }
    }

    /// Removes an attempt that did not start. What cannot be removed now is a leftover.
    async fn clear(&self, id: &TaskId) {
        let deadline = Instant::now() + self.settings.timing.ready_limit;
        loop {
            let cleared = match self.ready().await {
                Ok(instance) => self.clear_unconfirmed(&instance, id).await,
                Err(reason) => Some(Unattached::Unknown(reason)),
            };
            match cleared {
                None => return self.remove_record(id).await,
                Some(reason) if Instant::now() >= deadline => {
                    warn!(%id, ?reason, "cannot remove a task that did not start");
                    return;
                }
                // The process may have just ended; the next one says that it has no such task.
                Some(_) => sleep(RETRY_PAUSE).await,
            }
        }
    }

    pub(crate) async fn remove_record(&self, id: &TaskId) {
        let (records, of) = (self.records.clone(), id.clone());
        let removed = blocking::spawn(move || records.remove(&of)).await;
        if let Ok(Err(error)) = removed {
            warn!(%id, %error, "cannot remove the record of a task");
        }
    }
}

async fn answer(
    instance: &Instance,
    request: StartTaskRequest,
) -> Result<StartTaskResponse, CallError> {
    let mut driver = instance.driver();
    tokio::select! {
        answer = driver.start_task(request) => done(answer),
        () = instance.gone.cancelled() => Err(CallError::Gone("its process has ended".to_owned())),
    }
}

fn of_call(error: CallError) -> StartError {
    let is_unknown = error.is_unknown();
    match error {
        CallError::Refused {
            message,
            recoverable,
            ..
        } => failed(message, recoverable.unwrap_or(false)),
        // Whatever it started is destroyed, so that another attempt is no second task.
        error if is_unknown => failed(
            format!("the outcome of the start is unknown: {error}"),
            true,
        ),
        error => failed(error.to_string(), false),
    }
}

pub(crate) fn failed(message: String, recoverable: bool) -> StartError {
    StartError::Failed {
        message,
        recoverable,
    }
}
