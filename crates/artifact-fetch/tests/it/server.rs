//! An HTTP server with Range, ETag and faults.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A failure of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The connection ends after this many bytes of the body.
    Cut(usize),
    /// The connection stays open without a byte after this many of the body.
    Stall(usize),
    Status(u16),
    /// Each chunk of 1000 bytes takes this time.
    Slow(Duration),
}

#[derive(Clone, Default)]
struct File {
    content: Vec<u8>,
    etag: Option<String>,
    redirect: Option<String>,
}

#[derive(Default)]
struct Shared {
    files: BTreeMap<String, File>,
    faults: Vec<Fault>,
    /// Method, path and headers of each request, lower case.
    requests: Vec<String>,
    sent: usize,
}

#[derive(Clone)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            shared: Arc::default(),
        };
        let shared = Arc::clone(&server.shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let _ = serve(stream, &shared);
                });
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn put(&self, path: &str, content: impl Into<Vec<u8>>, etag: Option<&str>) {
        let file = File {
            content: content.into(),
            etag: etag.map(|etag| format!("\"{etag}\"")),
            redirect: None,
        };
        self.shared.lock().unwrap().files.insert(format!("/{path}"), file);
    }

    pub(crate) fn redirect(&self, path: &str, to: &str) {
        let file = File {
            redirect: Some(to.to_owned()),
            ..File::default()
        };
        self.shared.lock().unwrap().files.insert(format!("/{path}"), file);
    }

    /// Faults of the next requests, in order.
    pub(crate) fn fail(&self, faults: &[Fault]) {
        self.shared.lock().unwrap().faults = faults.iter().rev().copied().collect();
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.lock().unwrap().requests.clone()
    }

    /// Bytes of bodies that were sent.
    pub(crate) fn sent(&self) -> usize {
        self.shared.lock().unwrap().sent
    }
}

fn serve(mut stream: TcpStream, shared: &Mutex<Shared>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut request = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            request.push_str(&line.to_lowercase());
        }
        let header = |name: &str| {
            let lines = request.lines().skip(1);
            lines
                .filter_map(|line| line.split_once(':'))
                .find(|(it, _)| *it == name)
                .map(|(_, value)| value.trim().to_owned())
        };
        let path = request.split(' ').nth(1).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let (file, fault) = {
            let mut shared = shared.lock().unwrap();
            shared.requests.push(request.clone());
            (shared.files.get(path).cloned(), shared.faults.pop())
        };
        if let Some(Fault::Status(status)) = fault {
            write!(stream, "HTTP/1.1 {status} Fault\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        let Some(file) = file else {
            write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        if let Some(to) = &file.redirect {
            write!(stream, "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        if file.etag.is_some() && header("if-none-match") == file.etag {
            write!(stream, "HTTP/1.1 304 Not Modified\r\n\r\n")?;
            continue;
        }
        let etag = file.etag.as_deref().map(|etag| format!("ETag: {etag}\r\n"));
        let etag = etag.unwrap_or_default();
        let start = header("range").and_then(|range| {
            let start = range.strip_prefix("bytes=")?.strip_suffix('-')?;
            start.parse::<usize>().ok()
        });
        let is_same = header("if-range").is_none_or(|it| Some(it) == file.etag);
        let body = match start.filter(|_| is_same) {
            Some(start) => {
                let length = file.content.len();
                write!(
                    stream,
                    "HTTP/1.1 206 Partial Content\r\n{etag}Content-Range: bytes {start}-{}/{length}\r\nContent-Length: {}\r\n\r\n",
                    length - 1,
                    length - start
                )?;
                &file.content[start..]
            }
            None => {
                let length = file.content.len();
                write!(stream, "HTTP/1.1 200 OK\r\n{etag}Content-Length: {length}\r\n\r\n")?;
                &file.content[..]
            }
        };
        let end = match fault {
            Some(Fault::Cut(end) | Fault::Stall(end)) => end.min(body.len()),
            _ => body.len(),
        };
        shared.lock().unwrap().sent += end;
        for chunk in body[..end].chunks(1000) {
            if let Some(Fault::Slow(pause)) = fault {
                std::thread::sleep(pause);
            }
            stream.write_all(chunk)?;
        }
        match fault {
            Some(Fault::Cut(_)) => return Ok(()),
            Some(Fault::Stall(_)) => std::thread::sleep(Duration::from_secs(30)),
            _ => {}
        }
    }
}
