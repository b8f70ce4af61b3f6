//! `kafila alloc exec`

use std::io::{self, IsTerminal as _, Read as _};
use std::thread;

use futures::stream::unfold;
use proto::v1;
use proto::v1::exec_input::Input;
use proto::v1::exec_output::Output;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::escape::Escape;
use super::target::{choose_task, of_job};
use super::tty::{self, RawMode};
use crate::args::alloc::Exec;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

/// Parts of input that wait for the command.
const PARTS: usize = 4;
/// Bytes of one part of input.
const PART_BYTES: usize = 32 << 10;
/// A command line that names a task.
const EXAMPLE: &str = "kafila alloc exec -task TASK ID COMMAND";

/// The input and the terminal of a command.
pub(crate) struct Session {
    pub(crate) interactive: bool,
    /// `None`: a terminal if input and output are one.
    pub(crate) terminal: Option<bool>,
    pub(crate) escape: crate::args::Escape,
}

pub(crate) async fn run(context: &Context, args: &Exec) -> Result<Exit, Error> {
    let session = Session {
        interactive: args.interactive,
        terminal: args.terminal,
        escape: args.escape,
    };
    session
        .run(context, async || start(context, args).await)
        .await
}

impl Session {
    /// Runs a command to its end. `start` returns its first message, without the terminal.
    pub(crate) async fn run(
        &self,
        context: &Context,
        start: impl AsyncFnOnce() -> Result<v1::ExecStart, Error>,
    ) -> Result<Exit, Error> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        // A terminal without input is of no use.
        let terminal = self.terminal.unwrap_or(is_terminal && self.interactive);
        if terminal && !self.interactive {
            return Err(Error::text("-i must be enabled if running with tty"));
        }
        if terminal && !io::stdin().is_terminal() {
            return Err(Error::text(
                "Standard input is not a terminal: leave out -t, and the command reads its text",
            ));
        }
        let start = v1::ExecStart {
            terminal: terminal.then(tty::size),
            ..start().await?
        };
        let (sender, inputs) = mpsc::channel(PARTS);
        // The first message; the queue is empty.
        let _ = sender.send(message(Input::Start(start))).await;
        let inputs = unfold(inputs, |mut inputs| async {
            inputs.recv().await.map(|input| (input, inputs))
        });
        let mut outputs = context.connection.exec(inputs).await?;
        let raw = terminal.then(RawMode::enter).transpose();
        let raw = raw.map_err(|error| Error::text(format!("Cannot use the terminal: {error}")))?;
        let (detach, mut detached) = mpsc::channel(1);
        if self.interactive {
            let escape = Escape::new(self.escape.0.filter(|_| terminal));
            let sender = sender.clone();
            // A thread that waits for input does not delay the end of this command.
            thread::spawn(move || read_input(escape, &sender, &detach));
        } else {
            let _ = sender.send(message(Input::Stdin(Vec::new()))).await;
        }
        if terminal {
            tokio::spawn(watch_size(sender));
        }
        loop {
            let output = tokio::select! {
                output = context.connection.next_output(&mut outputs) => output?,
                Some(()) = detached.recv() => {
                    drop(raw);
                    context.printer.err("Session ended; the command is killed.");
                    return Ok(Exit::Interrupted);
                }
            };
            match output.and_then(|message| message.output) {
                Some(Output::Stdout(data)) => context.printer.out_bytes(&data)?,
                Some(Output::Stderr(data)) => context.printer.err_bytes(&data),
                Some(Output::ExitCode(code)) => {
                    return Ok(Exit::OfCommand(u8::try_from(code).unwrap_or(u8::MAX)));
                }
                None => return Err(Error::text("The command ended without an exit code")),
            }
        }
    }
}

/// Returns the first message: the allocation, its task, and the command.
async fn start(context: &Context, args: &Exec) -> Result<v1::ExecStart, Error> {
    let (alloc, command) = match &args.job {
        Some(job) => (
            of_job(context, job, args.group.as_deref()).await?,
            &args.words[..],
        ),
        None => {
            let (id, command) = args.words.split_first().expect("clap requires one");
            if id.trim().is_empty() {
                // It would be a prefix of every id.
                return Err(Error::text(
                    "The allocation's ID is empty; is a variable of the shell unset?",
                ));
            }
            let style = context.style_err(false);
            let alloc = resolve::allocation(&context.connection, id, &style).await?;
            (alloc, command)
        }
    };
    if command.is_empty() {
        return Err(Error::text(
            "A command is required, as in kafila alloc exec ID sh",
        ));
    }
    let named = args.task.as_deref();
    let task = choose_task(context, &alloc, named, args.job.is_some(), EXAMPLE).await?;
    Ok(v1::ExecStart {
        alloc_id: alloc.id,
        task,
        command: command.to_vec(),
        ..v1::ExecStart::default()
    })
}

fn message(input: Input) -> v1::ExecInput {
    v1::ExecInput { input: Some(input) }
}

/// Sends standard input until its end, or until the user ends the session.
fn read_input(mut escape: Escape, sender: &mpsc::Sender<v1::ExecInput>, detach: &mpsc::Sender<()>) {
    let mut buffer = vec![0; PART_BYTES];
    let mut stdin = io::stdin().lock();
    loop {
        let count = match stdin.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        let (text, ends) = escape.read(&buffer[..count]);
        if ends {
            // The session may have ended by itself.
            let _ = detach.blocking_send(());
            return;
        }
        // Empty: the end of the input. Held back characters alone are not sent.
        if (count == 0 || !text.is_empty())
            && sender.blocking_send(message(Input::Stdin(text))).is_err()
        {
            return;
        }
        if count == 0 {
            return;
        }
    }
}

/// Passes changes of the terminal's size on.
async fn watch_size(sender: mpsc::Sender<v1::ExecInput>) {
    let Ok(mut changes) = signal(SignalKind::window_change()) else {
        return;
    };
    while changes.recv().await.is_some() {
        let size = message(Input::TerminalSize(tty::size()));
        if sender.send(size).await.is_err() {
            return;
        }
    }
}
