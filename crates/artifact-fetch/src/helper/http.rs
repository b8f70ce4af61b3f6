//! Downloads over http: one attempt, which continues the part of an earlier one.
//!
//! Redirects are followed here, not by the library: headers of the job go to the first host alone.

mod client;
mod part;

use std::io::{Read as _, Write as _};

use self::client::{Client, HttpFailure, Response};
use self::part::Part;
use super::disk_space::{DiskSpaceGuard, too_large};
use crate::wire::{Http, Report, Validators};
use ::http::StatusCode;

/// Bytes of a list of checksums, at most: some 5,000 lines.
const LIST_BYTES_MAX: u64 = 512 << 10;

/// Downloads to the part.
pub(super) fn download(work: &Http) -> Report {
    match attempt(work) {
        Ok(report) => report,
        Err(HttpFailure { message, may_pass }) => Report::Failed { message, may_pass },
    }
}

fn attempt(work: &Http) -> Result<Report, HttpFailure> {
    let client = Client::new(work)?;
    let list = match &work.list {
        Some(url) => Some(text(&client, url)?),
        None => None,
    };
    let mut part = Part::open(work.has_checksum)?;
    let conditions = match &work.cached {
        Some(cached) if part.bytes == 0 => unless_changed(cached),
        _ => part.continuation(),
    };
    let mut response = client.get(&work.url, &work.headers, &conditions)?;
    match response.status() {
        StatusCode::NOT_MODIFIED if work.cached.is_some() => {
            return Ok(Report::Unchanged { list });
        }
        StatusCode::PARTIAL_CONTENT if part.bytes > 0 => {
            if range_start(&response) != Some(part.bytes) {
                part.restart(Validators::default())?;
                return Err(HttpFailure::passing(
                    "the server sent another range than the requested",
                ));
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE if part.bytes > 0 => {
            part.restart(Validators::default())?;
            return Err(HttpFailure::passing("the server has no such range"));
        }
        StatusCode::OK => part.restart(validators(&response))?,
        other => return Err(HttpFailure::status(other)),
    }
    let resumed = part.bytes > 0;
    let length = header(&response, "content-length").and_then(|text| text.parse::<u64>().ok());
    let whole = length.map(|length| length.saturating_add(part.bytes));
    if whole.is_some_and(|whole| whole > work.bytes_max) {
        return Err(HttpFailure::lasting(too_large(work.bytes_max)));
    }
    copy(&mut response, &mut part, work.bytes_max)?;
    if whole.is_some_and(|whole| whole != part.bytes) {
        return Err(HttpFailure::passing(
            "the connection ended before the content",
        ));
    }
    Ok(Report::Fetched {
        validators: part.finish()?,
        list,
        resumed,
    })
}

fn copy(response: &mut Response, part: &mut Part, bytes_max: u64) -> Result<(), HttpFailure> {
    let mut reader = response.body_mut().as_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut disk_space = DiskSpaceGuard::default();
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            // The part stays for the next attempt.
            Err(error) => {
                let message = format!("the connection broke: {}", client::cause(&error));
                return Err(HttpFailure::passing(message));
            }
        };
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        if part.bytes.saturating_add(bytes) > bytes_max {
            return Err(HttpFailure::lasting(too_large(bytes_max)));
        }
        disk_space.wrote(bytes).map_err(HttpFailure::lasting)?;
        part.file
            .write_all(&buffer[..count])
            .map_err(|error| HttpFailure::lasting(format!("cannot write: {error}")))?;
        part.bytes += bytes;
    }
}

/// Downloads a text of bounded size.
fn text(client: &Client, url: &str) -> Result<String, HttpFailure> {
    let about = |refusal: HttpFailure| HttpFailure {
        message: format!("the list of checksums: {}", refusal.message),
        ..refusal
    };
    let response = client.get(url, &Default::default(), &[]);
    let mut response = response.map_err(about)?;
    if response.status() != StatusCode::OK {
        return Err(about(HttpFailure::status(response.status())));
    }
    let body = response.body_mut().with_config().limit(LIST_BYTES_MAX);
    body.lossy_utf8(true)
        .read_to_string()
        .map_err(|error| about(client::refusal(&error)))
}

fn unless_changed(cached: &Validators) -> Vec<(&'static str, String)> {
    let etag = cached.etag.clone().map(|etag| ("if-none-match", etag));
    let modified = cached.modified.clone();
    let modified = modified.map(|modified| ("if-modified-since", modified));
    // With both, servers look at the first alone.
    etag.or(modified).into_iter().collect()
}

fn validators(response: &Response) -> Validators {
    Validators {
        etag: header(response, "etag"),
        modified: header(response, "last-modified"),
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

/// Returns the first byte of `Content-Range: bytes 5-9/10`.
fn range_start(response: &Response) -> Option<u64> {
    let text = header(response, "content-range")?;
    let (start, _) = text.strip_prefix("bytes ")?.split_once('-')?;
    start.parse().ok()
}
