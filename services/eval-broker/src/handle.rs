//! The command channel from the RPCs to the leader's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use broker::config::CREDIT_MAX;
use broker::{JobTypes, NotOutstanding, SessionId, Stats, Token};
use model::EvalId;
use proto::internal::v1::Delivery;
use service_host::TermQueue;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Commands in the queue: a few for each of a thousand workers. When it is full, RPCs wait within
/// their deadlines.
const WAITING_COMMANDS: usize = 4_096;

/// Buffered deliveries for one worker. It has requested each of them, so a worker with twice its
/// maximum credit unread is gone.
const WAITING_DELIVERIES: usize = 2 * CREDIT_MAX as usize;

/// An item of a session's stream.
pub(crate) type Outgoing = mpsc::Sender<Result<Delivery, Status>>;

/// A command of an RPC to the loop.
pub(crate) enum Command {
    Open {
        session: SessionId,
        types: JobTypes,
        credit: u32,
        deliveries: Outgoing,
    },
    Credit {
        session: SessionId,
        credit: u32,
    },
    Close {
        session: SessionId,
    },
    /// Completed deliveries, which need no reply.
    Acked(Vec<(EvalId, Token)>),
    Answer {
        answer: Answer,
        eval_id: EvalId,
        token: Token,
        reply: oneshot::Sender<Result<(), NotOutstanding>>,
    },
    Stats {
        reply: oneshot::Sender<Stats>,
    },
}

/// A worker's answer to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ack,
    Nack,
    Extend,
}

/// This process does not lead, or no longer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotLeading;

/// Sends commands to the loop while this process leads. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Handle {
    commands: TermQueue<Command>,
    session_count: Arc<AtomicU64>,
}

impl Handle {
    /// Opens the channel of a new loop; it closes when the receiver is dropped.
    pub(crate) fn open(&self) -> mpsc::Receiver<Command> {
        self.commands.open(WAITING_COMMANDS)
    }

    /// Opens a session and returns it with its deliveries.
    pub(crate) async fn open_session(
        &self,
        types: JobTypes,
        credit: u32,
    ) -> Result<(Session, mpsc::Receiver<Result<Delivery, Status>>), NotLeading> {
        let commands = self.commands.sender().ok_or(NotLeading)?;
        let id = SessionId(self.session_count.fetch_add(1, Ordering::Relaxed));
        let (deliveries, receiver) = mpsc::channel(WAITING_DELIVERIES);
        let session = Session { id, commands };
        session
            .send(Command::Open {
                session: id,
                types,
                credit,
                deliveries,
            })
            .await?;
        Ok((session, receiver))
    }

    pub(crate) async fn answer(
        &self,
        answer: Answer,
        eval_id: EvalId,
        token: Token,
    ) -> Result<Result<(), NotOutstanding>, NotLeading> {
        let (reply, replied) = oneshot::channel();
        self.send(Command::Answer {
            answer,
            eval_id,
            token,
            reply,
        })
        .await?;
        replied.await.map_err(|_| NotLeading)
    }

    pub(crate) async fn stats(&self) -> Result<Stats, NotLeading> {
        let (reply, replied) = oneshot::channel();
        self.send(Command::Stats { reply }).await?;
        replied.await.map_err(|_| NotLeading)
    }

    async fn send(&self, command: Command) -> Result<(), NotLeading> {
        let commands = self.commands.sender().ok_or(NotLeading)?;
        commands.send(command).await.map_err(|_| NotLeading)
    }
}

/// One worker's stream. It belongs to one term: in the next, the worker opens another.
pub(crate) struct Session {
    id: SessionId,
    commands: mpsc::Sender<Command>,
}

impl Session {
    pub(crate) async fn grant(&self, credit: u32) -> Result<(), NotLeading> {
        let session = self.id;
        self.send(Command::Credit { session, credit }).await
    }

    /// Completes deliveries.
    pub(crate) async fn ack(&self, deliveries: Vec<(EvalId, Token)>) -> Result<(), NotLeading> {
        self.send(Command::Acked(deliveries)).await
    }

    pub(crate) async fn close(self) {
        let session = self.id;
        // Once the term is over there is nothing to close.
        let _ = self.send(Command::Close { session }).await;
    }

    /// Resolves when the term that the session belongs to is over.
    pub(crate) async fn ended(&self) {
        self.commands.closed().await;
    }

    async fn send(&self, command: Command) -> Result<(), NotLeading> {
        self.commands.send(command).await.map_err(|_| NotLeading)
    }
}
