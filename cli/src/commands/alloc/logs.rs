//! `kafila alloc logs`

use std::time::Duration;

use kafila_client::Opened;
use proto::v1::{self, LogStream};
use tokio::time::{Instant, timeout_at};

use super::status::job_of;
use super::tail::LastLines;
use crate::alloc_state::has_ended;
use crate::args::alloc::Logs;
use crate::connection::LogsRequest;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{self, Style};
use crate::resolve;
use crate::retries::{self, MAX_RETRIES};

/// Lines of `-tail` without -n or -c. Source: Nomad's command line.
const DEFAULT_TAIL_LINES: u32 = 10;

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

/// A command line that names a task.
const EXAMPLE: &str = "kafila alloc logs ID TASK";

/// Start position in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Beginning,
    LastBytes(u64),
    LastLines(u32),
}

impl Start {
    fn of(args: &Logs) -> Self {
        match (args.bytes, args.lines) {
            (Some(bytes), _) => Self::LastBytes(bytes),
            (None, Some(lines)) => Self::LastLines(lines),
            (None, None) if args.tail => Self::LastLines(DEFAULT_TAIL_LINES),
            (None, None) => Self::Beginning,
        }
    }
}

/// Returns the streams to read: standard output by default, both with -f.
fn streams(args: &Logs) -> &'static [LogStream] {
    match (args.stdout, args.stderr, args.follow) {
        (true, true, _) | (false, false, true) => &[LogStream::Stdout, LogStream::Stderr],
        (false, true, _) => &[LogStream::Stderr],
        (true, false, _) | (false, false, false) => &[LogStream::Stdout],
    }
}

pub(crate) async fn run(context: &Context, args: &Logs) -> Result<Exit, Error> {
    let (alloc, task) = find(context, args).await?;
    let task = choose_task(context, &alloc, task, args.job.is_some(), EXAMPLE).await?;
    let (start, streams) = (Start::of(args), streams(args));
    let readers = streams.iter().map(|stream| Reader {
        context,
        alloc_id: &alloc.id,
        task: &task,
        stream: *stream,
        // A single stream goes to standard output, so that it can be piped.
        to_stderr: streams.len() > 1 && *stream == LogStream::Stderr,
    });
    if args.follow {
        let following = readers.map(|reader| async move { reader.follow(start).await });
        futures::future::try_join_all(following).await?;
    } else {
        let silence = || of_silence(&alloc, &task, args.stderr, &context.style_err(false));
        let mut printed = 0;
        for reader in readers {
            printed += reader.read(start).await.map_err(|error| match silence() {
                // A task that never ran has no logs; the state of the task explains it.
                Some(remark) if error.is_not_found() => Error::text(format!("{error}\n{remark}")),
                _ => error,
            })?;
        }
        if printed == 0
            && let Some(remark) = silence()
        {
            context.printer.err(&remark);
        }
    }
    Ok(Exit::Success)
}

/// Explains an empty log of a task that does not run.
fn of_silence(
    alloc: &v1::Allocation,
    task: &str,
    read_stderr: bool,
    style: &Style,
) -> Option<String> {
    let state = alloc.task_states.get(task);
    let runs = state.is_some_and(|state| state.state == "running");
    let ended_well = state.is_some_and(|state| state.state == "dead" && !state.failed);
    if runs || ended_well {
        return None;
    }
    let id = style.id(&alloc.id);
    if render::task::state_word(state) == "pending" && state.is_none_or(|state| state.restarts == 0)
    {
        return Some(format!(
            "The log is empty, because task {task:?} has not started yet: 'kafila alloc status {id}' \
             shows the events of all tasks."
        ));
    }
    let why = match render::task::failure_of(alloc, task) {
        Some(reason) => format!(" ({reason})"),
        None => String::new(),
    };
    let other = if read_stderr {
        ""
    } else {
        ", -stderr its other stream"
    };
    Some(format!(
        "The log is empty, and the task does not run{why}: 'kafila alloc status {id}' \
         shows its events{other}."
    ))
}

/// Returns the allocation, and the task if one is given.
async fn find<'a>(
    context: &Context,
    args: &'a Logs,
) -> Result<(v1::Allocation, Option<&'a str>), Error> {
    let flag = args.task_flag.as_deref();
    let Some(job) = &args.job else {
        let prefix = args.id.as_deref().unwrap_or_default();
        let style = context.style_err(false);
        let found = resolve::allocation(&context.connection, prefix, &style).await;
        let alloc = found.map_err(|error| with_job_hint(error, prefix))?;
        return Ok((alloc, flag.or(args.task.as_deref())));
    };
    if args.id.is_some() && args.task.is_some() {
        return Err(Error::text(
            "With -job there is no allocation to name: kafila alloc logs -job JOB [TASK]",
        ));
    }
    let alloc = of_job(context, job, args.group.as_deref()).await?;
    Ok((alloc, flag.or(args.id.as_deref())))
}

/// Adds to an error about an argument that can be no id of an allocation how to read a job's log.
fn with_job_hint(error: Error, argument: &str) -> Error {
    let may_be_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if argument.bytes().all(may_be_id) {
        return error;
    }
    Error::text(format!(
        "{error}\nFor the log of a job's newest allocation: kafila logs -job {argument}"
    ))
}

/// Returns the newest running allocation of a job, or the newest if none runs.
pub(crate) async fn of_job(
    context: &Context,
    job: &str,
    group: Option<&str>,
) -> Result<v1::Allocation, Error> {
    let connection = &context.connection;
    let style = context.style_err(false);
    let job = resolve::job(connection, job, &style).await?;
    let mut allocs = connection
        .job_allocations(&job.namespace, &job.id, false)
        .await?;
    if let Some(group) = group {
        allocs.retain(|alloc| alloc.task_group == group);
    }
    let newest = allocs
        .into_iter()
        .max_by_key(|alloc| (alloc.client_status == "running", alloc.create_index));
    let Some(alloc) = newest else {
        let of_group = group
            .map(|group| format!(" of group {group:?}"))
            .unwrap_or_default();
        let says = if job.parameterized || job.periodic {
            "lists its children, which have the allocations: kafila logs -job CHILD"
        } else {
            "says why"
        };
        return Err(Error::text(format!(
            "No allocations{of_group} placed for job {:?}\n'kafila job status {}' {says}.",
            job.id, job.id
        )));
    };
    context.printer.err(&format!(
        "Allocation {}",
        render::alloc::one_line(&alloc, &style)
    ));
    Ok(alloc)
}

pub(super) async fn choose_task(
    context: &Context,
    alloc: &v1::Allocation,
    named: Option<&str>,
    of_job: bool,
    example: &str,
) -> Result<String, Error> {
    let job = job_of(&context.connection, alloc).await?;
    let groups = job.iter().flat_map(|job| &job.task_groups);
    let group = groups
        .clone()
        .find(|group| group.name() == alloc.task_group);
    let names = render::task::names(alloc, group);
    let short = context.style_err(false).id(&alloc.id);
    let example_of = |task: &str| example.replace("ID", &short).replace("TASK", task);
    match (named, &names[..]) {
        (Some(named), names) if names.is_empty() || names.iter().any(|name| name == named) => {
            Ok(named.to_owned())
        }
        (Some(named), names) => {
            let hint = if of_job && resolve::looks_like_id(named) {
                "\nIf it is the id of an allocation: leave out -job, which chooses one itself."
            } else {
                ""
            };
            Err(Error::text(format!(
                "No task {named:?} in allocation {short:?}\nIts tasks are: {}.{hint}",
                names.join(", ")
            )))
        }
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(Error::text(format!(
            "Allocation {short:?} tells of no task: name one, as in {}",
            example_of("TASK")
        ))),
        (None, names) => Err(Error::text(format!(
            "Allocation {short:?} is running the following tasks:\n  * {}\n\
             Please specify the task, as in {}",
            names.join("\n  * "),
            example_of(&names[0])
        ))),
    }
}

fn is_over(alloc: &v1::Allocation, task: &str) -> bool {
    let is_dead = |state: &v1::TaskState| state.state == "dead";
    has_ended(alloc) || alloc.task_states.get(task).is_some_and(is_dead)
}

/// One output stream of one task.
#[derive(Clone, Copy)]
struct Reader<'a> {
    context: &'a Context,
    alloc_id: &'a str,
    task: &'a str,
    stream: LogStream,
    to_stderr: bool,
}

impl Reader<'_> {
    /// Prints the existing output; returns its size in bytes.
    async fn read(self, start: Start) -> Result<usize, Error> {
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
    async fn follow(self, start: Start) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Logs {
        Logs {
            id: Some("8a3f".to_owned()),
            task: None,
            follow: false,
            tail: false,
            lines: None,
            bytes: None,
            stderr: false,
            stdout: false,
            task_flag: None,
            job: None,
            group: None,
        }
    }

    #[test]
    fn standard_output_unless_following_or_told_otherwise() {
        const OUT: LogStream = LogStream::Stdout;
        const ERR: LogStream = LogStream::Stderr;
        let table: [(bool, bool, bool, &[LogStream]); 7] = [
            (false, false, false, &[OUT]),
            (false, false, true, &[OUT, ERR]),
            (true, false, true, &[OUT]),
            (false, true, true, &[ERR]),
            (false, true, false, &[ERR]),
            (true, false, false, &[OUT]),
            (true, true, false, &[OUT, ERR]),
        ];
        for (stdout, stderr, follow, expected) in table {
            let args = Logs {
                stdout,
                stderr,
                follow,
                ..args()
            };
            assert_eq!(streams(&args), expected, "{args:?}");
        }
    }

    #[test]
    fn a_number_of_lines_or_bytes_means_the_end() {
        assert_eq!(Start::of(&args()), Start::Beginning);
        assert_eq!(
            Start::of(&Logs {
                tail: true,
                ..args()
            }),
            Start::LastLines(10)
        );
        let lines = Logs {
            lines: Some(3),
            ..args()
        };
        assert_eq!(Start::of(&lines), Start::LastLines(3));
        let bytes = Logs {
            tail: true,
            bytes: Some(9),
            ..args()
        };
        assert_eq!(Start::of(&bytes), Start::LastBytes(9));
    }
}
