//! Random histories: late, repeated and failing answers, and agents that die.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use model::RestartScope;

/// One action of the simulated node.
#[derive(Clone, Debug)]
enum Act {
    /// Answers the oldest open effect; the number decides how.
    Answer(u8),
    /// The process of this task ends, if one runs.
    End(u8, i32),
    Pass(u16),
    Stop(bool),
    Restart(u8),
    /// A hook of a running process fails its task.
    Fail(u8),
    Contacted,
    AgentDies(bool),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0_u8..10).prop_map(Act::Answer),
        4 => (0_u8..6, 0_i32..3).prop_map(|(task, code)| Act::End(task, code)),
        4 => (0_u16..40).prop_map(Act::Pass),
        1 => any::<bool>().prop_map(Act::Stop),
        1 => (0_u8..8).prop_map(Act::Restart),
        1 => (0_u8..6).prop_map(Act::Fail),
        1 => Just(Act::Contacted),
        1 => any::<bool>().prop_map(Act::AgentDies),
    ];
    proptest::collection::vec(act, 0..120)
}

fn specs() -> impl Strategy<Value = AllocSpec> {
    let role = prop_oneof![
        Just(Role::Prestart),
        Just(Role::PrestartSidecar),
        Just(Role::Main),
        Just(Role::Poststart),
        Just(Role::PoststartSidecar),
        Just(Role::Poststop),
    ];
    let job_type = prop_oneof![
        Just(JobType::Service),
        Just(JobType::Batch),
        Just(JobType::System)
    ];
    (
        job_type,
        proptest::collection::vec((role, any::<bool>(), 0_u32..3, 0_u64..4), 0..5),
        proptest::option::of(20_u64..2000),
        proptest::option::of(5_u64..100),
        0_u64..4,
    )
        .prop_map(|(job_type, tasks, limit, with_health, delay)| {
            let mut spec = alloc(job_type).with("main", Role::Main);
            for (position, (role, leader, attempts, delay)) in tasks.into_iter().enumerate() {
                let name = format!("task{position}");
                spec = spec.with(&name, role).edit(&name, |task| {
                    task.leader = leader && role == Role::Main;
                    task.restart.attempts = attempts;
                    task.shutdown_delay = seconds(delay);
                });
            }
            spec.run_until = limit.map(|limit| WALL_START.plus(seconds(limit)));
            spec.group.shutdown_delay = seconds(delay);
            match with_health {
                Some(deadline) => spec.with_health(10, deadline),
                None => spec,
            }
        })
}

/// The simulated node around one machine: existing processes and open effects.
struct Node {
    play: Play,
    open: Vec<Effect>,
    /// (task, attempt) of every process that exists.
    processes: BTreeSet<(String, u32)>,
    /// Every attempt ever started.
    asked: BTreeSet<(String, u32)>,
    poststop: BTreeSet<String>,
}

impl Node {
    fn send(&mut self, event: Event) {
        let before = self.play.runner.client();
        let effects = self
            .play
            .runner
            .step(self.play.now, event, &mut self.play.rng);
        let mut after = self.play.runner.client();
        let is_reported = effects.contains(&Effect::Report);
        after.modify_time = before.modify_time;
        assert!(is_reported || before == after, "a change went unreported");
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match &effect {
            Effect::Start { task, attempt } => {
                let key = (task.clone(), *attempt);
                assert!(
                    self.asked.insert(key),
                    "attempt {attempt} of {task} started twice"
                );
                let is_alone = self.processes.iter().all(|(name, _)| name != task);
                assert!(is_alone, "two processes of {task}");
                if self.poststop.contains(task) {
                    let others = self
                        .processes
                        .iter()
                        .find(|(n, _)| !self.poststop.contains(n));
                    assert_eq!(others, None, "{task} is for when all others are dead");
                }
                self.open.push(effect);
            }
            Effect::Stop { task, attempt, .. } => {
                assert!(self.asked.contains(&(task.clone(), *attempt)));
                self.open.push(effect);
            }
            Effect::Forget { task, attempt } => {
                let key = (task.clone(), *attempt);
                assert!(
                    !self.processes.contains(&key),
                    "{task} {attempt} forgotten alive"
                );
            }
            Effect::Prerun { .. } | Effect::Recover { .. } => self.open.push(effect),
            Effect::Ended => assert_eq!(self.processes.iter().next(), None, "ended with a process"),
            Effect::CancelStart { .. } | Effect::Report => {}
        }
    }

    fn answer(&mut self, how: u8) {
        if self.open.is_empty() {
            return;
        }
        match self.open.remove(0) {
            Effect::Prerun { .. } => self.send(Event::PrerunDone(Ok(()))),
            Effect::Start { task, attempt } if how < 8 => {
                self.processes.insert((task.clone(), attempt));
                self.send(Event::Started { task, attempt });
            }
            Effect::Start { task, attempt } => {
                let failure = StartFailure {
                    step: StartStep::Driver,
                    message: "no".to_owned(),
                    recoverable: how == 8,
                };
                self.send(Event::StartFailed {
                    task,
                    attempt,
                    failure,
                });
            }
            Effect::Stop { task, attempt, .. } if how == 9 => {
                self.send(Event::StopFailed {
                    task,
                    attempt,
                    error: "busy".to_owned(),
                });
            }
            Effect::Stop { task, attempt, .. } => self.end(&task, attempt, 137),
            Effect::Recover { task, attempt } => {
                let exists = self.processes.contains(&(task.clone(), attempt));
                let reason = "gone".to_owned();
                self.send(match exists {
                    true => Event::Recovered { task, attempt },
                    false => Event::NotRecovered {
                        task,
                        attempt,
                        reason,
                    },
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, task: &str, attempt: u32, code: i32) {
        if self.processes.remove(&(task.to_owned(), attempt)) {
            let exit = ExitResult {
                code,
                ..ExitResult::default()
            };
            self.send(Event::Exited {
                task: task.to_owned(),
                attempt,
                exit,
            });
        }
    }

    fn agent_dies(&mut self, boot: Boot) {
        // Requested starts may or may not have happened.
        for effect in std::mem::take(&mut self.open) {
            match effect {
                Effect::Start { task, attempt } if boot == Boot::Same && attempt % 2 == 0 => {
                    self.processes.insert((task, attempt));
                }
                _ => {}
            }
        }
        if boot == Boot::New {
            self.processes.clear();
        }
        let spare = Play {
            runner: self.play.runner.clone(),
            rng: StdRng::seed_from_u64(2),
            now: self.play.now,
        };
        self.play = spare.restarted(boot);
        self.send(Event::Begin);
    }

    fn pass(&mut self, duration: Duration) {
        let end = self.play.now.uptime.plus(duration);
        while let Some(at) = self
            .play
            .runner
            .next_deadline(self.play.now)
            .filter(|at| *at <= end)
        {
            self.play.jump(at.since(self.play.now.uptime));
            self.send(Event::Tick);
            let next = self.play.runner.next_deadline(self.play.now);
            assert!(
                next.is_none_or(|next| next > self.play.now.uptime),
                "a tick without end"
            );
        }
        self.play.jump(end.since(self.play.now.uptime));
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Answer(how) => self.answer(*how),
            Act::End(which, code) => {
                let found = self.processes.iter().nth(usize::from(*which)).cloned();
                if let Some((task, attempt)) = found {
                    self.end(&task, attempt, *code);
                }
            }
            Act::Pass(duration) => self.pass(seconds(u64::from(*duration))),
            Act::Stop(skip_delays) => self.send(Event::Stop {
                skip_delays: *skip_delays,
            }),
            Act::Restart(which) => {
                let scope = match which {
                    0..4 => RestartScope::Running,
                    4..6 => RestartScope::All,
                    _ => RestartScope::Task("main".to_owned()),
                };
                self.send(Event::Restart {
                    scope,
                    reason: "asked".to_owned(),
                });
            }
            Act::Fail(which) => {
                let found = self.processes.iter().nth(usize::from(*which)).cloned();
                if let Some((task, attempt)) = found {
                    let reason = "its script failed".to_owned();
                    self.send(Event::Failed {
                        task,
                        attempt,
                        reason,
                    });
                }
            }
            Act::Contacted => self.send(Event::ServersContacted),
            Act::AgentDies(is_same) => {
                self.agent_dies(if *is_same { Boot::Same } else { Boot::New });
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Invariants: one process per task, every change reported, deadlines that pass, and an
    /// allocation that ends once it is stopped and every effect is answered.
    #[test]
    fn every_history_is_orderly_and_a_stopped_allocation_ends(spec in specs(), acts in acts()) {
        let poststop = spec
            .tasks
            .iter()
            .filter(|(_, task)| task.role == Role::Poststop)
            .map(|(name, _)| name.clone())
            .collect();
        let mut node = Node {
            play: Play::new(spec),
            open: Vec::new(),
            processes: BTreeSet::new(),
            asked: BTreeSet::new(),
            poststop,
        };
        node.send(Event::Begin);
        for act in &acts {
            node.act(act);
        }
        node.send(Event::Stop { skip_delays: false });
        node.send(Event::ServersContacted);
        for _ in 0..200 {
            if node.play.runner.is_ended() && node.open.is_empty() {
                break;
            }
            node.answer(0);
            node.pass(seconds(10));
            let poststop = node.processes.iter().find(|(task, _)| node.poststop.contains(task));
            if let Some((task, attempt)) = poststop.cloned() {
                node.end(&task, attempt, 0);
            }
        }
        prop_assert!(node.play.runner.is_ended(), "{:#?}", node.play.runner.state());
        prop_assert!(node.processes.is_empty());
        let client = node.play.runner.client();
        prop_assert!(client.status.is_terminal());
        for state in client.task_states.values() {
            prop_assert!(!state.finished_at.is_never());
            prop_assert!(state.events.len() <= 10);
        }
    }
}
