//! The interface of drivers, for [`Docker`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use model::{AllocId, ExitResult, Timestamp};
use task_drivers::{
    BoxFuture, Driver, DriverAddress, DriverError, ExecCommand, ExecIo, Fingerprint, Messages,
    MountSupport, NetworkAsk, NetworkSupport, Recovery, StartError, TaskConfig, TaskDirs, TaskId,
    Usage, UserSource,
};

use crate::tasks::Docker;

impl Driver for Docker {
    fn name(&self) -> &'static str {
        self.settings.engine_kind.name()
    }

    fn fingerprint(&self) -> Fingerprint {
        self.last_fingerprint()
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.probe())
    }

    /// An engine that does not enter private directories could not mount those of a task with users of
    /// its image.
    fn user_source(&self) -> UserSource {
        if self.enters_private.load(Ordering::Relaxed) {
            UserSource::Image
        } else {
            UserSource::Node
        }
    }

    fn mount_support(&self) -> MountSupport {
        MountSupport::Shared
    }

    fn network_support(&self) -> NetworkSupport {
        NetworkSupport::Makes
    }

    fn make_network(&self, ask: NetworkAsk) -> BoxFuture<'_, Result<i32, String>> {
        Box::pin(async move { self.make_pause(&ask).await })
    }

    fn remove_network(&self, alloc_id: AllocId) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.remove_pause(alloc_id))
    }

    fn inside(&self, _: &TaskDirs) -> TaskDirs {
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
        Box::pin(async move { self.recover_task(&config.id).await })
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
        Box::pin(self.exec_in_container(id, command, io))
    }

    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.forget_task(id))
    }

    fn read_usage(&self) -> BoxFuture<'_, ()> {
        Box::pin(Docker::read_usage(self))
    }

    fn read_usage_of(&self, alloc_id: AllocId) -> BoxFuture<'_, ()> {
        Box::pin(Docker::read_usage_of(self, alloc_id))
    }

    fn address(&self, id: &TaskId) -> Option<DriverAddress> {
        self.records.address(id)
    }

    fn usage(&self, id: &TaskId) -> Option<Usage> {
        self.last_usage(id)
    }

    fn leftovers(&self) -> Vec<TaskId> {
        self.records.all()
    }

    fn leftovers_of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        self.records.of(alloc_id)
    }
}
