//! Commands beside running tasks: their command line, their input and their output.

use tokio::sync::mpsc;

/// Largest part of input or output, in bytes: the capacity of a pipe.
pub const PART_BYTES: usize = 64 << 10;
/// Parts that wait for a slow command, and for a slow reader: 512 KiB in each direction.
pub const PARTS: usize = 8;

/// The size of a terminal in characters. 0: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// A command beside a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecCommand {
    /// The program and its arguments; never empty.
    pub line: Vec<String>,
    /// `None`: no terminal.
    pub terminal: Option<TerminalSize>,
}

/// Input of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecInput {
    Stdin(Vec<u8>),
    EndOfStdin,
    Resize(TerminalSize),
}

/// Output of a command; on a terminal all of it is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecOutput {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

/// The ends of a command's input and output that its driver holds.
#[derive(Debug)]
pub struct ExecIo {
    /// The end of the queue is the end of the input.
    pub input: mpsc::Receiver<ExecInput>,
    /// Closed: the caller is gone, and the command is to be killed.
    pub output: mpsc::Sender<ExecOutput>,
}
