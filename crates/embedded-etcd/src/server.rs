//! The running store: starts it, lets clients in over TCP or in process, and stops it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use connections::Listener;
use hyper_util::rt::TokioIo;
use tokio::{
    io::DuplexStream,
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tonic::{
    codegen::Service,
    transport::{Channel, Endpoint, Server, Uri},
};

use crate::{
    config::{Config, Storage},
    error::Error,
    grpc,
    machine::{Identity, Machine},
    run::Loop,
    storage::{Backend, Disk, Journal},
};

/// Names the store in the headers of its answers; it is its own cluster of one. Fixed, so that runs
/// of a simulation repeat exactly.
const CLUSTER_ID: u64 = 0x6b61_6669_6c61_0001;
const MEMBER_ID: u64 = 0x6b61_6669_6c61_0002;

/// The raft term of a store opened for the first time: an etcd of one member starts at 2.
const FIRST_TERM: u64 = 2;

/// In-process connections that wait to be accepted.
const ACCEPT_QUEUE: usize = 64;

/// The buffer of each direction of an in-process connection, in bytes.
const PIPE_BYTES: usize = 256 * 1024;

/// HTTP/2 windows: large answers must not wait for a window update every 64 KiB.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// The time that open calls get to finish when the store shuts down; none takes longer than a large
/// compaction.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// A store that runs on the current tokio runtime until it is shut down or dropped.
#[derive(Debug)]
pub struct EmbeddedEtcd {
    services: grpc::Services,
    /// Hands in-process connections to their server.
    connections: mpsc::Sender<DuplexStream>,
    /// Ends the listeners, and with them the watches.
    stop_serving: CancellationToken,
    /// The listeners that are running.
    listeners: TaskTracker,
    /// Ends the loop.
    stop: CancellationToken,
    outcome: tokio::sync::Mutex<Option<oneshot::Receiver<Result<(), Error>>>>,
    _stop_on_drop: DropGuard,
}

impl EmbeddedEtcd {
    /// Opens the storage and starts serving in process.
    ///
    /// # Errors
    /// [`Error::Storage`] if the file cannot be opened or is in use, [`Error::Corrupt`] if its contents
    /// cannot be decoded.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let (machine, backend) = open(config.clone()).await?;
        Ok(Self::start_with(machine, backend, &config))
    }

    /// Starts serving the contents of `journal` in process; the storage setting of `config` is ignored.
    ///
    /// # Errors
    /// [`Error::Failed`] if the contents cannot be decoded.
    pub async fn start_on(config: Config, journal: Arc<dyn Journal>) -> Result<Self, Error> {
        let contents = journal.open();
        let machine = Machine::restore(identity(contents.opened), &config, contents)
            .map_err(|corruption| Error::Failed(corruption.to_string()))?;
        let backend = Backend::Journal(journal);
        Ok(Self::start_with(machine, backend, &config))
    }

    fn start_with(machine: Machine, backend: Backend, config: &Config) -> Self {
        let (driver, handle) = Loop::new(machine, backend);
        let stop = CancellationToken::new();
        let stop_serving = stop.child_token();
        let (outcome_sender, outcome) = oneshot::channel();
        tokio::spawn({
            let stop = stop.clone();
            async move { drop(outcome_sender.send(driver.run(stop).await)) }
        });

        let services = grpc::Services::new(handle, config);
        let listeners = TaskTracker::new();
        let (connections, incoming) = mpsc::channel(ACCEPT_QUEUE);
        let incoming = ReceiverStream::new(incoming).map(Ok::<_, std::io::Error>);
        let router = grpc::router(server(), &services, stop_serving.clone());
        let ended = stop_serving.clone().cancelled_owned();
        // A pipe fails only with its connection, which is its client's to notice.
        listeners.spawn(router.serve_with_incoming_shutdown(incoming, ended));
        Self {
            services,
            connections,
            stop_serving,
            listeners,
            outcome: tokio::sync::Mutex::new(Some(outcome)),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Serves `listener` until `shutdown`, or until the store stops; then open calls are finished
    /// and watches ended. The future owns all it needs and may be spawned.
    ///
    /// # Errors
    /// [`Error::Serve`] if the listener fails.
    pub fn serve(
        &self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
        self.serve_on(listener.into(), shutdown)
    }

    /// As [`EmbeddedEtcd::serve`], on the network of the listener.
    ///
    /// # Errors
    /// [`Error::Serve`] if the listener fails.
    pub fn serve_on(
        &self,
        listener: Listener,
        shutdown: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
        let ended = self.stop_serving.child_token();
        let router = grpc::router(server(), &self.services, ended.clone());
        let addresses = self.services.addresses.clone();
        // Boxed here, so that the server is compiled in this crate and not in every user's.
        Box::pin(self.listeners.track_future(async move {
            let address = listener.local_addr().ok();
            let _announced = address.map(|address| addresses.announce(format!("http://{address}")));
            let end = async {
                tokio::select! {
                    // Of a listener that ends alone, the watches are to end too.
                    () = shutdown.cancelled() => ended.cancel(),
                    () = ended.cancelled() => {}
                }
            };
            // Answers are small and waited for: filling packets first costs 40 ms each.
            let incoming = listener.map(|accepted| {
                let stream = accepted?;
                stream.set_nodelay(true)?;
                Ok::<_, std::io::Error>(stream)
            });
            let served = router.serve_with_incoming_shutdown(incoming, end).await;
            served.map_err(Error::Serve)
        }))
    }

    /// A channel to the store that needs no socket, for `etcd_client::Client::from_channel`. It
    /// reconnects by itself, and answers `UNAVAILABLE` once the store has stopped.
    #[must_use]
    pub fn channel(&self) -> Channel {
        Endpoint::from_static("http://embedded-etcd")
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .connect_with_connector_lazy(PipeConnector {
                connections: self.connections.clone(),
            })
    }

    /// Waits until the store has stopped, and returns why if it stopped by itself. Answers once;
    /// waiting may be given up and begun again.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk failed.
    pub async fn stopped(&self) -> Result<(), Error> {
        let mut outcome = self.outcome.lock().await;
        let Some(receiver) = outcome.as_mut() else {
            return Ok(());
        };
        let ended = receiver.await;
        // Taken only now: a caller that gives up waiting leaves it to the next.
        outcome.take();
        // A loop that went away without a word has panicked, and tokio has said so.
        ended.unwrap_or_else(|_| Err(Error::Failed("its loop panicked".to_owned())))
    }

    /// Stops: open calls are finished, watches ended, and everything is on disk.
    pub async fn shutdown(self) {
        self.stop_serving.cancel();
        self.listeners.close();
        // The loop goes on until the open calls have been answered.
        if tokio::time::timeout(SHUTDOWN_GRACE, self.listeners.wait())
            .await
            .is_err()
        {
            tracing::warn!("the store stops although calls are still open");
        }
        self.stop.cancel();
        if let Err(error) = self.stopped().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the store did not stop cleanly"
            );
        }
    }
}

fn identity(opened: u64) -> Identity {
    Identity {
        cluster_id: CLUSTER_ID,
        member_id: MEMBER_ID,
        raft_term: FIRST_TERM + opened.saturating_sub(1),
    }
}

async fn open(config: Config) -> Result<(Machine, Backend), Error> {
    let Storage::Disk { path, durability } = config.storage.clone() else {
        return Ok((Machine::new(identity(1), &config), Backend::Memory));
    };
    let opening = blocking::spawn(move || {
        let (disk, contents) = Disk::open(&path, durability)?;
        let identity = identity(contents.opened);
        let machine = Machine::restore(identity, &config, contents)
            .map_err(|corruption| disk.corrupt(corruption))?;
        Ok((machine, Backend::Disk(Arc::new(disk))))
    });
    opening
        .await
        .unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
}

fn server() -> Server {
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
}

/// Makes a pipe and hands its other end to the in-process server.
#[derive(Clone)]
struct PipeConnector {
    connections: mpsc::Sender<DuplexStream>,
}

impl Service<Uri> for PipeConnector {
    type Response = TokioIo<DuplexStream>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let connections = self.connections.clone();
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            connections.send(theirs).await.map_err(|_| {
                std::io::Error::new(
                    std::io::ErrorKind::ConnectionRefused,
                    "the embedded etcd has stopped",
                )
            })?;
            Ok(TokioIo::new(ours))
        })
    }
}
