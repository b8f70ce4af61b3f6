//! The helper process: it reads content from the network for the agent, and can harm nothing else.
//!
//! It is the agent's own binary, started with a hidden subcommand that calls [`main`]. In reading order:
//! `sandbox` gives up rights; `http` and `git` download; `unpack` reads archives; `disk_space` watches the free
//! space of the disk.
//!
//! The helper ends with its standard input, which the agent holds open: no helper outlives its agent.

mod disk_space;
mod git;
mod http;
mod sandbox;
mod unpack;

pub use unpack::unpack;

use std::fs::File;
use std::io::{self, BufRead as _, Read, Write as _};
use std::process::ExitCode;

use artifact::{Archive, Budget};

use self::disk_space::too_large;
use crate::wire::{LocalFile, Order, PART, Report, S3, TREE, Work};

/// Bytes of an order, at most: a URL, headers and a key.
const ORDER_BYTES_MAX: u64 = 1 << 20;

/// Runs one order from standard input.
pub fn main() -> ExitCode {
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .take(ORDER_BYTES_MAX)
        .read_line(&mut line);
    let order = read
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str::<Order>(&line).map_err(|_| "no order".to_owned()));
    drop(line);
    let order = match order {
        Ok(order) => order,
        Err(error) => {
            eprintln!(
                "cannot read an order from standard input: {error}; started by the agent, not by people"
            );
            return ExitCode::from(2);
        }
    };
    let report = run(order).unwrap_or_else(Report::lasting);
    let text = serde_json::to_string(&report).unwrap_or_default();
    let mut output = io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(order: Order) -> Result<Report, String> {
    // Opened with the agent's rights; the sandbox does not close it.
    let blob = match &order.work {
        Work::Unpack(unpack) => {
            let file = File::open(&unpack.blob);
            Some(file.map_err(|error| format!("cannot open the downloaded file: {error}"))?)
        }
        _ => None,
    };
    sandbox::enter(&order)?;
    end_with_the_agent();
    match (&order.work, blob) {
        (Work::Http(work), _) => Ok(http::download(work)),
        (Work::S3(work), _) => signed(work).map(|work| http::download(&work)),
        (Work::Git(work), _) => Ok(git::clone(work)),
        (Work::File(work), _) => copy(work),
        (Work::Unpack(work), Some(blob)) => {
            let archive = Archive::named(&work.archive).ok_or("the kind of archive is unknown")?;
            let budget = Budget::new(work.entries_max, work.bytes_max);
            unpack(blob, archive, work.name.as_ref(), TREE.as_ref(), budget)?;
            Ok(Report::Tree)
        }
        (Work::Unpack(_), None) => Err("no file to unpack".to_owned()),
    }
}

/// Ends this process and its children when the agent closes the input, or dies.
fn end_with_the_agent() {
    std::thread::spawn(|| {
        let mut rest = [0; 64];
        let mut input = io::stdin().lock();
        while matches!(input.read(&mut rest), Ok(1..)) {}
        let own = nix::unistd::getpgrp();
        let _ = nix::sys::signal::killpg(own, nix::sys::signal::Signal::SIGKILL);
        std::process::exit(3);
    });
}

fn signed(work: &S3) -> Result<crate::wire::Http, String> {
    let object = s3::PublicObject {
        endpoint: work.endpoint.clone(),
        bucket: work.bucket.clone(),
        region: work.region.clone(),
        key: work.key.clone(),
        version: work.version.clone(),
    };
    let credentials = work
        .keys
        .as_ref()
        .map(|(id, secret, token)| s3::Credentials {
            access_key_id: id.clone(),
            secret_access_key: secret.clone(),
            session_token: token.clone(),
        });
    let url = object.url(credentials.as_ref())?;
    Ok(crate::wire::Http {
        url,
        ..work.http.clone()
    })
}

fn copy(work: &LocalFile) -> Result<Report, String> {
    let shown = work.path.display();
    let failed = |error: io::Error| format!("cannot read {shown}: {error}");
    let file = File::open(&work.path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{shown} is not a regular file"));
    }
    let mut part = File::create(PART).map_err(|error| format!("cannot create a file: {error}"))?;
    let mut limited = file.take(work.bytes_max.saturating_add(1));
    let bytes = io::copy(&mut limited, &mut part).map_err(failed)?;
    if bytes > work.bytes_max {
        return Err(too_large(work.bytes_max));
    }
    Ok(Report::Fetched {
        validators: crate::wire::Validators::default(),
        list: None,
        resumed: false,
    })
}
