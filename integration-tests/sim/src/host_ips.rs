//! Host addresses that the nodes report, changed between two runs of an agent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::environment::HostId;

/// The addresses that a node may come back with besides the present one: few, so that some come twice.
const ADDRESSES: u8 = 3;

/// Machine → the host address of its node. Cheap to clone: clones share the addresses.
///
/// Messages between simulated machines do not use it: it is the address that allocations get.
#[derive(Clone, Default)]
pub struct HostIps {
    changed: Arc<Mutex<BTreeMap<HostId, IpAddr>>>,
}

impl HostIps {
    /// Returns the address with which the agent of `host` starts: at first loopback.
    pub fn of(&self, host: HostId) -> IpAddr {
        let changed = self.lock().get(&host).copied();
        changed.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    /// Draws another address for the next start of `host`.
    pub fn change(&self, host: HostId, rng: &mut StdRng) -> IpAddr {
        let number = u8::try_from(host).expect("there are few machines");
        let present = self.of(host);
        let others = (1..=ADDRESSES).map(|last| IpAddr::from([10, 1, number, last]));
        let others: Vec<_> = others.filter(|other| *other != present).collect();
        let drawn = others[rng.random_range(0..others.len())];
        self.lock().insert(host, drawn);
        drawn
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<HostId, IpAddr>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
