//! The two leaders that a worker talks to, found through the replica's election entries.

use std::sync::{Arc, Mutex, PoisonError};

use identity::Role;
use model::LeaderInfo;
use service_kit::channel::BadAddress;
use service_kit::{TracedChannel, Transport};
use store::Replica;
use tokio::sync::watch;

/// The leader of one service: its address is looked up each time, its channel is kept as long as
/// the address stays. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leader {
    service: &'static str,
    role: Role,
    transport: Transport,
    replica: Replica,
    /// The revision that elected the newest leader; `None`: there is none.
    terms: watch::Receiver<Option<u64>>,
    last: Arc<Mutex<Option<(String, TracedChannel)>>>,
}

/// A leader that was found.
#[derive(Clone)]
pub(crate) struct Found {
    leader: Leader,
    pub(crate) channel: TracedChannel,
    /// The revision that elected it.
    term: u64,
}

impl Found {
    /// Returns once another leader, or another term of the same process, is known: pending calls to
    /// this one are void then, however long its connection stays open. A leader that has resigned
    /// without a successor may be draining in order, so that is no reason to leave it.
    pub(crate) async fn succeeded(&self) {
        let mut terms = self.leader.terms.clone();
        let other = |term: &Option<u64>| term.is_some_and(|term| term != self.term);
        if terms.wait_for(other).await.is_err() {
            // The replica has ended, and this process with it.
            std::future::pending().await
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLeader {
    #[error("{service} has no leader")]
    Vacant { service: &'static str },
    #[error("the leader of {service} registered an invalid address")]
    BadAddress {
        service: &'static str,
        #[source]
        source: BadAddress,
    },
}

impl Leader {
    pub(crate) fn of(
        service: &'static str,
        role: Role,
        transport: Transport,
        replica: Replica,
    ) -> Self {
        let (sender, terms) = watch::channel(term(&replica, service));
        tokio::spawn(follow(service, replica.clone(), sender));
        Self {
            service,
            role,
            transport,
            replica,
            terms,
            last: Arc::default(),
        }
    }

    /// Returns the current leader by the replica.
    pub(crate) fn find(&self) -> Result<Found, NoLeader> {
        let service = self.service;
        let snapshot = self.replica.snapshot();
        let leader = snapshot.leader(service);
        let leader = leader.ok_or(NoLeader::Vacant { service })?;
        Ok(Found {
            leader: self.clone(),
            channel: self.channel(leader.value.clone())?,
            term: leader.create_index,
        })
    }

    fn channel(&self, leader: LeaderInfo) -> Result<TracedChannel, NoLeader> {
        let service = self.service;
        // Address and channel are replaced together: no half-done state.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((address, channel)) = &*last
            && *address == leader.address
        {
            return Ok(channel.clone());
        }
        let channel = self
            .transport
            .connect_lazy(&leader.address, self.role)
            .map_err(|source| NoLeader::BadAddress { service, source })?;
        *last = Some((leader.address, channel.clone()));
        Ok(channel)
    }
}

fn term(replica: &Replica, service: &str) -> Option<u64> {
    let snapshot = replica.snapshot();
    snapshot.leader(service).map(|leader| leader.create_index)
}

/// Publishes the term of the newest leader until the replica ends: one look at each new state, however
/// many calls wait for the end of a term.
async fn follow(service: &'static str, replica: Replica, terms: watch::Sender<Option<u64>>) {
    let mut revisions = replica.revisions();
    while revisions.changed().await.is_ok() {
        let newest = term(&replica, service);
        terms.send_if_modified(|term| std::mem::replace(term, newest) != newest);
    }
}
