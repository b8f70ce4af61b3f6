//! A machine: its software on a tokio runtime whose clock the environment advances.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::message::HostId;
use super::network;
use crate::clock;

/// The software of a machine, created anew at each start.
pub type Software = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>>;

pub struct Host {
    id: HostId,
    name: String,
    address: IpAddr,
    software: Software,
    running: Option<Running>,
    /// The time it has run up to.
    now: u64,
    paused_until: u64,
    /// The time of the last start, or of the end of the last pause.
    sound_since: u64,
    skew: i64,
}

/// State between a start and an end.
struct Running {
    runtime: Runtime,
    main: JoinHandle<Result<(), String>>,
    /// The time of the start, and the runtime's clock then.
    since: u64,
    began: Instant,
}

impl Host {
    pub(super) fn new(id: HostId, name: &str, address: IpAddr, software: Software) -> Self {
        Self {
            id,
            name: name.to_owned(),
            address,
            software,
            running: None,
            now: 0,
            paused_until: 0,
            sound_since: 0,
            skew: 0,
        }
    }

    pub fn id(&self) -> HostId {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    pub fn is_up(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn set_skew(&mut self, nanos: i64) {
        self.skew = nanos;
    }

    pub(super) fn pause(&mut self, until: u64) {
        self.paused_until = self.paused_until.max(until);
        self.sound_since = self.sound_since.max(until);
    }

    /// Returns since when it has run without a pause, in milliseconds, which may be later than now;
    /// `None`: it is down.
    pub fn sound_since(&self) -> Option<u64> {
        self.running.as_ref().map(|_| self.sound_since)
    }

    /// Returns the time of its next step without a message; `None`: it is down.
    pub(super) fn next_round(&self, round: u64) -> Option<u64> {
        self.running.as_ref()?;
        Some((self.now + round).max(self.paused_until))
    }

    pub(super) fn start(&mut self, now: u64) {
        self.enter(now);
        self.now = now;
        self.sound_since = now;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing of the system");
        let software = (self.software)();
        let (main, began) = {
            let _entered = runtime.enter();
            (tokio::spawn(software), Instant::now())
        };
        self.running = Some(Running {
            runtime,
            main,
            since: now,
            began,
        });
        network::leave();
    }

    pub(super) fn stop(&mut self, now: u64) {
        self.enter(now);
        drop(self.running.take());
        self.paused_until = 0;
        network::leave();
    }

    /// Catches up with `now`, receives the messages, and runs for one step.
    pub(super) fn step(&mut self, now: u64) -> Result<(), String> {
        network::deliver(self.id);
        if self.running.is_none() {
            // The system of a killed process refuses messages.
            network::hand_over(self.id);
            return Ok(());
        }
        if now < self.paused_until {
            return Ok(());
        }
        if self.now < now {
            self.go_to(now);
        }
        network::hand_over(self.id);
        self.go_to(now + 1);
        let running = self.running.as_mut().expect("it was there above");
        if !running.main.is_finished() {
            return Ok(());
        }
        let ended = running.runtime.block_on(&mut running.main);
        Err(match ended {
            Ok(Ok(())) => format!("{} ended by itself", self.name),
            Ok(Err(error)) => format!("{}: {error}", self.name),
            Err(error) => format!("{}: {error}", self.name),
        })
    }

    fn go_to(&mut self, moment: u64) {
        self.enter(moment);
        let slept_through = self.paused_until > self.now;
        self.now = moment;
        let Some(running) = &self.running else { return };
        let until = running.began + Duration::from_millis(moment - running.since);
        running.runtime.block_on(async {
            if slept_through {
                // The clock jumps: nothing ran, and every passed deadline is due now.
                tokio::time::advance(until.saturating_duration_since(Instant::now())).await;
            }
            tokio::time::sleep_until(until).await;
        });
        self.paused_until = 0;
        network::leave();
    }

    /// Makes this the current machine, with its clocks.
    fn enter(&self, moment: u64) {
        let steady = moment * 1_000_000;
        let wall = (clock::EPOCH + steady).saturating_add_signed(self.skew);
        clock::set(steady, wall);
        network::enter(self.id);
    }
}
