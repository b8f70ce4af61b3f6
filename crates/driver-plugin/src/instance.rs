//! A process of a plugin that answers.

use std::collections::HashSet;
use std::time::Duration;

use task_drivers::{ProcessId, TaskId};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use crate::calls::{CallError, within};
use crate::connect::ANSWER_BYTES_MAX;
use crate::settings::Timing;
use crate::wire::drivers::driver_client::DriverClient;
use crate::wire::drivers::{
    DestroyTaskRequest, InspectTaskRequest, InspectTaskResponse, RecoverTaskRequest, TaskHandle,
};
use crate::wire::go_plugin::Empty;
use crate::wire::go_plugin::grpc_controller_client::GrpcControllerClient;
use crate::wire::hclspec::Spec;

#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) id: ProcessId,
    pub(crate) channel: Channel,
    pub(crate) timing: Timing,
    /// Schema of a task's config block; `None`: it has none.
    pub(crate) schema: Option<Spec>,
    /// Tasks that this process knows.
    pub(crate) known: Mutex<HashSet<TaskId>>,
    /// Cancelled when the process has ended, or is given up.
    pub(crate) gone: CancellationToken,
}

impl Instance {
    pub(crate) fn driver(&self) -> DriverClient<Channel> {
        DriverClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// Asks for a task's state by the plugin's id of it.
    pub(crate) async fn inspect(&self, task_id: &str) -> Result<InspectTaskResponse, CallError> {
        let request = InspectTaskRequest {
            task_id: task_id.to_owned(),
        };
        let mut driver = self.driver();
        within(
            "InspectTask",
            self.timing.quick_limit,
            driver.inspect_task(request),
        )
        .await
    }

    /// Lets the process take over a task that another one started.
    pub(crate) async fn recover(&self, task_id: &str, handle: TaskHandle) -> Result<(), CallError> {
        let request = RecoverTaskRequest {
            task_id: task_id.to_owned(),
            handle: Some(handle),
        };
        let mut driver = self.driver();
        within(
            "RecoverTask",
            self.timing.work_limit,
            driver.recover_task(request),
        )
        .await?;
        Ok(())
    }

    /// Removes a task; one that the process does not know is removed.
    pub(crate) async fn destroy(&self, task_id: &str, force: bool) -> Result<(), CallError> {
        let request = DestroyTaskRequest {
            task_id: task_id.to_owned(),
            force,
        };
        let mut driver = self.driver();
        let limit = self.timing.work_limit;
        match within("DestroyTask", limit, driver.destroy_task(request)).await {
            Ok(_) | Err(CallError::NoTask(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks the process to end.
    pub(crate) async fn shut_down(&self, limit: Duration) {
        let mut controller = GrpcControllerClient::new(self.channel.clone());
        // One that does not is killed.
        let _ = within("Shutdown", limit, controller.shutdown(Empty {})).await;
    }
}
