//! The part of a download: its bytes so far, and the validators of its content.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};

use super::client::HttpFailure;
use crate::wire::{PART, Validators};

/// The validators of the part's content.
const ABOUT: &str = "part.json";

pub(super) struct Part {
    pub(super) file: File,
    pub(super) bytes: u64,
    about: Validators,
}

impl Part {
    /// Opens the part of an earlier attempt, or a new one. `has_checksum`: a part without validators may
    /// be continued, because a mixed content would be noticed.
    pub(super) fn open(has_checksum: bool) -> Result<Self, HttpFailure> {
        Self::read(has_checksum).map_err(|error| failed(&error))
    }

    fn read(has_checksum: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(PART)?;
        let about = fs::read(ABOUT).ok();
        let about = about.and_then(|bytes| serde_json::from_slice::<Validators>(&bytes).ok());
        let about = about.unwrap_or_default();
        let mut part = Self {
            file,
            bytes: 0,
            about,
        };
        if has_checksum || part.condition().is_some() {
            part.bytes = part.file.seek(SeekFrom::End(0))?;
        }
        Ok(part)
    }

    /// Returns the validator that `If-Range` may have. A weak tag is not one.
    fn condition(&self) -> Option<&String> {
        let etag = self.about.etag.as_ref();
        let strong = etag.filter(|etag| !etag.starts_with("W/"));
        strong.or(self.about.modified.as_ref())
    }

    /// Returns the headers that ask for the rest.
    pub(super) fn continuation(&self) -> Vec<(&'static str, String)> {
        if self.bytes == 0 {
            return Vec::new();
        }
        let range = ("range", format!("bytes={}-", self.bytes));
        let condition = self.condition().map(|it| ("if-range", it.clone()));
        [range].into_iter().chain(condition).collect()
    }

    /// Starts again, with the validators of the new content.
    pub(super) fn restart(&mut self, about: Validators) -> Result<(), HttpFailure> {
        let text = serde_json::to_vec(&about).unwrap_or_default();
        let restarted = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| fs::write(ABOUT, text));
        (self.bytes, self.about) = (0, about);
        restarted.map_err(|error| failed(&error))
    }

    pub(super) fn finish(self) -> Result<Validators, HttpFailure> {
        self.file.sync_all().map_err(|error| failed(&error))?;
        Ok(self.about)
    }
}

fn failed(error: &io::Error) -> HttpFailure {
    HttpFailure::lasting(format!("cannot write the download: {error}"))
}
