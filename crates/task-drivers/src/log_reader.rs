//! Reader of a task's output: across its numbered files, from any offset, following growth.
//!
//! Memory is bounded: one chunk at a time, read on demand.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::log_files::{self, LogStream};

/// Upper bound of one read. Source: Nomad's public frame size.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The starting point of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An offset from the start of the oldest file.
    Start(u64),
    /// An offset back from the end of the newest file.
    End(u64),
}

/// One stream of one task.
#[derive(Debug)]
pub struct LogReader {
    logs: PathBuf,
    task: String,
    stream: LogStream,
    /// Number of the current file.
    number: u64,
    position: u64,
}

impl LogReader {
    /// Seeks to `origin`. A task without output is read from its first file once there is one.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(
        logs: PathBuf,
        task: String,
        stream: LogStream,
        origin: Origin,
    ) -> io::Result<Self> {
        let files: Vec<(u64, u64)> = sizes(&logs, &task, stream)?;
        let total: u64 = files.iter().map(|(_, size)| size).sum();
        let mut skip = match origin {
            Origin::Start(offset) => offset.min(total),
            Origin::End(offset) => total.saturating_sub(offset),
        };
        let mut place = (files.first().map_or(0, |(number, _)| *number), 0);
        for (number, size) in files {
            place = (number, skip.min(size));
            if skip <= size {
                break;
            }
            skip -= size;
        }
        Ok(Self {
            logs,
            task,
            stream,
            number: place.0,
            position: place.1,
        })
    }

    /// Returns the next bytes; empty at the current end.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        loop {
            // Checked before reading: a file is complete once a later one exists.
            let later = self.later_file()?;
            let chunk = self.read_file()?;
            if !chunk.is_empty() {
                return Ok(chunk);
            }
            match later {
                Some(number) => (self.number, self.position) = (number, 0),
                None => return Ok(Vec::new()),
            }
        }
    }

    fn later_file(&self) -> io::Result<Option<u64>> {
        let numbers = log_files::numbers(&self.logs, &self.task, self.stream)?;
        Ok(numbers.into_iter().find(|number| *number > self.number))
    }

    /// Reads the current file; empty when rotation has removed it.
    fn read_file(&mut self) -> io::Result<Vec<u8>> {
        let path = log_files::path(&self.logs, &self.task, self.stream, self.number);
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.position))?;
        let mut chunk = Vec::new();
        let limit = u64::try_from(CHUNK_BYTES).unwrap_or(u64::MAX);
        self.position += u64::try_from(file.take(limit).read_to_end(&mut chunk)?).unwrap_or(0);
        Ok(chunk)
    }
}

/// Number → size of each file, ascending.
fn sizes(logs: &Path, task: &str, stream: LogStream) -> io::Result<Vec<(u64, u64)>> {
    let mut sizes = Vec::new();
    for number in log_files::numbers(logs, task, stream)? {
        match std::fs::metadata(log_files::path(logs, task, stream, number)) {
            Ok(found) => sizes.push((number, found.len())),
            // Rotation removed it after the listing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(logs: &Path, number: u64, text: &str) {
        fs::write(
            log_files::path(logs, "web", LogStream::Stdout, number),
            text,
        )
        .unwrap();
    }

    fn open(logs: &Path, origin: Origin) -> LogReader {
        LogReader::open(logs.to_owned(), "web".to_owned(), LogStream::Stdout, origin).unwrap()
    }

    fn rest(reader: &mut LogReader) -> String {
        let mut all = Vec::new();
        loop {
            let chunk = reader.read().unwrap();
            if chunk.is_empty() {
                return String::from_utf8(all).unwrap();
            }
            all.extend(chunk);
        }
    }

    #[test]
    fn reading_starts_at_any_offset_of_any_file() {
        let logs = tempfile::tempdir().unwrap();
        write(logs.path(), 3, "abc");
        write(logs.path(), 4, "def");
        write(logs.path(), 5, "g");
        for (origin, want) in [
            (Origin::Start(0), "abcdefg"),
            (Origin::Start(2), "cdefg"),
            (Origin::Start(3), "defg"),
            (Origin::Start(4), "efg"),
            (Origin::Start(99), ""),
            (Origin::End(0), ""),
            (Origin::End(2), "fg"),
            (Origin::End(99), "abcdefg"),
        ] {
            assert_eq!(rest(&mut open(logs.path(), origin)), want, "{origin:?}");
        }
    }

    #[test]
    fn reading_goes_on_across_rotation() {
        let logs = tempfile::tempdir().unwrap();
        let mut reader = open(logs.path(), Origin::Start(0));
        assert_eq!(rest(&mut reader), "", "no output yet");
        write(logs.path(), 0, "ab");
        assert_eq!(rest(&mut reader), "ab");
        write(logs.path(), 0, "abcd");
        write(logs.path(), 1, "ef");
        assert_eq!(rest(&mut reader), "cdef");
        fs::remove_file(log_files::path(logs.path(), "web", LogStream::Stdout, 1)).unwrap();
        write(logs.path(), 3, "gh");
        assert_eq!(
            rest(&mut reader),
            "gh",
            "a file that rotation removed is skipped"
        );
    }

    #[test]
    fn a_chunk_is_bounded() {
        let logs = tempfile::tempdir().unwrap();
        write(logs.path(), 0, &"x".repeat(CHUNK_BYTES + 1));
        let mut reader = open(logs.path(), Origin::Start(0));
        assert_eq!(reader.read().unwrap().len(), CHUNK_BYTES);
        assert_eq!(reader.read().unwrap().len(), 1);
        assert!(
            LogReader::open(
                "/no/such".into(),
                "web".into(),
                LogStream::Stdout,
                Origin::Start(0)
            )
            .is_err()
        );
    }
}
