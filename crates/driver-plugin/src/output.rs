//! Lines that a plugin prints, in the agent's log.
//!
//! Plugins in Go print a JSON object a line (hclog), with `@level` and `@message`. Lines are bounded in length
//! and in number.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

/// Bytes of a line that are logged; a longer one is cut.
const LINE_BYTES_MAX: usize = 8 << 10;
/// Lines of a second that are logged: more would fill the disk.
const LINES_A_SECOND: u32 = 100;
/// Last lines that are kept for the message about a failed start, and their length.
const TAIL_LINES: usize = 5;
const TAIL_BYTES: usize = 300;

/// The last lines of a plugin. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<Vec<String>>>);

impl Tail {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.remove(0);
        }
        lines.push(line.chars().take(TAIL_BYTES).collect());
    }

    /// Returns the lines for a message; empty: there were none.
    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.join(" / ")
    }
}

/// Logs the lines of `source` until its end.
pub(crate) async fn follow(plugin: &str, source: impl AsyncRead + Unpin, tail: &Tail) {
    let mut source = BufReader::new(source);
    let mut limit = Limit::default();
    loop {
        let mut line = Vec::new();
        match read_line(&mut source, &mut line, LINE_BYTES_MAX).await {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let line = Line::parse(line);
        tail.push(&line.message);
        if limit.admits(plugin) {
            line.log(plugin);
        }
    }
}

/// Reads a line without its end; what is beyond `most` bytes is dropped. Returns `false` at the end.
pub(crate) async fn read_line(
    source: &mut (impl tokio::io::AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    most: usize,
) -> std::io::Result<bool> {
    let mut is_any = false;
    loop {
        let part = source.fill_buf().await?;
        if part.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = part.iter().position(|byte| *byte == b'\n');
        let text = &part[..end.unwrap_or(part.len())];
        let room = most.saturating_sub(line.len()).min(text.len());
        line.extend_from_slice(&text[..room]);
        let used = end.map_or(part.len(), |end| end + 1);
        source.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// The number of lines of the current second.
#[derive(Default)]
struct Limit {
    began: Option<Instant>,
    lines: u32,
}

impl Limit {
    fn admits(&mut self, plugin: &str) -> bool {
        let is_new = self
            .began
            .is_none_or(|began| began.elapsed().as_secs() >= 1);
        if is_new {
            let dropped = self.lines.saturating_sub(LINES_A_SECOND);
            if dropped > 0 {
                warn!(
                    plugin,
                    dropped, "lines of a plugin were not logged: too many"
                );
            }
            (self.began, self.lines) = (Some(Instant::now()), 0);
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= LINES_A_SECOND
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    level: Level,
    message: String,
}

impl Line {
    fn parse(line: &str) -> Self {
        if let Ok(Value::Object(fields)) = serde_json::from_str(line)
            && let Some(found) = Self::of_hclog(&fields)
        {
            return found;
        }
        // Source: go-plugin's behaviour: other lines are for its authors, except for the end of a program.
        let is_panic = line.starts_with("panic:") || line.starts_with("fatal error:");
        Self {
            level: if is_panic { Level::Error } else { Level::Debug },
            message: line.to_owned(),
        }
    }

    fn of_hclog(fields: &Map<String, Value>) -> Option<Self> {
        let message = fields.get("@message")?.as_str()?;
        let level = match fields.get("@level").and_then(Value::as_str) {
            Some("error") => Level::Error,
            Some("warn") => Level::Warn,
            Some("info") => Level::Info,
            _ => Level::Debug,
        };
        let mut message = message.to_owned();
        for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with('@')) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            message.push_str(&format!(" {name}={value}"));
        }
        Some(Self { level, message })
    }

    fn log(&self, plugin: &str) {
        let message = self.message.as_str();
        match self.level {
            Level::Debug => debug!(plugin, "{message}"),
            Level::Info => info!(plugin, "{message}"),
            Level::Warn => warn!(plugin, "{message}"),
            Level::Error => error!(plugin, "{message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_level_of_the_plugin() {
        for (line, level, message) in [
            (
                r#"{"@level":"warn","@message":"no image","@module":"x","name":"a","tries":3}"#,
                Level::Warn,
                "no image name=a tries=3",
            ),
            (r#"{"@level":"trace","@message":"x"}"#, Level::Debug, "x"),
            (r#"{"level":"warn"}"#, Level::Debug, r#"{"level":"warn"}"#),
            ("plain", Level::Debug, "plain"),
            ("panic: nil", Level::Error, "panic: nil"),
        ] {
            let want = Line {
                level,
                message: message.to_owned(),
            };
            assert_eq!(Line::parse(line), want);
        }
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = format!("{}\nshort\nlast", "x".repeat(100_000));
        let mut source = BufReader::new(text.as_bytes());
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            if !read_line(&mut source, &mut line, 10).await.unwrap() {
                break;
            }
            lines.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(lines, ["xxxxxxxxxx", "short", "last"]);
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_for_a_message() {
        let tail = Tail::default();
        let text: String = (1..=9).map(|line| format!("line {line}\n")).collect();
        follow("x", text.as_bytes(), &tail).await;
        assert_eq!(tail.text(), "line 5 / line 6 / line 7 / line 8 / line 9");
    }
}
