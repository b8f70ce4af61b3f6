//! Log files: a task's output in numbered files of bounded size, `<task>.stdout.0` and so on.
//!
//! Numbers only grow, the oldest files are removed, and a line shorter than
//! [`LINE_WINDOW_BYTES`] is never split. [`crate::log_reader`] reads them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Bytes that a file may stay below its limit to keep a line whole. Source: Nomad 2.0 behaviour.
const LINE_WINDOW_BYTES: u64 = 32 * 1024;

/// One of a task's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    Stdout,
    Stderr,
}

impl LogStream {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Returns the path of one file of a task's stream.
pub fn path(logs: &Path, task: &str, stream: LogStream, number: u64) -> PathBuf {
    logs.join(format!("{task}.{}.{number}", stream.as_str()))
}

/// Lists the numbers of the files of a task's stream, ascending.
///
/// # Errors
/// The directory cannot be read.
pub fn numbers(logs: &Path, task: &str, stream: LogStream) -> io::Result<Vec<u64>> {
    let prefix = format!("{task}.{}.", stream.as_str());
    let mut numbers = Vec::new();
    for entry in fs::read_dir(logs)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// End of a stream's output: a file and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePosition {
    pub number: u64,
    pub bytes: u64,
}

/// Returns how many bytes of a task's stream lie behind a position.
pub fn bytes_since(logs: &Path, task: &str, stream: LogStream, since: FilePosition) -> u64 {
    let length = |number| fs::metadata(path(logs, task, stream, number)).map_or(0, |it| it.len());
    let numbers = numbers(logs, task, stream).unwrap_or_default();
    let later = numbers.into_iter().filter(|number| *number > since.number);
    let rest = length(since.number).saturating_sub(since.bytes);
    rest + later.map(length).sum::<u64>()
}

/// Writer of one stream of one task.
#[derive(Debug)]
pub struct RotatingLog {
    logs: PathBuf,
    task: String,
    stream: LogStream,
    max_file_bytes: u64,
    max_files: u64,
    number: u64,
    /// `None` after an error; the next write reopens it.
    file: Option<File>,
    file_bytes: u64,
    dropped_bytes: u64,
}

impl RotatingLog {
    /// Continues the newest file. No file is opened before the first write.
    pub fn new(
        logs: &Path,
        task: &str,
        stream: LogStream,
        max_files: u32,
        max_file_bytes: u64,
    ) -> Self {
        let newest = numbers(logs, task, stream)
            .ok()
            .and_then(|numbers| numbers.last().copied());
        Self {
            logs: logs.to_owned(),
            task: task.to_owned(),
            stream,
            max_file_bytes: max_file_bytes.max(1),
            max_files: u64::from(max_files.max(1)),
            number: newest.unwrap_or(0),
            file: None,
            file_bytes: 0,
            dropped_bytes: 0,
        }
    }

    /// Creates the file, so that a stream without output has an empty one. An error comes again with the first
    /// write, which can tell it. The file stays closed, because a directory that vanishes before the first write
    /// would not be noticed.
    #[must_use]
    pub fn begin(mut self) -> Self {
        let _ = self.open();
        self.file = None;
        self
    }

    /// Returns the end of the output.
    pub fn position(&self) -> FilePosition {
        let bytes = match &self.file {
            Some(_) => self.file_bytes,
            None => {
                let path = path(&self.logs, &self.task, self.stream, self.number);
                fs::metadata(path).map_or(0, |file| file.len())
            }
        };
        FilePosition {
            number: self.number,
            bytes,
        }
    }

    /// Returns the number of bytes lost to write errors.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    /// Writes `bytes`, or drops and counts them: a full disk must not stop the task.
    ///
    /// Returns the error, if there was one.
    pub fn write(&mut self, bytes: &[u8]) -> Option<io::Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = self.open().and_then(|()| {
                if self.file_bytes >= self.max_file_bytes {
                    self.rotate();
                    return Ok(0);
                }
                let (length, is_last) = self.next_piece(rest);
                self.append(&rest[..length])?;
                if is_last {
                    self.rotate();
                }
                Ok(length)
            });
            match written {
                Ok(length) => rest = &rest[length..],
                Err(error) => {
                    self.file = None;
                    self.dropped_bytes += u64::try_from(rest.len()).unwrap_or(u64::MAX);
                    return Some(error);
                }
            }
        }
        None
    }

    fn open(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let path = path(&self.logs, &self.task, self.stream, self.number);
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        self.file_bytes = file.metadata()?.len();
        self.file = Some(file);
        self.purge();
        Ok(())
    }

    /// Returns the length of the prefix of `bytes` for this file, and whether the file is then complete.
    fn next_piece(&self, bytes: &[u8]) -> (usize, bool) {
        let space = usize::try_from(self.max_file_bytes - self.file_bytes).unwrap_or(usize::MAX);
        let window = self.max_file_bytes.saturating_sub(LINE_WINDOW_BYTES);
        let fitting = &bytes[..bytes.len().min(space)];
        let end = self.file_bytes + u64::try_from(fitting.len()).unwrap_or(u64::MAX);
        // Small files have no room for a window; they are split where they are full.
        if end <= window || window == 0 {
            return (fitting.len(), end >= self.max_file_bytes);
        }
        match fitting.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => (newline + 1, true),
            None => (fitting.len(), end >= self.max_file_bytes),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.write_all(bytes)?;
        self.file_bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn rotate(&mut self) {
        self.number += 1;
        self.file = None;
        self.file_bytes = 0;
    }

    /// Removes files beyond the limit. A failed removal is retried with the next file.
    fn purge(&self) {
        for number in numbers(&self.logs, &self.task, self.stream).unwrap_or_default() {
            if number + self.max_files <= self.number {
                let _ = fs::remove_file(path(&self.logs, &self.task, self.stream, number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(logs: &Path, number: u64) -> String {
        fs::read_to_string(path(logs, "web", LogStream::Stdout, number)).unwrap()
    }

    fn log(logs: &Path, max_files: u32, max_file_bytes: u64) -> RotatingLog {
        RotatingLog::new(logs, "web", LogStream::Stdout, max_files, max_file_bytes)
    }

    #[test]
    fn files_are_bounded_in_size_and_number() {
        let logs = tempfile::tempdir().unwrap();
        let mut log = log(logs.path(), 2, 4);
        assert!(log.write(b"abcdefghij").is_none());
        assert_eq!(
            numbers(logs.path(), "web", LogStream::Stdout).unwrap(),
            [1, 2]
        );
        assert_eq!(
            (read(logs.path(), 1), read(logs.path(), 2)),
            ("efgh".into(), "ij".into())
        );
        assert!(
            numbers(logs.path(), "web", LogStream::Stderr)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_stream_without_output_has_an_empty_file() {
        let logs = tempfile::tempdir().unwrap();
        let begun = log(logs.path(), 2, 4).begin();
        assert_eq!(read(logs.path(), 0), "");
        assert_eq!(begun.position(), FilePosition::default());
        // A later attempt goes on in the newest file.
        log(logs.path(), 2, 4).write(b"abcdef");
        let mut next = log(logs.path(), 2, 4).begin();
        next.write(b"g");
        assert_eq!(read(logs.path(), 1), "efg");
    }

    #[test]
    fn positions_measure_what_was_written_since() {
        let logs = tempfile::tempdir().unwrap();
        let mut log = log(logs.path(), 9, 4);
        let start = log.position();
        log.write(b"abcdef");
        let middle = log.position();
        assert_eq!(
            middle,
            FilePosition {
                number: 1,
                bytes: 2
            }
        );
        log.write(b"ghijk");
        let since = |position| bytes_since(logs.path(), "web", LogStream::Stdout, position);
        assert_eq!((since(start), since(middle)), (11, 5));
        assert_eq!(since(log.position()), 0);
    }

    #[test]
    fn a_new_writer_goes_on_in_the_newest_file() {
        let logs = tempfile::tempdir().unwrap();
        log(logs.path(), 3, 4).write(b"abcde");
        log(logs.path(), 3, 4).write(b"fgh");
        log(logs.path(), 3, 4).write(b"i");
        assert_eq!(read(logs.path(), 0), "abcd");
        assert_eq!(read(logs.path(), 1), "efgh");
        assert_eq!(read(logs.path(), 2), "i");
    }

    #[test]
    fn scenario_055_no_line_is_split_and_no_file_is_too_long() {
        let logs = tempfile::tempdir().unwrap();
        let max = 100 * 1024;
        let mut log = log(logs.path(), 100, max);
        let mut expected = Vec::new();
        let mut pending = Vec::new();
        // Lines of 1 to 32,000 bytes, written in chunks regardless of line ends.
        for number in 0_usize..200 {
            let line = format!("{number} {}\n", "x".repeat(number * 7919 % 32_000));
            expected.extend_from_slice(line.as_bytes());
            pending.extend_from_slice(line.as_bytes());
            while pending.len() > 10_000 {
                log.write(&pending.drain(..10_000).collect::<Vec<u8>>());
            }
        }
        log.write(&pending);
        let mut all = Vec::new();
        let files = numbers(logs.path(), "web", LogStream::Stdout).unwrap();
        for number in &files {
            let text = read(logs.path(), *number);
            assert!(text.len() as u64 <= max, "{number}");
            assert!(text.ends_with('\n'), "file {number} ends within a line");
            all.extend_from_slice(text.as_bytes());
        }
        assert!(files.len() > 10);
        assert!(all == expected, "nothing lost, nothing twice");
    }

    #[test]
    fn a_line_without_end_is_cut_where_the_file_is_full() {
        let logs = tempfile::tempdir().unwrap();
        let max = 64 * 1024;
        let mut log = log(logs.path(), 10, max);
        log.write(&vec![b'x'; 150 * 1024]);
        let sizes: Vec<usize> = (0..3)
            .map(|number| read(logs.path(), number).len())
            .collect();
        assert_eq!(sizes, [64 * 1024, 64 * 1024, 22 * 1024]);
    }

    #[test]
    fn scenario_056_lost_output_is_counted_and_the_next_write_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let mut log = log(&logs, 2, 100);
        assert!(log.write(b"lost").is_some());
        assert!(log.write(b"too").is_some());
        assert_eq!(log.dropped_bytes(), 7);
        fs::create_dir(&logs).unwrap();
        assert!(log.write(b"kept").is_none());
        assert_eq!(read(&logs, 0), "kept");
        assert_eq!(log.dropped_bytes(), 7);
    }
}
