//! Copying of the task's output from its pipes into files, one thread per stream.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::files::Logs;
use super::shared::Shared;
use crate::log_files::{LogStream, RotatingLog};

/// In the order of descriptors 1 and 2.
pub(super) const STREAMS: [LogStream; 2] = [LogStream::Stdout, LogStream::Stderr];
/// The capacity of a pipe, so one read empties it.
const BUFFER_BYTES: usize = 64 * 1024;
/// Room for one buffer on the heap and a few calls.
const STACK_BYTES: usize = 64 * 1024;
/// Poll interval of a flush.
const FLUSH_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The read ends of the task's output, in the order of [`STREAMS`].
pub(super) type Outputs = Option<[File; 2]>;

pub(super) fn spawn(
    target: Option<&Logs>,
    outputs: Outputs,
    shared: &Arc<Shared>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let (Some(target), Some(outputs)) = (target, outputs) else {
        return Ok(Vec::new());
    };
    let mut writers = Vec::new();
    for (stream, output) in STREAMS.into_iter().zip(outputs) {
        let log = RotatingLog::new(
            &target.directory,
            &target.task,
            stream,
            target.max_files,
            target.max_file_bytes,
        )
        .begin();
        let shared = Arc::clone(shared);
        let writer = thread::Builder::new()
            .name(stream.as_str().to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || copy(output, log, stream, &shared))?;
        writers.push(writer);
    }
    Ok(writers)
}

/// Reads until no process of the task holds the other end. A full disk does not stop the reading,
/// because a full pipe would stop the task.
fn copy(mut output: File, mut log: RotatingLog, stream: LogStream, shared: &Shared) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_failing = false;
    loop {
        let length = match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let before = log.dropped_bytes();
        let error = log.write(&buffer[..length]);
        if let Some(error) = &error {
            shared.change(|facts| facts.log_dropped_bytes += log.dropped_bytes() - before);
            if !is_failing {
                shared.push_message(format!(
                    "output to {} is being dropped: {error}",
                    stream.as_str()
                ));
            }
        }
        is_failing = error.is_some();
    }
}

/// Waits at most `limit` for the last output to be written.
pub(super) fn finish(writers: &[JoinHandle<()>], limit: Duration) {
    let mut waited = Duration::ZERO;
    while waited < limit && !writers.iter().all(JoinHandle::is_finished) {
        thread::sleep(FLUSH_POLL_INTERVAL);
        waited += FLUSH_POLL_INTERVAL;
    }
}
