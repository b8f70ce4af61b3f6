//! A real etcd, started for one test and gone with it.

use std::{
    env,
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use super::{raw::RawClient, wait_for};

/// The oldest etcd whose behaviour is matched in everything that is compared: since then a
/// compaction keeps the deletion made at its very revision.
const OLDEST: (u32, u32, u32) = (3, 5, 16);

/// Attempts to find free ports: others on the machine may take one between looking and using.
const PORT_ATTEMPTS: usize = 5;

/// How etcd is started beside the defaults of this test.
pub(crate) struct EtcdOptions {
    pub(crate) max_txn_ops: usize,
    pub(crate) max_request_bytes: usize,
    /// As in `--experimental-watch-progress-notify-interval`.
    pub(crate) progress_interval: &'static str,
}

/// Killed when dropped.
pub(crate) struct EtcdProcess {
    child: Child,
    url: String,
    _data: TempDir,
}

/// The program to start, or `None` with a notice when the test is to be skipped.
pub(crate) fn find_etcd(test: &str) -> Option<String> {
    let program = env::var("KAFILA_ETCD").unwrap_or_else(|_| "etcd".to_owned());
    let problem = match Command::new(&program).arg("--version").output() {
        Err(error) => format!("cannot run {program}: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            match version(&text) {
                Some(found) if found >= OLDEST => return Some(program),
                found => format!("{program} is {found:?}"),
            }
        }
    };
    let (major, minor, patch) = OLDEST;
    let needs = format!(
        "{test} compares with a real etcd, {major}.{minor}.{patch} or later, on PATH or named by \
         KAFILA_ETCD: {problem}"
    );
    assert!(
        env::var("KAFILA_REQUIRE_ETCD").is_err_and(|_| true),
        "{needs}"
    );
    println!("SKIPPED: {needs} (set KAFILA_REQUIRE_ETCD=1 to fail instead)");
    None
}

fn version(text: &str) -> Option<(u32, u32, u32)> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("etcd Version: "))?;
    let mut parts = line.trim().split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl EtcdProcess {
    /// Starts `program` and waits until it answers.
    pub(crate) async fn start(program: &str, options: &EtcdOptions) -> Self {
        for _ in 0..PORT_ATTEMPTS {
            let mut process = Self::spawn(program, options);
            if process.answers().await {
                return process;
            }
        }
        panic!("{program} did not start in {PORT_ATTEMPTS} attempts");
    }

    fn spawn(program: &str, options: &EtcdOptions) -> Self {
        let data = tempfile::tempdir().unwrap();
        let url = format!("http://127.0.0.1:{}", free_port());
        let peer_url = format!("http://127.0.0.1:{}", free_port());
        let child = Command::new(program)
            .arg("--name=reference")
            .arg("--data-dir")
            .arg(data.path())
            .args(["--listen-client-urls", &url])
            .args(["--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer_url])
            .args(["--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("reference={peer_url}")])
            .args(["--max-txn-ops", &options.max_txn_ops.to_string()])
            .args([
                "--max-request-bytes",
                &options.max_request_bytes.to_string(),
            ])
            .args([
                "--experimental-watch-progress-notify-interval",
                options.progress_interval,
            ])
            .args(["--unsafe-no-fsync", "--log-level=fatal"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        Self {
            child,
            url,
            _data: data,
        }
    }

    /// Whether it answers, or has ended, the latter for want of a port.
    async fn answers(&mut self) -> bool {
        let client = RawClient::new(self.channel());
        wait_for(
            async || {
                if client.clone().status().await.is_ok() {
                    return Some(true);
                }
                let ended = self.child.try_wait().unwrap();
                ended.map(|_| false)
            },
            || "etcd answers".to_owned(),
        )
        .await
    }

    pub(crate) fn channel(&self) -> Channel {
        Endpoint::from_shared(self.url.clone())
            .unwrap()
            .connect_lazy()
    }
}

impl Drop for EtcdProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
