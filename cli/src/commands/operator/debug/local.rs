//! Metrics of processes, and files of this machine, in a debug archive.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::part::Part;
use super::redact::{log_file, redact};

/// Longest request for metrics.
const METRICS_TIMEOUT: Duration = Duration::from_secs(10);
/// Most metrics of one process: a service has some hundred KiB.
const METRICS_BYTES: u64 = 16 << 20;
/// Kept end of a log file.
const LOG_BYTES: u64 = 1 << 20;

/// Reads the metrics at `address`.
pub(super) async fn metrics(address: &str) -> Part {
    let name = format!("metrics/{}.txt", file_name(address));
    let content = match timeout(METRICS_TIMEOUT, get_metrics(address)).await {
        Ok(Ok(content)) => Ok(content),
        Ok(Err(error)) => Err(format!("{address}: {error}")),
        Err(_) => Err(format!("{address}: no answer")),
    };
    Part::new(name, content)
}

async fn get_metrics(address: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(METRICS_BYTES).read_to_end(&mut answer).await?;
    let head = b"\r\n\r\n";
    let end = answer.windows(head.len()).position(|window| window == head);
    let is_ok = answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200");
    match end.filter(|_| is_ok) {
        Some(end) => Ok(answer.split_off(end + head.len())),
        None => Err(std::io::Error::other("the server there has no metrics")),
    }
}

/// Reads the end of a log file, without what may be secrets.
pub(super) fn log(path: &Path) -> Part {
    let name = format!("logs/{}", file_name(&path.to_string_lossy()));
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(LOG_BYTES)))?;
        let mut content = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut content)?;
        Ok(log_file(&content))
    };
    Part::new(name, read().map_err(|error| format!("{path:?}: {error}")))
}

/// Reads a configuration file without its secrets, as JSON.
pub(super) fn config(path: &Path) -> Part {
    let name = format!("config/{}.json", file_name(&path.to_string_lossy()));
    let read = || -> Result<Vec<u8>, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        // The text of a parser's error would quote the line.
        let mut settings: serde_json::Value =
            toml::from_str(&text).map_err(|_| "it is no TOML".to_owned())?;
        redact(&mut settings);
        Ok(format!("{settings:#}").into_bytes())
    };
    Part::new(name, read().map_err(|error| format!("{path:?}: {error}")))
}

/// Returns a name without separators of folders.
pub(super) fn file_name(text: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = text
        .trim_start_matches('/')
        .chars()
        .map(|c| if kept(c) { c } else { '_' })
        .collect();
    name.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        assert_eq!(file_name("10.0.0.7:7111"), "10.0.0.7_7111");
        assert_eq!(file_name("/var/log/kafila.log"), "var_log_kafila.log");
        assert_eq!(file_name("../../etc/x"), "_.._etc_x");
    }

    #[test]
    fn only_the_end_of_a_log_is_kept() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("long.log");
        let size = usize::try_from(LOG_BYTES).unwrap();
        std::fs::write(&path, [vec![b'a'; 10], vec![b'b'; size]].concat()).unwrap();
        let content = log(&path).content.unwrap();
        assert_eq!(content.len(), size);
        assert!(content.iter().all(|byte| *byte == b'b'));
    }
}
