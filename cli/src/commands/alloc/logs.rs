//! `kafila alloc logs`
//!
//! [`start`] is the position that the flags ask for; [`reader`] reads one stream of a task.

mod reader;
mod start;

use proto::v1::{self, LogStream};

use self::reader::Reader;
use self::start::Start;
use super::target::{choose_task, of_job};
use crate::args::alloc::Logs;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::{self, Style};
use crate::resolve;

/// A command line that names a task.
const EXAMPLE: &str = "kafila alloc logs ID TASK";

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
        let explain = |log| explain(log, &alloc, &task, &context.style_err(false));
        let mut printed = 0;
        for reader in readers {
            printed += reader
                .read(start)
                .await
                .map_err(|error| match explain(Log::Missing) {
                    // A task that never ran has no logs; the state of the task explains it.
                    Some(remark) if error.is_not_found() => {
                        Error::text(format!("{error}\n{remark}"))
                    }
                    _ => error,
                })?;
        }
        if printed == 0
            && let Some(remark) = explain(Log::Empty {
                read_stderr: args.stderr,
            })
        {
            context.printer.err(&remark);
        }
    }
    Ok(Exit::Success)
}

/// A log without content.
#[derive(Clone, Copy)]
enum Log {
    Empty {
        read_stderr: bool,
    },
    /// The node has none: the task never wrote, or the node has removed the allocation.
    Missing,
}

/// Explains a log without content by the state of its task; `None` if the task runs or ended well.
fn explain(log: Log, alloc: &v1::Allocation, task: &str, style: &Style) -> Option<String> {
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
    let (subject, other) = match log {
        Log::Empty { read_stderr: true } => ("The log is empty, and the task", ""),
        Log::Empty { read_stderr: false } => (
            "The log is empty, and the task",
            ", -stderr its other stream",
        ),
        // The other stream is missing as well.
        Log::Missing => ("The task", ""),
    };
    Some(format!(
        "{subject} does not run{why}: 'kafila alloc status {id}' shows its events{other}."
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

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn args() -> Logs {
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
    fn standard_output_unless_following_or_asked_otherwise() {
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
}
