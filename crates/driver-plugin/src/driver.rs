//! The interface of drivers, for [`Plugin`].

use std::time::Duration;

use model::{AllocId, ExitResult, Timestamp};
use task_drivers::{
    BoxFuture, Driver, DriverAddress, DriverError, ExecCommand, ExecIo, Fingerprint, Messages,
    MountSupport, NetworkSupport, Recovery, StartError, TaskConfig, TaskDirs, TaskId, Usage,
};
use tokio::time::timeout;

use crate::plugin::Plugin;

impl Driver for Plugin {
    fn name(&self) -> &'static str {
        self.name
    }

    fn fingerprint(&self) -> Fingerprint {
        Plugin::fingerprint(self)
    }

    /// The plugin sends changes by itself; only its first report is waited for.
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let limit = self.settings.timing.quick_limit;
            // The node registers without the driver, and again with it.
            let _ = timeout(limit, self.first_fingerprint()).await;
        })
    }

    fn mount_support(&self) -> MountSupport {
        if self.facts().mounts {
            MountSupport::Private
        } else {
            MountSupport::None
        }
    }

    fn network_support(&self) -> NetworkSupport {
        if self.facts().joins_networks {
            NetworkSupport::Joins
        } else {
            NetworkSupport::HostOnly
        }
    }

    fn inside(&self, dirs: &TaskDirs) -> TaskDirs {
        if !self.facts().has_image {
            return dirs.clone();
        }
        TaskDirs::in_image()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(self.start_task(config))
    }

    fn recover(
        &self,
        config: TaskConfig,
        _started_at: Timestamp,
        _now: Timestamp,
    ) -> BoxFuture<'_, Recovery> {
        Box::pin(async move { self.recover_task(&config).await })
    }

    fn wait<'a>(
        &'a self,
        id: &'a TaskId,
        messages: &'a Messages,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>> {
        Box::pin(self.wait_task(id, messages))
    }

    fn stop<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
        grace: Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.stop_task(id, signal, grace))
    }

    fn signal<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.signal_task(id, signal))
    }

    fn exec<'a>(
        &'a self,
        id: &'a TaskId,
        command: ExecCommand,
        io: ExecIo,
    ) -> BoxFuture<'a, Result<i32, DriverError>> {
        Box::pin(self.exec_task(id, command, io))
    }

    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.forget_task(id))
    }

    fn address(&self, id: &TaskId) -> Option<DriverAddress> {
        self.records.address(id)
    }

    fn usage(&self, id: &TaskId) -> Option<Usage> {
        Plugin::usage(self, id)
    }

    fn leftovers(&self) -> Vec<TaskId> {
        self.records.all()
    }

    fn leftovers_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        self.records.of(alloc_id)
    }
}
