//! A real etcd for one test: a loopback address of its own, a temporary directory, gone when dropped.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// The time limit of etcd's first answer: 0.3 s alone, longer where many tests start at once.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts with other addresses, in case another process took one first.
const ATTEMPTS: u32 = 8;
/// The pause after the first failed attempt; each further one is longer by as much.
const PAUSE: Duration = Duration::from_millis(250);
/// Twice the size limit of the store's own transactions, as in a cluster's etcd.
const MAX_TXN_OPS: &str = "2048";
const MAX_REQUEST_BYTES: &str = "4194304";

/// Runs `"$@"`, and kills it when standard input ends: that is, also when the test itself is killed.
const KEEPER: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- & etcd=$!
echo $etcd
(read -r _ <&3; kill -9 $etcd) 2>/dev/null & reader=$!
wait $etcd
kill $reader 2>/dev/null
"#;

/// Tells whether there is an etcd to test with; says so when there is none.
///
/// # Panics
/// There is none although `KAFILA_REQUIRE_ETCD=1` says that there must be.
pub fn available() -> bool {
    let found = Command::new(program()).arg("--version").output();
    if found.is_ok_and(|output| output.status.success()) {
        return true;
    }
    let missing = "no etcd: put etcd >= 3.5.8 on the PATH, or set KAFILA_ETCD";
    assert!(!is_required(), "{missing}");
    eprintln!("SKIPPED: {missing}");
    false
}

/// Tells whether tests that need an etcd must not be skipped.
pub fn is_required() -> bool {
    std::env::var("KAFILA_REQUIRE_ETCD").is_ok_and(|value| value == "1")
}

/// Returns the etcd to run: `KAFILA_ETCD`, or the one on the `PATH`.
pub fn program() -> PathBuf {
    std::env::var_os("KAFILA_ETCD").map_or_else(|| PathBuf::from("etcd"), PathBuf::from)
}

/// A running etcd of one member.
#[derive(Debug)]
pub struct Etcd {
    client: SocketAddr,
    peer: SocketAddr,
    /// Serves `/health`, without TLS.
    health: SocketAddr,
    tls: Option<TlsFiles>,
    extra: Vec<String>,
    directory: TempDir,
    keeper: Option<Keeper>,
}

/// Files of an etcd that speaks TLS and requires client certificates.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub ca: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug)]
struct Keeper {
    shell: Child,
    etcd_pid: String,
}

impl Etcd {
    /// Starts one and waits until it answers.
    ///
    /// # Errors
    /// There is no etcd, or it does not come up; the error has its last words.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts one with more arguments.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with(extra: &[&str]) -> io::Result<Self> {
        let mut last = io::Error::other("never tried");
        for attempt in 1..=ATTEMPTS {
            let [client, peer, health] = free_addresses()?;
            let mut etcd = Self {
                client,
                peer,
                health,
                tls: None,
                extra: extra.iter().map(|&argument| argument.to_owned()).collect(),
                directory: tempfile::Builder::new().prefix("kafila-etcd-").tempdir()?,
                keeper: None,
            };
            match etcd.restart().await {
                Ok(()) => return Ok(etcd),
                Err(error) => last = error,
            }
            sleep(PAUSE * attempt).await;
        }
        Err(last)
    }

    /// Returns where clients reach it, as in `http://127.0.0.1:2379`.
    pub fn endpoint(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.client)
    }

    /// Returns its process id; `None`: it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.keeper.as_ref()?.etcd_pid.parse().ok()
    }

    /// Returns its metrics as HTTP answers them.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn metrics(&self) -> io::Result<String> {
        self.get("/metrics").await
    }

    /// Requires TLS and client certificates from the next [`Self::restart`] on.
    pub fn set_tls(&mut self, files: TlsFiles) {
        self.tls = Some(files);
    }

    pub fn endpoints(&self) -> Vec<String> {
        vec![self.endpoint()]
    }

    pub fn address(&self) -> SocketAddr {
        self.client
    }

    /// Kills it as a power cut would, but for what the kernel still writes.
    pub fn kill(&mut self) {
        self.keeper = None;
    }

    /// Starts it again on the same ports and data.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn restart(&mut self) -> io::Result<()> {
        self.kill();
        self.keeper = Some(self.spawn()?);
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.is_healthy().await {
            let ended = match &mut self.keeper {
                Some(keeper) => !keeper.is_running(),
                None => true,
            };
            if ended || Instant::now() > deadline {
                self.kill();
                let log = std::fs::read_to_string(self.log()).unwrap_or_default();
                return Err(io::Error::other(format!(
                    "etcd did not come up: {}",
                    log.trim()
                )));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Suspends the process: connections stay, nothing is answered. [`Self::resume`] undoes it.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        if let Some(keeper) = &self.keeper {
            let sent = Command::new("kill")
                .args([signal, &keeper.etcd_pid])
                .status();
            assert!(
                sent.is_ok_and(|status| status.success()),
                "cannot send {signal} to etcd"
            );
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn spawn(&self) -> io::Result<Keeper> {
        let log = std::fs::File::create(self.log())?;
        let (client, peer) = (self.endpoint(), format!("http://{}", self.peer));
        let mut shell = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(program())
            .args(["--name", "test", "--data-dir"])
            .arg(self.directory.path().join("data"))
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &format!("test={peer}")])
            .args([
                "--max-txn-ops",
                MAX_TXN_OPS,
                "--max-request-bytes",
                MAX_REQUEST_BYTES,
            ])
            .args(["--unsafe-no-fsync", "--log-level", "error"])
            .args(["--listen-metrics-urls", &format!("http://{}", self.health)])
            .args(self.tls.iter().flat_map(TlsFiles::arguments))
            .args(&self.extra)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let mut etcd_pid = String::new();
        let stdout = shell
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("no standard output"))?;
        BufReader::new(stdout).read_line(&mut etcd_pid)?;
        Ok(Keeper {
            shell,
            etcd_pid: etcd_pid.trim().to_owned(),
        })
    }

    async fn is_healthy(&self) -> bool {
        let answer = self.get("/health").await;
        answer.is_ok_and(|answer| answer.contains(r#""health":"true""#))
    }

    async fn get(&self, path: &str) -> io::Result<String> {
        let asked = async {
            let mut stream = TcpStream::connect(self.health).await?;
            let request = format!("GET {path} HTTP/1.0\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok(answer)
        };
        timeout(Duration::from_secs(2), asked).await?
    }
}

impl TlsFiles {
    fn arguments(&self) -> Vec<OsString> {
        vec![
            "--client-cert-auth".into(),
            "--trusted-ca-file".into(),
            self.ca.clone().into(),
            "--cert-file".into(),
            self.cert.clone().into(),
            "--key-file".into(),
            self.key.clone().into(),
        ]
    }
}

impl Keeper {
    fn is_running(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The shell kills etcd when its input ends, and ends.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Returns addresses that were free a moment ago, all of a loopback host drawn at random.
///
/// Connections on the machine start from 127.0.0.1 and cannot take a port of another host. Systems
/// whose loopback network is this one host get its ports.
fn free_addresses() -> io::Result<[SocketAddr; 3]> {
    let [a, b, c] = rand::random::<[u8; 3]>();
    let own = IpAddr::V4(Ipv4Addr::new(127, a, b, c.clamp(1, 254)));
    let three = |host: IpAddr| {
        let first = StdListener::bind((host, 0))?;
        let second = StdListener::bind((host, 0))?;
        let third = StdListener::bind((host, 0))?;
        io::Result::Ok([
            first.local_addr()?,
            second.local_addr()?,
            third.local_addr()?,
        ])
    };
    three(own).or_else(|_| three(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_comes_up_and_leaves_nothing_behind() {
        if !available() {
            return;
        }
        let etcd = Etcd::start().await.unwrap();
        let (address, directory) = (etcd.address(), etcd.directory.path().to_owned());
        assert!(etcd.is_healthy().await);
        drop(etcd);
        assert!(TcpStream::connect(address).await.is_err());
        assert!(!directory.exists());
    }

    #[test]
    fn its_addresses_differ_and_are_of_one_loopback_host() {
        let [client, peer, health] = free_addresses().unwrap();
        assert!(client != peer && peer != health && health != client);
        assert_eq!(client.ip(), peer.ip());
        assert_eq!(client.ip(), health.ip());
        assert!(client.ip().is_loopback());
    }

    #[tokio::test]
    async fn one_that_cannot_start_says_why() {
        if !available() {
            return;
        }
        let error = Etcd::start_with(&["--no-such-flag"]).await.unwrap_err();
        assert!(error.to_string().contains("no-such-flag"), "{error}");
    }

    #[tokio::test]
    async fn a_killed_one_comes_back_where_it_was() {
        if !available() {
            return;
        }
        let mut etcd = Etcd::start().await.unwrap();
        etcd.kill();
        assert!(!etcd.is_healthy().await);
        etcd.restart().await.unwrap();
        assert!(etcd.is_healthy().await);
    }
}
