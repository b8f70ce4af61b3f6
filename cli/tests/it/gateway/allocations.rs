//! Allocation RPCs of the fake gateway.

use std::time::Duration;

use futures::TryStreamExt as _;
use futures::stream::{self, BoxStream, StreamExt as _};
use proto::v1::allocations_server::Allocations;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, lists_id, page};

/// Delay of the output that is written later.
const LATER: Duration = Duration::from_millis(400);

#[tonic::async_trait]
impl Allocations for Fake {
    type LogsStream = BoxStream<'static, Result<LogsChunk, Status>>;

    async fn get(&self, _: Request<GetAllocationRequest>) -> Answer<GetAllocationResponse> {
        Err(Status::unimplemented("commands list by prefix"))
    }

    async fn list(
        &self,
        request: Request<ListAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListAllocations", &request, options.as_ref())
            .await?;
        let mut allocations = self.state().allocs.clone();
        allocations.retain(|alloc| lists_id(options.as_ref(), &alloc.namespace, &alloc.id));
        let (allocations, meta) = page(allocations, options.as_ref());
        Ok(Response::new(ListAllocationsResponse { meta, allocations }))
    }

    async fn restart(
        &self,
        request: Request<RestartAllocationRequest>,
    ) -> Answer<RestartAllocationResponse> {
        self.seen("Restart", &request, None).await?;
        let message = request.into_inner();
        let mut state = self.state();
        state.restart_requests.push(message.clone());
        if let Some(refused) = state.restart_refusals.pop_front() {
            return Err(refused);
        }
        let mut allocs = state.allocs.iter_mut();
        let alloc = allocs.find(|alloc| alloc.id == message.alloc_id).unwrap();
        let mut tasks = Vec::new();
        for (name, task) in &mut alloc.task_states {
            if message.task.is_empty() || message.task == *name {
                task.started_at_ns += 1;
                tasks.push(name.clone());
            }
        }
        tasks.sort();
        Ok(Response::new(RestartAllocationResponse { tasks }))
    }

    type ExecStream = BoxStream<'static, Result<ExecOutput, Status>>;

    async fn exec(
        &self,
        request: Request<tonic::Streaming<ExecInput>>,
    ) -> Answer<Self::ExecStream> {
        let mut inputs = request.into_inner();
        let first = inputs.message().await?.unwrap();
        let Some(exec_input::Input::Start(start)) = first.input else {
            return Err(Status::invalid_argument("no start"));
        };
        self.state().exec_starts.push(start);
        // The answer begins before the input: a caller may type what it reads first.
        let outputs = stream::once(async move {
            let mut stdin = Vec::new();
            while let Some(message) = inputs.message().await? {
                match message.input {
                    Some(exec_input::Input::Stdin(data)) if data.is_empty() => break,
                    Some(exec_input::Input::Stdin(data)) => stdin.extend(data),
                    _ => {}
                }
            }
            let outputs = [
                exec_output::Output::Stdout(stdin),
                exec_output::Output::Stderr(b"said\n".to_vec()),
                exec_output::Output::ExitCode(3),
            ];
            let message = |output| {
                Ok(ExecOutput {
                    output: Some(output),
                })
            };
            Ok::<_, Status>(stream::iter(outputs.map(message)))
        });
        Ok(Response::new(outputs.try_flatten().boxed()))
    }

    async fn get_checks(
        &self,
        request: Request<GetAllocationChecksRequest>,
    ) -> Answer<GetAllocationChecksResponse> {
        self.seen("GetChecks", &request, None).await?;
        let checks = vec![crate::fixtures::check()];
        Ok(Response::new(GetAllocationChecksResponse { checks }))
    }

    async fn stop(
        &self,
        request: Request<StopAllocationRequest>,
    ) -> Answer<StopAllocationResponse> {
        self.seen("Stop", &request, None).await?;
        let message = request.into_inner();
        let mut state = self.state();
        state.stop_requests.push(message.clone());
        let mut allocs = state.allocs.iter_mut();
        let alloc = allocs.find(|alloc| alloc.id == message.alloc_id).unwrap();
        let mut next = alloc.clone();
        next.id = "99998888-7777-6666-5555-444433332222".to_owned();
        alloc.next_alloc_id.clone_from(&next.id);
        alloc.desired_status = "stop".to_owned();
        state.allocs.push(next);
        Ok(Response::new(StopAllocationResponse {
            eval_id: crate::fixtures::EVAL.to_owned(),
            ..StopAllocationResponse::default()
        }))
    }

    async fn logs(&self, request: Request<LogsRequest>) -> Answer<Self::LogsStream> {
        self.seen("Logs", &request, None).await?;
        let message = request.into_inner();
        let mut state = self.state();
        state.logs_requests.push(message.clone());
        let key = (message.task.clone(), message.stream);
        let Some(pieces) = state.logs.get(&key) else {
            let text = format!("task {:?} not started yet. No logs available", message.task);
            return Err(Status::not_found(text));
        };
        let all = pieces.concat();
        let offset = usize::try_from(message.offset).unwrap().min(all.len());
        let start = if message.from_end {
            all.len() - offset
        } else {
            offset
        };
        let there: Vec<Vec<u8>> = all[start..].chunks(100).map(<[u8]>::to_vec).collect();
        let later = match message.follow {
            true => state.later_logs.get(&key).cloned().unwrap_or_default(),
            false => Vec::new(),
        };
        let later =
            stream::once(tokio::time::sleep(LATER)).flat_map(move |()| stream::iter(later.clone()));
        let later = if message.follow {
            later.boxed()
        } else {
            stream::empty().boxed()
        };
        let chunk = |data| Ok(LogsChunk { data });
        Ok(Response::new(
            stream::iter(there).chain(later).map(chunk).boxed(),
        ))
    }
}
