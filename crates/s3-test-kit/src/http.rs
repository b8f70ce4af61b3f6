//! Enough of HTTP/1.1 for a client that sends lengths.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// A request whose body has not been read.
pub(crate) struct Head {
    request: Request,
    /// The part of the body that was read along with the head.
    rest: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Decoded, with its leading `/`.
    pub(crate) path: String,
    /// Decoded.
    pub(crate) query: BTreeMap<String, String>,
    /// By lowercase name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads up to the empty line after the headers; `None` at the end of the connection.
pub(crate) fn read_head(stream: &mut TcpStream) -> Option<Head> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let mut buffer = [0; 16 << 10];
        match stream.read(&mut buffer).ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    });
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Some(Head {
        request: Request {
            method: method.to_owned(),
            path: decoded(path),
            query: query.collect(),
            headers: headers.collect(),
            body: Vec::new(),
        },
        rest: bytes.split_off(end + 4),
    })
}

impl Head {
    pub(crate) fn line(&self) -> String {
        let request = &self.request;
        let query = request.query.iter();
        let query = query.filter(|(name, _)| !name.starts_with("X-Amz-"));
        let query: Vec<String> = query
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let query = query.join("&");
        format!("{} {}?{query}", request.method, request.path)
    }

    pub(crate) fn read_body(self, stream: &mut TcpStream) -> Option<Request> {
        let Self { mut request, rest } = self;
        let length = request.headers.get("content-length");
        let length: usize = length.map_or(Some(0), |text| text.parse().ok())?;
        let missing = length.checked_sub(rest.len())?;
        request.body = rest;
        let missing = u64::try_from(missing).ok()?;
        stream.take(missing).read_to_end(&mut request.body).ok()?;
        (request.body.len() == length).then_some(request)
    }
}

/// Writes the answer; returns whether that succeeded.
pub(crate) fn write(stream: &mut TcpStream, request: &Request, answer: &Answer) -> bool {
    let mut head = format!("HTTP/1.1 {} x\r\n", answer.status);
    if !answer
        .headers
        .iter()
        .any(|(name, _)| *name == "content-length")
    {
        head.push_str(&format!("content-length: {}\r\n", answer.body.len()));
    }
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(&answer.body);
    }
    stream.write_all(&bytes).is_ok()
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
