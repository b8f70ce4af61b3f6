//! Reader of one output stream of one task: existing output, or new output as well, across interruptions.

use std::time::Duration;

use kafila_client::Opened;
use proto::v1::{self, LogStream};
use tokio::time::{Instant, timeout_at};

use super::start::Start;
use crate::alloc_state::has_ended;
use crate::commands::alloc::tail::LastLines;
use crate::connection::LogsRequest;
use crate::context::Context;
use crate::error::Error;
use crate::retries::{self, MAX_RETRIES};

/// First window in the search for the last lines, in bytes from the end: hundreds of usual lines.
const FIRST_WINDOW_BYTES: u64 = 64 << 10;
/// Largest window: by default a task keeps ten log files of 10 MiB.
const MAX_WINDOW_BYTES: u64 = 128 << 20;

/// Idle time after which a followed stream has delivered its backlog. Nodes read far faster.
const BACKLOG_IDLE: Duration = Duration::from_millis(200);
/// Upper bound of the backlog phase, for tasks that write continuously.
const BACKLOG_LIMIT: Duration = Duration::from_secs(1);

/// Delay until the gateway knows that a task has ended, after the node closed the stream. Reports are
/// batched and stored within a fraction of this.
const REPORT_LAG: Duration = Duration::from_secs(1);

/// One output stream of one task.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) context: &'a Context,
    pub(super) alloc_id: &'a str,
    pub(super) task: &'a str,
    pub(super) stream: LogStream,
    pub(super) to_stderr: bool,
}

impl Reader<'_> {
    /// Prints the existing output; returns its size in bytes.
    pub(super) async fn read(self, start: Start) -> Result<usize, Error> {
        let (offset, from_end) = match start {
            Start::Beginning => (0, false),
            Start::LastBytes(bytes) => (bytes, true),
            Start::LastLines(lines) => {
                let last = self.last_lines(lines).await?;
                self.print(last.kept())?;
                return Ok(last.kept().len());
            }
        };
        let mut stream = self.open(offset, from_end, false).await?;
        let mut printed = 0;
        while let Some(chunk) = self.next(&mut stream).await? {
            self.print(&chunk)?;
            printed += chunk.len();
        }
        Ok(printed)
    }

    /// Prints existing and new output until the task ends.
    pub(super) async fn follow(self, start: Start) -> Result<(), Error> {
        let mut backoff = retries::backoff();
        let mut rng = self.context.connection.ids().rng();
        let mut start = start;
        let mut retries = 0;
        loop {
            let mut began = false;
            let why = match self.follow_once(start, &mut began).await {
                // A draining gateway closes its streams without an error.
                Ok(()) if self.task_has_ended().await? => return Ok(()),
                Ok(()) => "the gateway ended the stream".to_owned(),
                // A missing task or log is no interruption.
                Err(error) if !error.is_transient() || (retries == 0 && !began) => {
                    return Err(error);
                }
                Err(error) if retries >= MAX_RETRIES => return Err(error),
                Err(error) => error.reason(),
            };
            if began {
                retries = 0;
                backoff.reset();
            }
            if retries == 0 {
                self.context.printer.err(&format!(
                    "==> The logs broke off ({why}); following again from their end, so lines in \
                     between may be missing"
                ));
            }
            retries += 1;
            start = Start::LastBytes(0);
            tokio::time::sleep(backoff.next(&mut rng)).await;
        }
    }

    /// Tells whether the task has ended, waiting briefly for its report.
    async fn task_has_ended(self) -> Result<bool, Error> {
        for look in 0..2 {
            if look > 0 {
                tokio::time::sleep(REPORT_LAG).await;
            }
            match self.context.connection.allocations(self.alloc_id, 1).await {
                Ok(allocs) if allocs.iter().all(|alloc| is_over(alloc, self.task)) => {
                    return Ok(true);
                }
                Ok(_) => {}
                Err(error) if error.is_transient() => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    async fn follow_once(self, start: Start, began: &mut bool) -> Result<(), Error> {
        let mut stream = match start {
            Start::Beginning => self.open(0, false, true).await?,
            Start::LastBytes(bytes) => self.open(bytes, true, true).await?,
            Start::LastLines(lines) => {
                let there = self.last_lines(lines).await?;
                let bytes = u64::try_from(there.kept().len()).unwrap_or(u64::MAX);
                // Output written before the stream opens moves the lines away from the end.
                let window = bytes.saturating_add(FIRST_WINDOW_BYTES);
                let mut stream = self.open(window, true, true).await?;
                *began = true;
                if !self.print_backlog(lines, &mut stream).await? {
                    return Ok(());
                }
                stream
            }
        };
        *began = true;
        while let Some(chunk) = self.next(&mut stream).await? {
            self.print(&chunk)?;
        }
        Ok(())
    }

    /// Prints the last lines of the backlog; false if the stream has ended.
    async fn print_backlog(
        self,
        lines: u32,
        stream: &mut Opened<v1::LogsChunk>,
    ) -> Result<bool, Error> {
        let mut last = LastLines::new(lines);
        let limit = Instant::now() + BACKLOG_LIMIT;
        let goes_on = loop {
            let until = limit.min(Instant::now() + BACKLOG_IDLE);
            match timeout_at(until, self.next(stream)).await {
                Ok(Ok(Some(chunk))) => last.push(&chunk),
                Ok(Ok(None)) => break false,
                Ok(Err(error)) => {
                    self.print(last.kept())?;
                    return Err(error);
                }
                Err(_) => break true,
            }
            if Instant::now() >= limit {
                break true;
            }
        };
        self.print(last.kept())?;
        Ok(goes_on)
    }

    /// Doubles the window from the end until it contains the last lines.
    async fn last_lines(self, lines: u32) -> Result<LastLines, Error> {
        let mut window = FIRST_WINDOW_BYTES;
        loop {
            let mut last = LastLines::new(lines);
            let mut stream = self.open(window, true, false).await?;
            while let Some(chunk) = self.next(&mut stream).await? {
                last.push(&chunk);
            }
            // A short read is the complete log.
            if last.is_full() || last.pushed_bytes() < window || window >= MAX_WINDOW_BYTES {
                return Ok(last);
            }
            window = window.saturating_mul(8).min(MAX_WINDOW_BYTES);
        }
    }

    async fn open(
        self,
        offset: u64,
        from_end: bool,
        follow: bool,
    ) -> Result<Opened<v1::LogsChunk>, Error> {
        let request = LogsRequest {
            alloc_id: self.alloc_id.to_owned(),
            task: self.task.to_owned(),
            stream: self.stream.into(),
            follow,
            offset,
            from_end,
        };
        self.context.connection.logs(request).await
    }

    async fn next(self, stream: &mut Opened<v1::LogsChunk>) -> Result<Option<Vec<u8>>, Error> {
        let connection = &self.context.connection;
        let chunk = connection.next_chunk(self.task, stream).await?;
        Ok(chunk.map(|chunk| chunk.data))
    }

    fn print(self, bytes: &[u8]) -> Result<(), Error> {
        if self.to_stderr {
            self.context.printer.err_bytes(bytes);
            return Ok(());
        }
        self.context.printer.out_bytes(bytes)
    }
}

fn is_over(alloc: &v1::Allocation, task: &str) -> bool {
    let is_dead = |state: &v1::TaskState| state.state == "dead";
    has_ended(alloc) || alloc.task_states.get(task).is_some_and(is_dead)
}
