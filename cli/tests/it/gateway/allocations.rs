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

    async fn list_files(&self, request: Request<ListFilesRequest>) -> Answer<ListFilesResponse> {
        self.seen("ListFiles", &request, None).await?;
        let path = request.into_inner().path;
        let state = self.state();
        let files = state.files.iter();
        let in_it = files.filter(|(name, _)| name.rsplit_once('/').is_some_and(|it| it.0 == path));
        let mut files: Vec<_> = in_it.map(|(name, text)| file_info(name, text)).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Response::new(ListFilesResponse {
            files,
            is_truncated: path == "many",
        }))
    }

    async fn get_file(&self, request: Request<GetFileRequest>) -> Answer<GetFileResponse> {
        self.seen("GetFile", &request, None).await?;
        let path = request.into_inner().path;
        let state = self.state();
        let file = match state.files.get(&path) {
            Some(text) => file_info(&path, text),
            None if state.files.keys().any(|name| name.starts_with(&path)) => FileInfo {
                name: path,
                is_dir: true,
                mode: "drwxr-xr-x".to_owned(),
                ..FileInfo::default()
            },
            None => return Err(Status::not_found(format!("there is no {path:?}"))),
        };
        let file = Some(file);
        Ok(Response::new(GetFileResponse { file }))
    }

    type ReadFileStream = BoxStream<'static, Result<FileChunk, Status>>;

    /// A followed file gets `+` once, breaks off, gets `*` when it is opened again, and is deleted.
    async fn read_file(&self, request: Request<ReadFileRequest>) -> Answer<Self::ReadFileStream> {
        self.seen("ReadFile", &request, None).await?;
        let asked = request.into_inner();
        let mut state = self.state();
        state.read_requests.push(asked.clone());
        let text = state.files.get(&asked.path).cloned().unwrap_or_default();
        let offset = usize::try_from(asked.offset).unwrap();
        let start = match asked.from_end {
            true => text.len().saturating_sub(offset),
            false => offset.min(text.len()),
        };
        let part = |data: &str, offset: usize, event: FileEvent| {
            Ok(FileChunk {
                data: data.as_bytes().to_vec(),
                offset: offset as u64,
                event: event.into(),
            })
        };
        let length = text.len();
        let mut chunks = vec![part(&text[start..], length, FileEvent::Unspecified)];
        if asked.follow && offset <= length {
            chunks.push(part("+", length + 1, FileEvent::Unspecified));
            chunks.push(Err(Status::unavailable("the connection broke")));
        } else if asked.follow {
            chunks = vec![
                part("", 0, FileEvent::Truncated),
                part("*", 1, FileEvent::Unspecified),
                part("", 1, FileEvent::Deleted),
            ];
        }
        Ok(Response::new(stream::iter(chunks).boxed()))
    }

    async fn signal(
        &self,
        request: Request<SignalAllocationRequest>,
    ) -> Answer<SignalAllocationResponse> {
        self.seen("Signal", &request, None).await?;
        let message = request.into_inner();
        self.state().signal_requests.push(message.clone());
        Ok(Response::new(SignalAllocationResponse {
            tasks: vec!["a".to_owned(), "b".to_owned()],
            signal: format!("SIG{}", message.signal.trim_start_matches("SIG")),
        }))
    }

    async fn get_stats(
        &self,
        request: Request<GetAllocationStatsRequest>,
    ) -> Answer<GetAllocationStatsResponse> {
        self.seen("GetStats", &request, None).await?;
        let usage = TaskUsage {
            cpu: Some(TaskCpuUsage {
                percent: 12.34,
                mhz: 246.8,
                ..TaskCpuUsage::default()
            }),
            memory: Some(TaskMemoryUsage {
                usage: Some(3 << 20),
                ..TaskMemoryUsage::default()
            }),
        };
        Ok(Response::new(GetAllocationStatsResponse {
            tasks: [("server".to_owned(), usage)].into(),
            measured_at_ns: 1,
        }))
    }
}

fn file_info(path: &str, text: &str) -> FileInfo {
    FileInfo {
        name: path.rsplit('/').next().unwrap_or_default().to_owned(),
        size: text.len() as u64,
        mode: "-rw-r--r--".to_owned(),
        modified_at_ns: 1_700_000_000_000_000_000,
        ..FileInfo::default()
    }
}
