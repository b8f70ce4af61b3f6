//! A TCP connection that misbehaves when a test says so.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// The behaviour of connections through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Open,
    /// Everything is so late, each way.
    Slow(Duration),
    /// Requests arrive, answers are held back.
    HoldAnswers,
    /// Nothing gets through and connections stay open, as with an unplugged cable.
    Hold,
    /// Connections are cut, and new ones too as soon as they are made.
    Cut,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

/// Stands between a client and a server until dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy on a loopback port of its own.
    ///
    /// # Errors
    /// No port is to be had.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (mode, modes) = watch::channel(Mode::Open);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let modes = modes.clone();
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(upstream).await {
                        connect(client, server, &modes).await;
                    }
                });
            }
        });
        Ok(Self {
            address,
            mode,
            accepting,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as an endpoint: `http://127.0.0.1:…`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Carries bytes both ways until one side ends, the mode says cut, or the proxy is gone.
async fn connect(client: TcpStream, server: TcpStream, modes: &watch::Receiver<Mode>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = modes.clone();
    tokio::select! {
        () = carry(from_client, to_server, Direction::Request, modes.clone()) => {}
        () = carry(from_server, to_client, Direction::Answer, modes.clone()) => {}
        _ = cut.wait_for(|mode| *mode == Mode::Cut) => {}
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    mut modes: watch::Receiver<Mode>,
) {
    let (sender, mut under_way) = mpsc::channel(1_024);
    let now = modes.clone();
    let reading = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let late = match *now.borrow() {
                Mode::Slow(late) => late,
                _ => Duration::ZERO,
            };
            let bytes = buffer[..count].to_vec();
            if sender.send((Instant::now() + late, bytes)).await.is_err() {
                return;
            }
        }
    };
    let writing = async {
        let passes = |mode: &Mode| match mode {
            Mode::Open | Mode::Slow(_) => true,
            Mode::HoldAnswers => direction == Direction::Request,
            Mode::Hold | Mode::Cut => false,
        };
        while let Some((due, bytes)) = under_way.recv().await {
            sleep_until(due).await;
            if modes.wait_for(passes).await.is_err() || to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        // Bytes that were read must still be written.
        () = async { reading.await; pending().await } => {}
    }
}
