//! Machines, the network between them, and the time of both: everything runs on one thread, in an
//! order that follows from the seed.
//!
//! In reading order: this file goes from moment to moment; [`host`] is a machine, with a tokio
//! runtime of its own whose clock is moved from outside; [`network`] holds what is on the way, and
//! the ends of connections; [`link`] says when a message arrives.
//!
//! A moment is a millisecond, and no message is faster: what a machine does in one moment cannot be
//! noticed by another before the next. A machine that hears nothing lags behind by up to
//! [`ROUND`] and then catches up, so that quiet machines cost little; to itself it is never late.

pub mod host;
mod link;
pub mod network;
mod stream;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Once;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

pub use host::{Host, Software};
pub use network::HostId;

use crate::clock;

/// How far a machine that hears nothing may lag behind, in moments.
const ROUND: u64 = 24;

static INSTALLED: Once = Once::new();

/// All machines and what is between them.
pub struct World {
    now: u64,
    hosts: Vec<Host>,
}

impl World {
    /// Makes a world without machines, and has everything in this process use its network.
    pub fn new(seed: u64) -> Self {
        network::begin(StdRng::seed_from_u64(seed));
        // Once a process: what this puts in the place of TCP serves the world of whichever thread.
        INSTALLED.call_once(|| net::install(Box::new(network::Simulated)));
        offload::run_inline();
        Self {
            now: 0,
            hosts: Vec::new(),
        }
    }

    /// Adds a machine and starts its software.
    pub fn add(&mut self, name: &str, software: Software) -> HostId {
        let id = self.hosts.len();
        let address = network::add_host(id);
        let mut host = Host::new(id, name, address, software);
        host.start(self.now);
        self.hosts.push(host);
        id
    }

    /// Milliseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn host(&self, id: HostId) -> &Host {
        &self.hosts[id]
    }

    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    pub fn address(&self, id: HostId) -> IpAddr {
        self.hosts[id].address()
    }

    /// Ends a machine's software between two instructions. With `power` off nobody is told; else
    /// the system closes its connections.
    pub fn crash(&mut self, id: HostId, power: Power) {
        if !self.hosts[id].is_up() {
            return;
        }
        network::go_down(id, power);
        self.hosts[id].stop(self.now);
    }

    /// Starts a machine's software again.
    pub fn restart(&mut self, id: HostId) {
        if self.hosts[id].is_up() {
            return;
        }
        network::come_up(id);
        self.hosts[id].start(self.now);
    }

    /// Lets a machine do nothing for so long, as when it is starved: to itself no time has passed
    /// when it goes on, but for its clocks.
    pub fn pause(&mut self, id: HostId, for_ms: u64) {
        let until = self.now + for_ms;
        self.hosts[id].pause(until);
    }

    /// Sets what a machine's wall clock is off by, in nanoseconds.
    pub fn skew(&mut self, id: HostId, nanos: i64) {
        self.hosts[id].set_skew(nanos);
    }

    /// Goes on for so long.
    ///
    /// # Errors
    /// The software of a machine ended by itself.
    pub fn run(&mut self, for_ms: u64) -> Result<(), String> {
        let end = self.now + for_ms;
        while self.now < end {
            let round = self.hosts.iter().filter_map(|host| host.next_round(ROUND));
            let message = network::next_event();
            let next = round.chain(message).min().unwrap_or(end);
            self.now = next.clamp(self.now + 1, end);
            self.moment()?;
        }
        Ok(())
    }

    fn moment(&mut self) -> Result<(), String> {
        let now = self.now;
        let told = network::begin_moment(now);
        for host in &mut self.hosts {
            let is_due = host.next_round(ROUND).is_some_and(|due| due <= now);
            if is_due || told.contains(&host.id()) {
                host.live(now)?;
            }
        }
        clock::set(now * 1_000_000, clock::EPOCH + now * 1_000_000);
        Ok(())
    }
}

/// How a machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The process is killed; its system goes on.
    On,
    /// The machine is gone.
    Off,
}
