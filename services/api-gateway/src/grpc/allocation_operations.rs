//! `kafila.v1.Allocations`: restart, stop, commands and checks.

use admission::jobs::alloc_request::locate_command;
use admission::jobs::request_id::Verb;
use admission::jobs::restart_alloc::{self, RestartTarget};
use admission::jobs::{request_id, stop_alloc::stop_alloc};
use gateway_core::Error;
use identity::Caller;
use listing::find;
use node_calls::{checks, exec, restart};
use proto::v1;
use state::Snapshot;
use store::SizeClass;
use tonic::{Status, Streaming};
use tracing::info;

use super::job_operations::step;
use super::query::{Api, Parts};

impl Api {
    pub(super) async fn restart_allocation(
        &self,
        request: v1::RestartAllocationRequest,
    ) -> Result<v1::RestartAllocationResponse, Status> {
        let target = self.find_restart(&request).await?;
        let tasks = restart::restart(&self.gateway.node_calls, &target).await?;
        info!(alloc_id = %target.alloc_id, ?tasks, "tasks restarted");
        Ok(v1::RestartAllocationResponse { tasks })
    }

    /// Finds the node to ask.
    async fn find_restart(
        &self,
        request: &v1::RestartAllocationRequest,
    ) -> Result<RestartTarget, Error> {
        let look = |snapshot: &Snapshot| {
            let id = find::alloc(snapshot, &request.alloc_id)?;
            let view = snapshot.alloc(id).expect("found in this snapshot");
            let target = restart_alloc::locate(snapshot, view, &request.task, request.all_tasks)?;
            Ok::<RestartTarget, Error>(target)
        };
        self.gateway.core.look(look).await
    }

    /// Passes a command on to the node of its task.
    pub(super) async fn exec_in_task(
        &self,
        caller: &Caller,
        mut inputs: Streaming<v1::ExecInput>,
    ) -> Result<Parts<v1::ExecOutput>, Status> {
        let start = exec::read_start(&mut inputs).await?;
        let look = |snapshot: &Snapshot| {
            let id = find::alloc(snapshot, &start.alloc_id)?;
            let view = snapshot.alloc(id).expect("found in this snapshot");
            let (task, action, command) = (&start.task, &start.action, start.command.clone());
            let found = locate_command(snapshot, view, task, action, command)?;
            Ok::<_, Error>(found)
        };
        let (target, task, command) = self.gateway.core.look(look).await?;
        let start = v1::ExecStart {
            task,
            command,
            ..start
        };
        let outputs = exec::relay(&self.gateway.node_calls, &target, caller, start, inputs).await?;
        Ok(Box::pin(outputs))
    }

    pub(super) async fn allocation_checks(
        &self,
        request: v1::GetAllocationChecksRequest,
    ) -> Result<v1::GetAllocationChecksResponse, Status> {
        let look = |snapshot: &Snapshot| {
            let id = find::alloc(snapshot, &request.alloc_id)?;
            let view = snapshot.alloc(id).expect("found in this snapshot");
            Ok::<_, Error>(restart_alloc::locate_checks(snapshot, view)?)
        };
        let checks = match self.gateway.core.look(look).await? {
            Some(target) => checks::checks(&self.gateway.node_calls, &target).await?,
            None => Vec::new(),
        };
        Ok(v1::GetAllocationChecksResponse { checks })
    }

    pub(super) async fn stop_allocation(
        &self,
        request: v1::StopAllocationRequest,
    ) -> Result<v1::StopAllocationResponse, Error> {
        let core = &self.gateway.core;
        let alloc_id = find::alloc(&core.fresh().await?, &request.alloc_id)?;
        let subject = alloc_id.to_string();
        let derive = |id: &str| request_id::eval_id_of(Verb::StopAlloc.as_str(), &subject, id);
        let context = self.request_context_of(&request.request_id, derive)?;
        let eval_id = context.eval_id;
        let max_open_evals = self.gateway.config.max_open_evals;
        let decide = |snapshot: &Snapshot| {
            Ok(step(stop_alloc(
                snapshot,
                alloc_id,
                request.no_shutdown_delay,
                max_open_evals,
                &context,
            )?))
        };
        let what = || format!("allocation {alloc_id}");
        let (_, index) = core.execute_in(SizeClass::FollowUp, what, decide).await?;
        info!(%alloc_id, %eval_id, index, "allocation stopped");
        Ok(v1::StopAllocationResponse {
            eval_id: eval_id.to_string(),
            eval_create_index: index,
            index,
        })
    }
}
