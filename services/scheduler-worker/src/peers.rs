//! The two leaders that a worker talks to, found through the replica's election entries.

use std::sync::{Arc, Mutex, PoisonError};

use service_kit::channel::BadAddress;
use service_kit::{TracedChannel, connect_lazy};
use store::Replica;

/// The leader of one service: its address is looked up each time, its channel is kept as long as
/// the address stays. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leader {
    service: &'static str,
    replica: Replica,
    last: Arc<Mutex<Option<(String, TracedChannel)>>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLeader {
    #[error("{service} has no leader")]
    Vacant { service: &'static str },
    #[error("the leader of {service} gave an address that is none")]
    BadAddress {
        service: &'static str,
        #[source]
        source: BadAddress,
    },
}

impl Leader {
    pub(crate) fn of(service: &'static str, replica: Replica) -> Self {
        Self {
            service,
            replica,
            last: Arc::default(),
        }
    }

    /// Returns a channel to whoever leads now, as far as the replica knows.
    pub(crate) fn channel(&self) -> Result<TracedChannel, NoLeader> {
        let service = self.service;
        let leader = self
            .replica
            .leader(service)
            .ok_or(NoLeader::Vacant { service })?;
        // Address and channel are replaced together: no half-done state.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((address, channel)) = &*last
            && *address == leader.address
        {
            return Ok(channel.clone());
        }
        let channel = connect_lazy(&leader.address)
            .map_err(|source| NoLeader::BadAddress { service, source })?;
        *last = Some((leader.address, channel.clone()));
        Ok(channel)
    }
}
