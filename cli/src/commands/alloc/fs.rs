//! `kafila alloc fs`

use kafila_client::Opened;
use proto::v1;

use super::tail::LastLines;
use super::target::of_job;
use crate::alloc_state::has_ended;
use crate::args::alloc::fs::Fs;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render;
use crate::resolve;
use crate::retries::{self, MAX_RETRIES};

/// Lines of `-tail` without -n or -c. Source: Nomad's command line.
const DEFAULT_TAIL_LINES: u32 = 10;
/// First window in the search for the last lines, in bytes from the end: hundreds of usual lines.
const FIRST_WINDOW_BYTES: u64 = 64 << 10;
/// Largest window: lines of more than this are cut.
const MAX_WINDOW_BYTES: u64 = 128 << 20;

pub(crate) async fn run(context: &Context, args: &Fs) -> Result<Exit, Error> {
    let (alloc, path) = find(context, args).await?;
    let connection = &context.connection;
    let file = connection.file(&alloc.id, &path).await?;
    let style = context.style(args.verbose);
    if args.stat {
        let one = std::slice::from_ref(&file);
        return context.finish(&render::file::table(one, args.machine, &style));
    }
    let reader = Reader {
        context,
        alloc_id: &alloc.id,
        path: &path,
    };
    if !file.is_dir {
        reader.print(args).await?;
        return Ok(Exit::Success);
    }
    if args.follow || args.tail || args.lines.is_some() || args.bytes.is_some() {
        return Err(Error::text(format!(
            "{path:?} is a directory: name a file in it, which 'kafila alloc fs {} {path}' lists",
            style.id(&alloc.id)
        )));
    }
    let list = connection.files(&alloc.id, &path).await?;
    if list.is_truncated {
        context.printer.err(&format!(
            "The directory has more files than one answer takes: these are {} of them.",
            list.files.len()
        ));
    }
    context.finish(&render::file::table(&list.files, args.machine, &style))
}

/// Returns the allocation and the path.
async fn find(context: &Context, args: &Fs) -> Result<(v1::Allocation, String), Error> {
    let path = |path: &Option<String>| path.clone().unwrap_or_default();
    let Some(job) = &args.job else {
        let style = context.style_err(args.verbose);
        let id = args.id.as_deref().unwrap_or_default();
        let alloc = resolve::allocation(&context.connection, id, &style).await?;
        return Ok((alloc, path(&args.path)));
    };
    if let (Some(first), Some(second)) = (&args.id, &args.path) {
        return Err(Error::text(format!(
            "With -job there is one argument, the path: found {first:?} and {second:?}"
        )));
    }
    let alloc = of_job(context, job, args.group.as_deref()).await?;
    Ok((alloc, path(&args.id)))
}

/// A file of an allocation.
struct Reader<'a> {
    context: &'a Context,
    alloc_id: &'a str,
    path: &'a str,
}

impl Reader<'_> {
    async fn print(&self, args: &Fs) -> Result<(), Error> {
        let lines = match (args.lines, args.tail) {
            (Some(lines), _) => Some(lines),
            (None, true) if args.bytes.is_none() => Some(DEFAULT_TAIL_LINES),
            (None, _) => None,
        };
        let printer = &self.context.printer;
        let mut request = v1::ReadFileRequest {
            alloc_id: self.alloc_id.to_owned(),
            path: self.path.to_owned(),
            follow: args.follow,
            offset: args.bytes.unwrap_or(0),
            from_end: args.bytes.is_some(),
            limit: 0,
        };
        if let Some(lines) = lines {
            let (last, end) = self.last_lines(lines).await?;
            printer.out_bytes(last.kept())?;
            (request.offset, request.from_end) = (end, false);
            if !args.follow {
                return Ok(());
            }
        }
        if args.follow {
            return self.follow(request).await;
        }
        let mut stream = self.open(&request).await?;
        while let Some(chunk) = self.next(&mut stream).await? {
            printer.out_bytes(&chunk.data)?;
        }
        Ok(())
    }

    /// Prints existing and new parts of the file until the allocation ends or the file is gone. Goes on where a
    /// broken stream ended.
    async fn follow(&self, mut request: v1::ReadFileRequest) -> Result<(), Error> {
        let mut backoff = retries::backoff();
        let mut rng = self.context.connection.ids().rng();
        let mut retries = 0;
        let mut began = false;
        loop {
            let before = (request.offset, request.from_end);
            let ended = self.follow_once(&mut request).await;
            if before != (request.offset, request.from_end) {
                (began, retries) = (true, 0);
                backoff.reset();
            }
            let why = match ended {
                Ok(true) => return Ok(()),
                // A draining gateway closes its streams without an error.
                Ok(false) if self.has_ended().await? => return Ok(()),
                Ok(false) => "the gateway ended the stream".to_owned(),
                Err(error) if !error.is_transient() || (retries == 0 && !began) => {
                    return Err(error);
                }
                Err(error) if retries >= MAX_RETRIES => return Err(error),
                Err(error) => error.reason(),
            };
            if retries == 0 {
                let printer = &self.context.printer;
                printer.err(&format!("==> The file broke off ({why}); reading on"));
            }
            retries += 1;
            tokio::time::sleep(backoff.next(&mut rng)).await;
        }
    }

    /// Follows the file over one stream, and keeps the place in `request`; true: the file is gone.
    async fn follow_once(&self, request: &mut v1::ReadFileRequest) -> Result<bool, Error> {
        let printer = &self.context.printer;
        let mut stream = self.open(request).await?;
        while let Some(chunk) = self.next(&mut stream).await? {
            printer.out_bytes(&chunk.data)?;
            (request.offset, request.from_end) = (chunk.offset, false);
            match chunk.event() {
                v1::FileEvent::Unspecified => {}
                v1::FileEvent::Deleted => {
                    printer.err("==> The file is gone");
                    return Ok(true);
                }
                v1::FileEvent::Truncated => {
                    printer.err("==> The file was truncated; reading it from its start");
                }
                v1::FileEvent::Replaced => {
                    printer.err("==> The file was replaced; reading the new one");
                }
            }
        }
        Ok(false)
    }

    async fn has_ended(&self) -> Result<bool, Error> {
        let found = self.context.connection.allocations(self.alloc_id, 1).await;
        match found {
            Ok(allocs) => Ok(allocs.iter().all(has_ended)),
            Err(error) if error.is_transient() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Doubles the window from the end until it has the last lines; returns them, and the place behind them.
    async fn last_lines(&self, lines: u32) -> Result<(LastLines, u64), Error> {
        let mut window = FIRST_WINDOW_BYTES;
        loop {
            let mut last = LastLines::new(lines);
            let mut end = 0;
            let request = v1::ReadFileRequest {
                alloc_id: self.alloc_id.to_owned(),
                path: self.path.to_owned(),
                offset: window,
                from_end: true,
                limit: MAX_WINDOW_BYTES,
                ..v1::ReadFileRequest::default()
            };
            let mut stream = self.open(&request).await?;
            while let Some(chunk) = self.next(&mut stream).await? {
                last.push(&chunk.data);
                end = chunk.offset;
            }
            // A short read is the whole file.
            if last.is_full() || last.pushed_bytes() < window || window >= MAX_WINDOW_BYTES {
                return Ok((last, end));
            }
            window = window.saturating_mul(8).min(MAX_WINDOW_BYTES);
        }
    }

    async fn open(&self, request: &v1::ReadFileRequest) -> Result<Opened<v1::FileChunk>, Error> {
        self.context.connection.read_file(request.clone()).await
    }

    async fn next(
        &self,
        stream: &mut Opened<v1::FileChunk>,
    ) -> Result<Option<v1::FileChunk>, Error> {
        let connection = &self.context.connection;
        connection.next_file_chunk(self.path, stream).await
    }
}
