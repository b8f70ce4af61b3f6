//! Simulated machines, the network between them, and their time, on one thread in an order that the
//! seed decides.
//!
//! In reading order: this file advances the time step by step; [`host`] is a machine, with a tokio
//! runtime of its own whose clock the environment advances; [`network`] holds the messages in flight
//! and the ends of connections; [`link`] delays messages; [`simulated`] is the network for product
//! code, with the connections in [`stream`].
//!
//! A step is a millisecond, and no message is faster: another machine sees the effect of a step in the
//! next one at the earliest. An idle machine lags behind by up to [`ROUND`] and then catches up, so
//! that idle machines cost little; its own clocks do not show the lag.

pub mod host;
mod link;
mod message;
pub mod network;
mod power;
mod simulated;
mod stream;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Once;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

pub use host::{Host, Software};
pub use message::HostId;
pub use power::Power;

use crate::clock;

/// Longest lag of an idle machine, in steps.
const ROUND: u64 = 24;

static INSTALLED: Once = Once::new();

/// All machines and their network.
pub struct Environment {
    now: u64,
    hosts: Vec<Host>,
}

impl Environment {
    /// Creates an environment without machines, and installs its network for the whole process.
    pub fn new(seed: u64) -> Self {
        network::begin(StdRng::seed_from_u64(seed));
        // Once per process: the installed network serves the environment of each thread.
        INSTALLED.call_once(|| connections::install(Box::new(simulated::Simulated)));
        blocking::run_inline();
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

    /// Returns the milliseconds since the start.
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

    /// Ends a machine's software between two instructions. With `power` on, its system closes the
    /// connections; with `power` off, peers get no notice.
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

    /// Pauses a machine, as when it is starved. Its clocks jump when it continues.
    pub fn pause(&mut self, id: HostId, for_ms: u64) {
        let until = self.now + for_ms;
        self.hosts[id].pause(until);
    }

    /// Sets the skew of a machine's wall clock, in nanoseconds.
    pub fn skew(&mut self, id: HostId, nanos: i64) {
        self.hosts[id].set_skew(nanos);
    }

    /// Runs for `for_ms`.
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
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let now = self.now;
        let addressed = network::begin_step(now);
        for host in &mut self.hosts {
            let is_due = host.next_round(ROUND).is_some_and(|due| due <= now);
            if is_due || addressed.contains(&host.id()) {
                host.step(now)?;
            }
        }
        clock::set(now * 1_000_000, clock::EPOCH + now * 1_000_000);
        Ok(())
    }
}
