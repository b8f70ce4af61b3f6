//! The two leaders that a worker talks to, found through the replica's election entries.

use std::sync::{Arc, Mutex, PoisonError};

use identity::Role;
use model::LeaderInfo;
use service_kit::channel::BadAddress;
use service_kit::{TracedChannel, Transport};
use store::Replica;

/// The leader of one service: its address is looked up each time, its channel is kept as long as
/// the address stays. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leader {
    service: &'static str,
    role: Role,
    transport: Transport,
    replica: Replica,
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
        let mut revisions = self.leader.replica.revisions();
        loop {
            let leads = self.leader.term();
            if leads.is_some_and(|term| term != self.term) {
                return;
            }
            if revisions.changed().await.is_err() {
                // The replica has ended, and this process with it.
                return std::future::pending().await;
            }
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
        Self {
            service,
            role,
            transport,
            replica,
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

    fn term(&self) -> Option<u64> {
        let snapshot = self.replica.snapshot();
        snapshot
            .leader(self.service)
            .map(|leader| leader.create_index)
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
