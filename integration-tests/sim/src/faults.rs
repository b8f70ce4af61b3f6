//! What breaks, when, and when it is mended.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::suite::Suite;
use crate::watcher::Watcher;
use crate::world::{HostId, Power, World, network};

/// Breaks things as the seed says.
pub struct Faults {
    rng: StdRng,
    /// When the next thing breaks, in milliseconds.
    next: u64,
    /// What is to be mended when.
    mending: BTreeMap<(u64, u64), Mend>,
    count: u64,
    /// What was broken how often.
    kinds: BTreeMap<&'static str, u64>,
    is_verbose: bool,
}

enum Mend {
    Restart(HostId),
    Lines(Vec<(HostId, HostId)>),
    Links(HostId),
    Disk,
}

impl Faults {
    pub fn new(seed: u64, is_verbose: bool) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            next: u64::MAX,
            mending: BTreeMap::new(),
            count: 0,
            kinds: BTreeMap::new(),
            is_verbose,
        }
    }

    /// Has the first thing break at `start`, in milliseconds of the world.
    pub fn begin(&mut self, start: u64) {
        self.next = start;
    }

    /// How often what was broken.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let kinds = self.kinds.iter();
        kinds
            .map(|(kind, count)| ((*kind).to_owned(), *count))
            .collect()
    }

    /// Returns when it wants to be asked again, at the latest.
    pub fn next(&self) -> u64 {
        let mend = self.mending.keys().next().map(|(at, _)| *at);
        mend.unwrap_or(u64::MAX).min(self.next)
    }

    /// Breaks and mends what is due.
    pub fn act(&mut self, world: &mut World, suite: &Suite, watcher: &Watcher) {
        while let Some(entry) = self.mending.first_entry() {
            if entry.key().0 > world.now() {
                break;
            }
            let mend = entry.remove();
            self.mend(world, suite, mend);
        }
        if self.next <= world.now() {
            self.break_something(world, suite, watcher);
            self.next = world.now() + self.rng.random_range(100..1_600);
        }
    }

    /// Mends everything.
    pub fn heal(&mut self, world: &mut World, suite: &Suite) {
        for mend in std::mem::take(&mut self.mending).into_values() {
            self.mend(world, suite, mend);
        }
        self.next = u64::MAX;
    }

    fn mend(&mut self, world: &mut World, suite: &Suite, mend: Mend) {
        match mend {
            Mend::Restart(host) => {
                self.say(world, &format!("start {}", world.host(host).name()));
                world.restart(host);
            }
            Mend::Lines(lines) => {
                self.say(world, &format!("mend {lines:?}"));
                lines
                    .into_iter()
                    .for_each(|(from, to)| network::mend(from, to));
            }
            Mend::Links(host) => impair_all(world, host, 0, 0),
            Mend::Disk => suite.disk.set_slowness(1),
        }
    }

    fn later(&mut self, world: &World, after: u64, mend: Mend) {
        self.count += 1;
        self.mending.insert((world.now() + after, self.count), mend);
    }

    fn tally(&mut self, kind: &'static str) {
        *self.kinds.entry(kind).or_default() += 1;
    }

    fn break_something(&mut self, world: &mut World, suite: &Suite, watcher: &Watcher) {
        let host = self.somebody(suite, watcher, world);
        let name = world.host(host).name().to_owned();
        match self.rng.random_range(0..20_u32) {
            0..=3 => {
                let after = self.rng.random_range(50..4_000);
                let power = match self.rng.random_bool(0.5) {
                    true => Power::On,
                    false => Power::Off,
                };
                if world.host(host).is_up() {
                    self.say(world, &format!("crash {name}, power {power:?}, {after} ms"));
                    self.tally(match (host == suite.etcd, power) {
                        (true, _) => "etcd crashes",
                        (false, Power::On) => "a process is killed",
                        (false, Power::Off) => "a machine loses its power",
                    });
                    watcher.note_crash(world.address(host));
                    world.crash(host, power);
                    self.later(world, after, Mend::Restart(host));
                }
            }
            4..=6 => {
                let after = self.rng.random_range(200..8_000);
                let others = world.hosts().map(|other| other.id());
                let others: Vec<HostId> = others.filter(|other| *other != host).collect();
                let lines: Vec<_> = match self.rng.random_range(0..3_u32) {
                    0 => others.iter().map(|other| (host, *other)).collect(),
                    1 => others.iter().map(|other| (*other, host)).collect(),
                    _ => others
                        .iter()
                        .flat_map(|other| [(host, *other), (*other, host)])
                        .collect(),
                };
                self.tally("a machine is cut off from all");
                self.cut(world, lines, after);
            }
            7..=9 => {
                let after = self.rng.random_range(200..8_000);
                // Where what is held up does the most harm when it arrives after all.
                let other = match self.rng.random_bool(0.6) {
                    true => suite.etcd,
                    false => self.rng.random_range(0..world.hosts().count()),
                };
                let lines = match self.rng.random_range(0..3_u32) {
                    0 => vec![(host, other)],
                    1 => vec![(other, host)],
                    _ => vec![(host, other), (other, host)],
                };
                self.tally("a line between two is cut");
                self.cut(world, lines, after);
            }
            10..=13 => {
                let for_ms = self.rng.random_range(100..7_000);
                self.tally("a machine stops and goes on");
                self.say(world, &format!("pause {name} for {for_ms} ms"));
                world.pause(host, for_ms);
            }
            14 => {
                let slowness = self.rng.random_range(20..1_500);
                let after = self.rng.random_range(500..5_000);
                self.tally("etcd's disk is slow");
                self.say(world, &format!("disk slow by {slowness} ms for {after} ms"));
                suite.disk.set_slowness(slowness);
                self.later(world, after, Mend::Disk);
            }
            15 | 16 => {
                let slowness = self.rng.random_range(20..1_500);
                let after = self.rng.random_range(500..5_000);
                self.say(
                    world,
                    &format!("{name} slow by {slowness} ms for {after} ms"),
                );
                self.tally("a machine's lines are slow");
                impair_all(world, host, slowness, 0);
                self.later(world, after, Mend::Links(host));
            }
            17 => {
                let loss = self.rng.random_range(20..400);
                let after = self.rng.random_range(500..5_000);
                self.say(
                    world,
                    &format!("{name} loses {loss} of 1,000 for {after} ms"),
                );
                self.tally("a machine's lines lose messages");
                impair_all(world, host, 0, loss);
                self.later(world, after, Mend::Links(host));
            }
            18 => {
                let millis = self.rng.random_range(-30_000..30_000_i64);
                self.say(world, &format!("clock of {name} off by {millis} ms"));
                self.tally("a clock is set");
                world.skew(host, millis * 1_000_000);
            }
            _ => {
                self.say(world, &format!("connections of {name} reset"));
                self.tally("connections are reset");
                network::reset_all(host);
            }
        }
    }

    fn cut(&mut self, world: &World, lines: Vec<(HostId, HostId)>, after: u64) {
        self.say(world, &format!("cut {lines:?} for {after} ms"));
        for (from, to) in &lines {
            network::cut(*from, *to);
        }
        self.later(world, after, Mend::Lines(lines));
    }

    /// Draws a machine: mostly a leader, because most depends on them.
    fn somebody(&mut self, suite: &Suite, watcher: &Watcher, world: &World) -> HostId {
        let snapshot = watcher.snapshot();
        let mut leaders: Vec<&str> = snapshot
            .leaders()
            .map(|(_, leader)| leader.value.address.as_str())
            .collect();
        leaders.sort_unstable();
        match self.rng.random_range(0..10_u32) {
            0..=3 if !leaders.is_empty() => {
                let address = leaders[self.rng.random_range(0..leaders.len())];
                let own = |id: HostId| format!("http://{}:", world.address(id));
                let mut hosts = world.hosts().map(|host| host.id());
                hosts
                    .find(|id| address.starts_with(&own(*id)))
                    .unwrap_or(suite.etcd)
            }
            4 | 5 => suite.nodes[self.rng.random_range(0..suite.nodes.len())].0,
            6 => suite.gateways[self.rng.random_range(0..suite.gateways.len())],
            7 => suite.etcd,
            _ => suite.services[self.rng.random_range(0..suite.services.len())],
        }
    }

    fn say(&self, world: &World, what: &str) {
        if self.is_verbose {
            println!("{} ! {what}", world.now());
        }
    }
}

fn impair_all(world: &World, host: HostId, slowness: u64, loss: u32) {
    for other in world.hosts().map(|other| other.id()) {
        network::impair(host, other, slowness, loss);
        network::impair(other, host, slowness, loss);
    }
}
