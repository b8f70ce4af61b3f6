//! The server: a socket for UDP and a listener for TCP at the same address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::message::{Transport, Zone};

/// Requests over UDP in progress. Each waits for a gateway for two seconds at most.
const UDP_REQUESTS: usize = 512;
/// Connections over TCP, which clients use for large answers.
const TCP_CONNECTIONS: usize = 64;
/// Time for one request or response of a connection.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request over UDP. Source: RFC 6891's recommendation.
const REQUEST_BYTES: usize = 4_096;
/// Pause after an error of a socket, as without free file numbers.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// Tries to bind both sockets to the same free port.
const BIND_TRIES: usize = 16;

/// The bound sockets.
#[derive(Debug)]
pub struct Server {
    udp: UdpSocket,
    tcp: TcpListener,
}

impl Server {
    /// Binds both sockets; with port 0 the system chooses one.
    ///
    /// # Errors
    /// The address is taken or not this machine's.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let udp = UdpSocket::bind(address).await?;
            match TcpListener::bind(udp.local_addr()?).await {
                Ok(tcp) => return Ok(Self { udp, tcp }),
                // The port that was free for UDP is taken for TCP.
                Err(_) if address.port() == 0 && tries < BIND_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the address of both sockets.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Serves `zone` until `ended`.
    pub async fn run(self, zone: Zone, ended: CancellationToken) {
        if let Ok(address) = self.local_addr() {
            info!(%address, "serving names of services");
        }
        let (udp, zone) = (Arc::new(self.udp), Arc::new(zone));
        let requests = TaskTracker::new();
        tokio::join!(
            answer_datagrams(&udp, &zone, &requests, &ended),
            accept(&self.tcp, &zone, &requests, &ended),
        );
        requests.close();
        requests.wait().await;
    }
}

async fn answer_datagrams(
    udp: &Arc<UdpSocket>,
    zone: &Arc<Zone>,
    requests: &TaskTracker,
    ended: &CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(UDP_REQUESTS));
    let mut buffer = vec![0; REQUEST_BYTES];
    loop {
        let received = tokio::select! {
            () = ended.cancelled() => return,
            received = udp.recv_from(&mut buffer) => received,
        };
        let (length, client) = match received {
            Ok(received) => received,
            // Linux reports the refusal of an earlier response here.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => {
                warn!(%error, "cannot receive DNS queries; retrying");
                sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            zone.metrics.dropped.inc();
            continue;
        };
        let request = buffer[..length].to_vec();
        let (udp, zone) = (Arc::clone(udp), Arc::clone(zone));
        requests.spawn(async move {
            let _slot = slot;
            if let Some(response) = zone.respond(&request, Transport::Udp).await {
                // A client that is gone is not an error.
                let _ = udp.send_to(&response, client).await;
            }
        });
    }
}

async fn accept(
    tcp: &TcpListener,
    zone: &Arc<Zone>,
    requests: &TaskTracker,
    ended: &CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(TCP_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = ended.cancelled() => return,
            accepted = tcp.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept DNS connections; retrying");
                sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            zone.metrics.dropped.inc();
            continue;
        };
        let (zone, ended) = (Arc::clone(zone), ended.clone());
        requests.spawn(async move {
            let _slot = slot;
            tokio::select! {
                // The end of a connection is not an error.
                _ = answer_connection(stream, &zone) => {}
                () = ended.cancelled() => {}
            }
        });
    }
}

/// Answers the requests of a connection, one after the other. Source: RFC 7766.
async fn answer_connection(mut stream: TcpStream, zone: &Zone) -> io::Result<()> {
    loop {
        let request = timeout(TCP_TIMEOUT, read(&mut stream)).await??;
        let Some(response) = zone.respond(&request, Transport::Tcp).await else {
            return Ok(());
        };
        let length = u16::try_from(response.len()).map_err(io::Error::other)?;
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend(response);
        timeout(TCP_TIMEOUT, stream.write_all(&framed)).await??;
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut request = vec![0; usize::from(length)];
    stream.read_exact(&mut request).await?;
    Ok(request)
}
