//! Files of allocations: lists, facts, and streams that follow a file.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use alloc_files::{Directory, Error, FileInfo, FilePath, Origin, Reader, Step};
use futures::Stream;
use futures::stream::unfold;
use model::AllocId;
use proto::v1;
use task_drivers::AllocDirs;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;

use super::operations::{FILE_SLOTS, Operations, not_here, read_alloc_id};

/// Poll interval of a following stream.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);
/// Time in which a file that is gone may come back: a rotation renames first.
const RETURN_LIMIT: Duration = Duration::from_secs(1);

pub(super) type FileChunks = Pin<Box<dyn Stream<Item = Result<v1::FileChunk, Status>> + Send>>;

/// Lists a directory.
///
/// # Errors
/// The request is invalid, or this node has no such directory.
pub(super) async fn list(
    operations: &Operations,
    request: v1::ListFilesRequest,
) -> Result<v1::ListFilesResponse, Status> {
    let _slot = slot(&operations.file_slots)?;
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let list = in_directory(operations, alloc_id, move |directory| {
        directory.list(&FilePath::parse(&request.path)?)
    });
    let list = list.await?;
    Ok(v1::ListFilesResponse {
        files: list.files.into_iter().map(info).collect(),
        is_truncated: list.is_truncated,
    })
}

/// Returns the facts of one file.
///
/// # Errors
/// The request is invalid, or this node has no such file.
pub(super) async fn get(
    operations: &Operations,
    request: v1::GetFileRequest,
) -> Result<v1::GetFileResponse, Status> {
    let _slot = slot(&operations.file_slots)?;
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let found = in_directory(operations, alloc_id, move |directory| {
        directory.info(&FilePath::parse(&request.path)?)
    });
    let file = Some(info(found.await?));
    Ok(v1::GetFileResponse { file })
}

/// Opens a file; it is read as fast as the caller takes it.
///
/// # Errors
/// The request is invalid, or this node has no such file.
pub(super) async fn read(
    operations: &Operations,
    request: v1::ReadFileRequest,
) -> Result<FileChunks, Status> {
    let slot = slot(&operations.file_slots)?;
    let alloc_id = read_alloc_id(&request.alloc_id)?;
    let origin = if request.from_end {
        Origin::End(request.offset)
    } else {
        Origin::Start(request.offset)
    };
    let reader = in_directory(operations, alloc_id, move |directory| {
        Reader::open(directory, FilePath::parse(&request.path)?, origin)
    });
    let following = Following {
        reader: Some(reader.await?),
        operations: operations.clone(),
        alloc_id,
        follow: request.follow,
        left: match request.limit {
            0 => u64::MAX,
            limit => limit,
        },
        has_ended: false,
        missing_since: None,
        _slot: slot,
    };
    Ok(Box::pin(unfold(following, next_chunk)))
}

/// An open file and its caller.
struct Following {
    operations: Operations,
    alloc_id: AllocId,
    /// `None` during a read, and after the last one.
    reader: Option<Reader>,
    follow: bool,
    /// Bytes until the caller's limit.
    left: u64,
    /// The allocation had ended before the last read.
    has_ended: bool,
    missing_since: Option<Instant>,
    _slot: OwnedSemaphorePermit,
}

async fn next_chunk(
    mut following: Following,
) -> Option<(Result<v1::FileChunk, Status>, Following)> {
    loop {
        if following.left == 0 {
            return None;
        }
        let mut reader = following.reader.take()?;
        let (left, follow) = (following.left, following.follow);
        let read = blocking::spawn(move || (reader.step(left, follow), reader)).await;
        let (step, reader) = match read {
            Ok((Ok(step), reader)) => (step, reader),
            Ok((Err(error), _)) => return Some((Err(status_of(error)), following)),
            Err(error) => return Some((Err(interrupted(&error)), following)),
        };
        let offset = reader.position();
        following.reader = Some(reader);
        if step != Step::Missing {
            following.missing_since = None;
        }
        let (data, event) = match step {
            Step::Data(data) => {
                let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
                following.left = following.left.saturating_sub(length);
                (data, v1::FileEvent::Unspecified)
            }
            Step::Truncated => (Vec::new(), v1::FileEvent::Truncated),
            Step::Replaced => (Vec::new(), v1::FileEvent::Replaced),
            // An ended allocation writes no more, so the read after its end was the last.
            Step::AtEnd if !follow || following.has_ended => return None,
            Step::AtEnd => {
                following.pause().await?;
                continue;
            }
            Step::Missing => {
                let since = *following.missing_since.get_or_insert_with(Instant::now);
                if since.elapsed() < RETURN_LIMIT && !following.has_ended {
                    following.pause().await?;
                    continue;
                }
                following.reader = None;
                (Vec::new(), v1::FileEvent::Deleted)
            }
        };
        let chunk = v1::FileChunk {
            data,
            offset,
            event: event.into(),
        };
        return Some((Ok(chunk), following));
    }
}

impl Following {
    /// Waits for the next look; `None`: the agent ends, and the stream with it.
    async fn pause(&mut self) -> Option<()> {
        let found = self.operations.agent.find(self.alloc_id);
        self.has_ended = found.is_none_or(|(_, has_ended)| has_ended);
        if self.has_ended {
            return Some(());
        }
        tokio::select! {
            () = tokio::time::sleep(FOLLOW_INTERVAL) => Some(()),
            () = self.operations.drain.cancelled() => None,
        }
    }
}

fn slot(slots: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    Arc::clone(slots).try_acquire_owned().map_err(|_| {
        Status::resource_exhausted(format!(
            "the node reads as many files as it may ({FILE_SLOTS}); end one, or try again later"
        ))
    })
}

/// Works in the directory of an allocation, outside the async threads.
async fn in_directory<T: Send + 'static>(
    operations: &Operations,
    alloc_id: AllocId,
    work: impl FnOnce(Directory) -> Result<T, Error> + Send + 'static,
) -> Result<T, Status> {
    if operations.agent.find(alloc_id).is_none() {
        return Err(not_here(alloc_id));
    }
    let base = operations
        .context
        .tasks
        .alloc_dir
        .as_deref()
        .ok_or_else(|| {
            Status::failed_precondition("this node only simulates tasks: it has no files")
        })?;
    let root = AllocDirs::new(base, alloc_id).root;
    let worked = blocking::spawn(move || match Directory::open(&root) {
        Ok(directory) => work(directory).map_err(status_of),
        Err(error) => Err(Status::not_found(format!(
            "allocation {alloc_id} has no files yet, or not any more: {error}"
        ))),
    });
    worked.await.map_err(|error| interrupted(&error))?
}

fn interrupted(error: &impl std::fmt::Display) -> Status {
    Status::internal(format!("reading was interrupted: {error}"))
}

fn status_of(error: Error) -> Status {
    let text = error.to_string();
    match error {
        Error::Escapes { .. }
        | Error::Link { .. }
        | Error::IsDirectory { .. }
        | Error::NotDirectory { .. }
        | Error::NotRegular { .. } => proto::status::invalid_field("path", text),
        Error::Secret { .. } | Error::Linked { .. } => Status::permission_denied(text),
        Error::NotFound { .. } => Status::not_found(text),
        Error::Io { .. } => Status::internal(text),
    }
}

fn info(file: FileInfo) -> v1::FileInfo {
    v1::FileInfo {
        name: file.name,
        is_dir: file.is_dir,
        size: file.size,
        mode: file.mode,
        modified_at_ns: file.modified_at_ns,
    }
}
