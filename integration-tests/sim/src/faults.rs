//! Fault injection: which fault at which time, and its repair.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::checker::Checker;
use crate::environment::{Environment, HostId, Power, network};
use crate::suite::Suite;

/// Makes another stream of random numbers from the seed of the faults.
const ADDRESS_STREAM: u64 = 1 << 58;

/// Probability that a node comes back with another address.
const ADDRESS_CHANGES: f64 = 0.5;

/// Injects faults as the seed decides.
pub struct Faults {
    rng: StdRng,
    /// Draws of other addresses, apart from `rng`: the other faults are the same without them.
    address_rng: StdRng,
    /// Time of the next fault, in milliseconds.
    next: u64,
    /// (Time, number) → repair.
    repairs: BTreeMap<(u64, u64), Repair>,
    count: u64,
    /// Kind of fault → count.
    kinds: BTreeMap<&'static str, u64>,
    is_verbose: bool,
}

enum Repair {
    Restart(HostId),
    Lines(Vec<(HostId, HostId)>),
    Links(HostId),
    Disk,
}

impl Faults {
    pub fn new(seed: u64, is_verbose: bool) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            address_rng: StdRng::seed_from_u64(seed ^ ADDRESS_STREAM),
            next: u64::MAX,
            repairs: BTreeMap::new(),
            count: 0,
            kinds: BTreeMap::new(),
            is_verbose,
        }
    }

    /// Schedules the first fault at `start`, in simulated milliseconds.
    pub fn begin(&mut self, start: u64) {
        self.next = start;
    }

    /// Returns the count of each kind of fault.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let kinds = self.kinds.iter();
        kinds
            .map(|(kind, count)| ((*kind).to_owned(), *count))
            .collect()
    }

    /// Returns the time of the next fault or repair.
    pub fn next(&self) -> u64 {
        let repair = self.repairs.keys().next().map(|(at, _)| *at);
        repair.unwrap_or(u64::MAX).min(self.next)
    }

    /// Injects and repairs the faults that are due.
    pub fn act(&mut self, environment: &mut Environment, suite: &Suite, checker: &Checker) {
        while let Some(entry) = self.repairs.first_entry() {
            if entry.key().0 > environment.now() {
                break;
            }
            let repair = entry.remove();
            self.repair(environment, suite, repair);
        }
        if self.next <= environment.now() {
            self.inject(environment, suite, checker);
            self.next = environment.now() + self.rng.random_range(100..1_600);
        }
    }

    /// Repairs every fault.
    pub fn heal(&mut self, environment: &mut Environment, suite: &Suite) {
        for repair in std::mem::take(&mut self.repairs).into_values() {
            self.repair(environment, suite, repair);
        }
        self.next = u64::MAX;
    }

    fn repair(&mut self, environment: &mut Environment, suite: &Suite, repair: Repair) {
        match repair {
            Repair::Restart(host) => {
                self.change_address(environment, suite, host);
                self.log(
                    environment,
                    &format!("start {}", environment.host(host).name()),
                );
                environment.restart(host);
            }
            Repair::Lines(lines) => {
                self.log(environment, &format!("repair {lines:?}"));
                lines
                    .into_iter()
                    .for_each(|(from, to)| network::repair(from, to));
            }
            Repair::Links(host) => impair_all(environment, host, 0, 0),
            Repair::Disk => suite.disk.set_slowness(1),
        }
    }

    /// Gives a node that starts again another address, or not.
    fn change_address(&mut self, environment: &Environment, suite: &Suite, host: HostId) {
        let is_node = suite.nodes.iter().any(|(node, _)| *node == host);
        if !is_node || !self.address_rng.random_bool(ADDRESS_CHANGES) {
            return;
        }
        let address = suite.host_ips.change(host, &mut self.address_rng);
        let name = environment.host(host).name();
        self.log(environment, &format!("{name} comes back with {address}"));
        self.tally("a node comes back with another address");
    }

    fn later(&mut self, environment: &Environment, after: u64, repair: Repair) {
        self.count += 1;
        self.repairs
            .insert((environment.now() + after, self.count), repair);
    }

    fn tally(&mut self, kind: &'static str) {
        *self.kinds.entry(kind).or_default() += 1;
    }

    fn inject(&mut self, environment: &mut Environment, suite: &Suite, checker: &Checker) {
        let host = self.draw_host(suite, checker, environment);
        match self.rng.random_range(0..20_u32) {
            0..=3 => self.crash(environment, suite, checker, host),
            4..=6 => self.cut_off(environment, host),
            7..=9 => self.cut_line(environment, suite, host),
            10..=13 => {
                let for_ms = self.rng.random_range(100..7_000);
                let name = environment.host(host).name().to_owned();
                self.tally("a machine pauses");
                self.log(environment, &format!("pause {name} for {for_ms} ms"));
                environment.pause(host, for_ms);
            }
            14 => self.slow_disk(environment, suite),
            15 | 16 => {
                let slowness = self.rng.random_range(20..1_500);
                self.impair(environment, host, (slowness, 0));
            }
            17 => {
                let loss = self.rng.random_range(20..400);
                self.impair(environment, host, (0, loss));
            }
            18 => {
                let millis = self.rng.random_range(-30_000..30_000_i64);
                let name = environment.host(host).name().to_owned();
                self.log(environment, &format!("clock of {name} off by {millis} ms"));
                self.tally("a clock is set");
                environment.skew(host, millis * 1_000_000);
            }
            _ => {
                let name = environment.host(host).name().to_owned();
                self.log(environment, &format!("connections of {name} reset"));
                self.tally("connections are reset");
                network::reset_all(host);
            }
        }
    }

    fn crash(
        &mut self,
        environment: &mut Environment,
        suite: &Suite,
        checker: &Checker,
        host: HostId,
    ) {
        let after = self.rng.random_range(50..4_000);
        let power = match self.rng.random_bool(0.5) {
            true => Power::On,
            false => Power::Off,
        };
        if !environment.host(host).is_up() {
            return;
        }
        let name = environment.host(host).name().to_owned();
        self.log(
            environment,
            &format!("crash {name}, power {power:?}, {after} ms"),
        );
        self.tally(match (host == suite.etcd, power) {
            (true, _) => "etcd crashes",
            (false, Power::On) => "a process is killed",
            (false, Power::Off) => "a machine loses its power",
        });
        checker.note_crash(environment.address(host));
        environment.crash(host, power);
        self.later(environment, after, Repair::Restart(host));
    }

    /// Cuts a machine off from all others, in one or in both directions.
    fn cut_off(&mut self, environment: &Environment, host: HostId) {
        let after = self.rng.random_range(200..8_000);
        let others = environment.hosts().map(|other| other.id());
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
        self.cut(environment, lines, after);
    }

    fn cut_line(&mut self, environment: &Environment, suite: &Suite, host: HostId) {
        let after = self.rng.random_range(200..8_000);
        // Mostly the line to etcd, where delayed messages do the most harm.
        let other = match self.rng.random_bool(0.6) {
            true => suite.etcd,
            false => self.rng.random_range(0..environment.hosts().count()),
        };
        let lines = match self.rng.random_range(0..3_u32) {
            0 => vec![(host, other)],
            1 => vec![(other, host)],
            _ => vec![(host, other), (other, host)],
        };
        self.tally("a line between two is cut");
        self.cut(environment, lines, after);
    }

    fn slow_disk(&mut self, environment: &Environment, suite: &Suite) {
        let slowness = self.rng.random_range(20..1_500);
        let after = self.rng.random_range(500..5_000);
        self.tally("etcd's disk is slow");
        self.log(
            environment,
            &format!("disk slow by {slowness} ms for {after} ms"),
        );
        suite.disk.set_slowness(slowness);
        self.later(environment, after, Repair::Disk);
    }

    /// Makes the lines of a machine slow, or lose some messages of a thousand.
    fn impair(&mut self, environment: &Environment, host: HostId, (slowness, loss): (u64, u32)) {
        let after = self.rng.random_range(500..5_000);
        let name = environment.host(host).name().to_owned();
        if loss > 0 {
            self.log(
                environment,
                &format!("{name} loses {loss} of 1,000 for {after} ms"),
            );
            self.tally("a machine's lines lose messages");
        } else {
            self.log(
                environment,
                &format!("{name} slow by {slowness} ms for {after} ms"),
            );
            self.tally("a machine's lines are slow");
        }
        impair_all(environment, host, slowness, loss);
        self.later(environment, after, Repair::Links(host));
    }

    fn cut(&mut self, environment: &Environment, lines: Vec<(HostId, HostId)>, after: u64) {
        self.log(environment, &format!("cut {lines:?} for {after} ms"));
        for (from, to) in &lines {
            network::cut(*from, *to);
        }
        self.later(environment, after, Repair::Lines(lines));
    }

    /// Draws a machine, with a preference for leaders.
    fn draw_host(&mut self, suite: &Suite, checker: &Checker, environment: &Environment) -> HostId {
        let snapshot = checker.snapshot();
        let mut leaders: Vec<&str> = snapshot
            .leaders()
            .map(|(_, leader)| leader.value.address.as_str())
            .collect();
        leaders.sort_unstable();
        match self.rng.random_range(0..10_u32) {
            0..=3 if !leaders.is_empty() => {
                let address = leaders[self.rng.random_range(0..leaders.len())];
                let own = |id: HostId| format!("http://{}:", environment.address(id));
                let mut hosts = environment.hosts().map(|host| host.id());
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

    fn log(&self, environment: &Environment, text: &str) {
        if self.is_verbose {
            println!("{} ! {text}", environment.now());
        }
    }
}

fn impair_all(environment: &Environment, host: HostId, slowness: u64, loss: u32) {
    for other in environment.hosts().map(|other| other.id()) {
        network::impair(host, other, slowness, loss);
        network::impair(other, host, slowness, loss);
    }
}
