//! Switch between the hosts: forwards packets from device to device, and delays or drops them by
//! rules.
//!
//! It runs on a thread of its own, so that the load of the workload and the checks does not delay
//! packets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_tun::Tun;
use tokio_util::sync::CancellationToken;

use super::hosts;

/// The largest packet: large ones are cheap, and nothing here depends on their size.
pub const MTU: i32 = 9_000;
/// Capacity for delayed packets of a host; more are dropped, as by a real queue.
const DELAYED: usize = 20_000;

/// Rules for packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Pairs of hosts that are cut off from each other, the smaller number first.
    cut: BTreeSet<(u8, u8)>,
    /// Sender → delay.
    delay: BTreeMap<u8, Duration>,
}

impl Rules {
    /// Cuts each of `left` off from each of `right`.
    pub fn cut(&mut self, left: &[u8], right: &[u8]) {
        for left in left {
            for right in right.iter().filter(|right| *right != left) {
                self.cut.insert((*left.min(right), *left.max(right)));
            }
        }
    }

    /// Delays the packets of `senders`.
    pub fn delay(&mut self, senders: &[u8], by: Duration) {
        self.delay
            .extend(senders.iter().map(|sender| (*sender, by)));
    }

    /// Returns the delay of a packet; `None`: it is dropped.
    pub fn fate(&self, from: u8, to: u8) -> Option<Duration> {
        let is_cut = self.cut.contains(&(from.min(to), from.max(to)));
        let delay = self.delay.get(&from).copied().unwrap_or_default();
        (!is_cut).then_some(delay)
    }
}

/// A running switch, which ends when dropped.
#[derive(Debug)]
pub struct Switch {
    rules: Arc<RwLock<Rules>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

struct Packet {
    due: Instant,
    to: u8,
    bytes: Vec<u8>,
}

impl Switch {
    /// Starts to switch between `devices`, one for each host in the order of their numbers, which
    /// belong to `runtime`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(runtime: Runtime, devices: Vec<Tun>) -> Result<Self> {
        let rules = Arc::new(RwLock::new(Rules::default()));
        let stop = CancellationToken::new();
        let (its_rules, its_stop) = (Arc::clone(&rules), stop.clone());
        let thread = std::thread::Builder::new()
            .name("switch".to_owned())
            .spawn(move || runtime.block_on(serve(devices, its_rules, its_stop)))
            .context("cannot start the switch's thread")?;
        Ok(Self {
            rules,
            stop,
            thread: Some(thread),
        })
    }

    /// Replaces the rules.
    pub fn set(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn serve(devices: Vec<Tun>, rules: Arc<RwLock<Rules>>, stop: CancellationToken) {
    let devices = Arc::new(devices);
    for (host, _) in (0_u8..).zip(devices.iter()) {
        let (later, delayed) = mpsc::channel(DELAYED);
        tokio::spawn(deliver_late(Arc::clone(&devices), delayed));
        tokio::spawn(forward(
            host,
            Arc::clone(&devices),
            Arc::clone(&rules),
            later,
        ));
    }
    stop.cancelled().await;
}

async fn forward(
    from: u8,
    devices: Arc<Vec<Tun>>,
    rules: Arc<RwLock<Rules>>,
    later: mpsc::Sender<Packet>,
) {
    let mut buffer = vec![0; 65_536];
    // An error means that the device is gone, and with it the host.
    while let Ok(length) = devices[usize::from(from)].recv(&mut buffer).await {
        let packet = &buffer[..length];
        let Some(to) = destination(packet).filter(|to| usize::from(*to) < devices.len()) else {
            continue;
        };
        let fate = rules
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .fate(from, to);
        match fate {
            None => {}
            Some(Duration::ZERO) => hand_over(&devices, to, packet).await,
            Some(delay) => {
                let due = Instant::now() + delay;
                let bytes = packet.to_vec();
                // Full: dropped.
                drop(later.try_send(Packet { due, to, bytes }));
            }
        }
    }
}

async fn deliver_late(devices: Arc<Vec<Tun>>, mut delayed: mpsc::Receiver<Packet>) {
    while let Some(packet) = delayed.recv().await {
        sleep_until(packet.due).await;
        hand_over(&devices, packet.to, &packet.bytes).await;
    }
}

async fn hand_over(devices: &[Tun], to: u8, packet: &[u8]) {
    // A device that is being removed drops the packet.
    drop(devices[usize::from(to)].send(packet).await);
}

/// Returns the host that an IPv4 packet is for.
fn destination(packet: &[u8]) -> Option<u8> {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return None;
    }
    let address: [u8; 4] = packet[16..20].try_into().ok()?;
    hosts::number(Ipv4Addr::from(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_drops_packets_in_both_directions_and_of_no_other_hosts() {
        let mut rules = Rules::default();
        rules.cut(&[1, 2], &[2, 3]);
        assert_eq!(rules.fate(1, 3), None);
        assert_eq!(rules.fate(3, 1), None);
        assert_eq!(rules.fate(3, 2), None);
        assert_eq!(rules.fate(1, 2), None);
        assert_eq!(
            rules.fate(2, 2),
            Some(Duration::ZERO),
            "a host is not cut off from itself"
        );
        assert_eq!(rules.fate(1, 4), Some(Duration::ZERO));
    }

    #[test]
    fn only_packets_of_a_delayed_sender_are_late() {
        let mut rules = Rules::default();
        let late = Duration::from_millis(200);
        rules.delay(&[5], late);
        assert_eq!(rules.fate(5, 1), Some(late));
        assert_eq!(rules.fate(1, 5), Some(Duration::ZERO));
    }

    #[test]
    fn packets_go_to_the_address_in_their_header() {
        let mut packet = [0_u8; 40];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&hosts::address(7).octets());
        assert_eq!(destination(&packet), Some(7));
        packet[0] = 0x60;
        assert_eq!(destination(&packet), None, "not IPv4");
        assert_eq!(destination(&packet[..10]), None);
    }
}
