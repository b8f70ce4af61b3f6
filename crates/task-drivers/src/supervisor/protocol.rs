//! Protocol between agent and supervisor: one JSON object per line, over a unix socket.
//!
//! Supervisors live longer than agents, so an agent must understand those of two versions before:
//! fields are only added, with defaults, and [`VERSION`] goes up when a meaning changes.

use std::io::{self, BufRead, Write};

use model::ExitResult;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) const VERSION: u32 = 1;
/// The socket's name in the supervisor's directory.
pub(crate) const SOCKET: &str = "control.sock";
/// Limit of a line: replies carry at most an error text.
pub(crate) const MAX_LINE_BYTES: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Answered by [`Reply::Pong`].
    Ping { version: u32 },
    /// Answered by [`Reply::Started`] or [`Reply::StartFailed`] as soon as it is known, any number
    /// of [`Reply::Message`], then [`Reply::Exited`].
    Watch { version: u32 },
    /// Ends the task; answered by [`Reply::Done`] when it and all its children are gone, or by
    /// [`Reply::Refused`] when they cannot be killed.
    Stop {
        version: u32,
        signal: String,
        grace_ms: u64,
    },
    /// Answered by [`Reply::Done`] or [`Reply::Refused`].
    Signal { version: u32, signal: String },
    /// Ends the supervisor, if the task has ended; answered by [`Reply::Done`].
    Forget { version: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum Reply {
    Pong {
        version: u32,
        supervisor_pid: u32,
        #[serde(default)]
        task_pid: Option<i32>,
        #[serde(default)]
        log_dropped_bytes: u64,
    },
    Started {
        pid: i32,
    },
    StartFailed {
        message: String,
        recoverable: bool,
    },
    Message {
        text: String,
    },
    Exited {
        exit: ExitResult,
    },
    Done,
    Refused {
        reason: String,
    },
}

pub(crate) fn write_line<T: Serialize>(writer: &mut impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    writer.write_all(&line)
}

/// Reads one message; `None` at the end of the stream.
pub(crate) fn read_line<T: DeserializeOwned>(reader: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    io::Read::take(&mut *reader, MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_079_messages_are_lines_and_unknown_fields_of_a_newer_side_are_ignored() {
        let stop = Request::Stop {
            version: 1,
            signal: "SIGTERM".into(),
            grace_ms: 5,
        };
        let mut bytes = Vec::new();
        write_line(&mut bytes, &stop).unwrap();
        write_line(&mut bytes, &Request::Ping { version: 1 }).unwrap();
        bytes.extend_from_slice(b"{\"op\":\"forget\",\"version\":9,\"hurry\":true}\n");
        let mut reader = bytes.as_slice();
        assert_eq!(read_line(&mut reader).unwrap(), Some(stop));
        assert_eq!(
            read_line(&mut reader).unwrap(),
            Some(Request::Ping { version: 1 })
        );
        assert_eq!(
            read_line(&mut reader).unwrap(),
            Some(Request::Forget { version: 9 })
        );
        assert_eq!(read_line::<Request>(&mut reader).unwrap(), None);
        assert!(read_line::<Request>(&mut b"nonsense\n".as_slice()).is_err());
    }
}
