//! Streams of tasks' output.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use model::AllocId;
use proto::v1;
use task_drivers::AllocDirs;
use task_drivers::log_files::LogStream;
use task_drivers::log_reader::{LogReader, Origin};
use tonic::Status;

use super::operations::{Operations, not_here, read_alloc_id};
use crate::context::Context;

/// Poll interval of a following stream. Source: Nomad's public behaviour.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);

pub(super) type Chunks = Pin<Box<dyn Stream<Item = Result<v1::LogsChunk, Status>> + Send>>;

/// Opens the output of a task.
///
/// # Errors
/// The request is invalid, or this node does not have the output.
pub(super) async fn logs(
    operations: &Operations,
    request: v1::LogsRequest,
) -> Result<Chunks, Status> {
    let (alloc_id, stream, origin) = read_request(&request)?;
    let (assignment, _) = operations
        .agent
        .find(alloc_id)
        .ok_or_else(|| not_here(alloc_id))?;
    let group = assignment.job.task_group(&assignment.alloc.task_group);
    if group.and_then(|group| group.task(&request.task)).is_none() {
        let message = format!("allocation {alloc_id} has no task {:?}", request.task);
        return Err(Status::not_found(message));
    }
    let base = operations
        .context
        .tasks
        .alloc_dir
        .as_deref()
        .ok_or_else(|| {
            Status::failed_precondition("this node only simulates tasks: it has no output")
        })?;
    let logs = AllocDirs::new(base, alloc_id).logs();
    let open = move || LogReader::open(logs, request.task, stream, origin);
    let reader = blocking(open).await?.map_err(|error| {
        Status::not_found(format!("allocation {alloc_id} has no output: {error}"))
    })?;
    let following = Following {
        operations: operations.clone(),
        alloc_id,
        reader: Some(reader),
        follow: request.follow,
        has_ended: false,
        _open: OpenStream::new(&operations.context),
    };
    Ok(Box::pin(unfold(following, next_chunk)))
}

fn read_request(request: &v1::LogsRequest) -> Result<(AllocId, LogStream, Origin), Status> {
    let invalid = |field, message| proto::status::invalid_field(field, message);
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let stream = match v1::LogStream::try_from(request.stream) {
        Ok(v1::LogStream::Stdout) => LogStream::Stdout,
        Ok(v1::LogStream::Stderr) => LogStream::Stderr,
        _ => {
            return Err(invalid(
                "stream",
                "want 1 (stdout) or 2 (stderr)".to_owned(),
            ));
        }
    };
    let origin = if request.from_end {
        Origin::End(request.offset)
    } else {
        Origin::Start(request.offset)
    };
    Ok((alloc_id, stream, origin))
}

struct Following {
    operations: Operations,
    alloc_id: AllocId,
    /// `None` during a read.
    reader: Option<LogReader>,
    follow: bool,
    /// The allocation had ended before the last read.
    has_ended: bool,
    _open: OpenStream,
}

/// Returns the next chunk, read when the connection has room for it.
async fn next_chunk(
    mut following: Following,
) -> Option<(Result<v1::LogsChunk, Status>, Following)> {
    loop {
        let mut reader = following.reader.take()?;
        let read = blocking(move || (reader.read(), reader)).await;
        let data = match read {
            Ok((Ok(data), reader)) => {
                following.reader = Some(reader);
                data
            }
            // The allocation was collected: its output is gone.
            Ok((Err(_), _))
                if following
                    .operations
                    .agent
                    .find(following.alloc_id)
                    .is_none() =>
            {
                return None;
            }
            Ok((Err(error), _)) => {
                let status = Status::internal(format!("cannot read the output: {error}"));
                return Some((Err(status), following));
            }
            Err(status) => return Some((Err(status), following)),
        };
        if !data.is_empty() {
            return Some((Ok(v1::LogsChunk { data }), following));
        }
        // An ended allocation writes no more output, so the read after its end was the last.
        if !following.follow || following.has_ended {
            return None;
        }
        let found = following.operations.agent.find(following.alloc_id);
        following.has_ended = found.is_none_or(|(_, has_ended)| has_ended);
        if following.has_ended {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
            () = following.operations.drain.cancelled() => {
                let status = Status::unavailable("the node's agent is ending; retry");
                return Some((Err(status), Following { reader: None, ..following }));
            }
        }
    }
}

/// Runs blocking disk operations outside the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    blocking::spawn(work)
        .await
        .map_err(|error| Status::internal(format!("reading was interrupted: {error}")))
}

/// Counts an open stream while it lives.
struct OpenStream(crate::metrics::Metrics);

impl OpenStream {
    fn new(context: &Context) -> Self {
        context.metrics.log_streams.inc();
        Self(context.metrics.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.log_streams.dec();
    }
}
