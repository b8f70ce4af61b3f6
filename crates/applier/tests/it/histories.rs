//! Random histories with stale plans, changing nodes, conflicts, a lagging replica, duplicates and
//! changes of leaders: no node is overcommitted, and every answer matches the written part of its
//! plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use applier::{Answer, Applier, CommitId, Effect, Event, Pending, Piece, Ticket, Verification};
use model::{AllocId, ClientStatus, NodeEligibility, NodeId, NodeStatus, Plan};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use state::{Entity, Key, Snapshot};

use crate::store::{NOW, Store, port, stop};

const HISTORIES: u64 = 60;
const STEPS: usize = 150;
const JOBS: u32 = 4;
const NODES: u128 = 4;

/// A random history of one applier, with its store, its replica and its waiting workers.
struct History {
    rng: StdRng,
    seed: u64,
    store: Store,
    /// The applier's replica: the store's state, now or slightly earlier.
    replica: Snapshot,
    applier: Applier,
    verifying: Option<(Ticket, Arc<Plan>, Arc<Pending>, Snapshot)>,
    out: Option<(CommitId, Vec<Arc<Piece>>)>,
    /// Transactions in doubt; they may still be executed, until the next election.
    in_doubt: Vec<Vec<Arc<Piece>>>,
    tickets: u64,
    open: BTreeMap<Ticket, Plan>,
    told: BTreeSet<AllocId>,
    /// Placed by plans whose answer did not report it.
    untold: BTreeSet<AllocId>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut store = Store::new(seed);
        for number in 1..=NODES {
            store.add_node(number, |node| node.resources.cpu_mhz = 1_000);
        }
        Self {
            rng: StdRng::seed_from_u64(seed),
            seed,
            replica: store.snapshot(),
            applier: Applier::new(store.revision()),
            store,
            verifying: None,
            out: None,
            in_doubt: Vec::new(),
            tickets: 0,
            open: BTreeMap::new(),
            told: BTreeSet::new(),
            untold: BTreeSet::new(),
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.random_range(0..bound)
    }

    fn any_node(&mut self) -> NodeId {
        NodeId::from_random(self.rng.random_range(1..=NODES))
    }

    fn tell(&mut self, event: Event) {
        let replica = self.replica.clone();
        for effect in self.applier.step(&replica, event) {
            match effect {
                Effect::Verify {
                    ticket,
                    plan,
                    pending,
                } => {
                    assert!(self.verifying.is_none(), "one plan is verified at a time");
                    self.verifying = Some((ticket, plan, pending, replica.clone()));
                }
                Effect::Commit { commit, pieces } => {
                    assert!(self.out.is_none(), "one transaction is out at a time");
                    self.out = Some((commit, pieces));
                }
                Effect::CommitAllAtOnce { commit, pieces, .. } => {
                    assert!(self.out.is_none(), "one transaction is out at a time");
                    self.out = Some((commit, pieces));
                }
                Effect::Answer { ticket, answer } => self.take_answer(ticket, answer),
                Effect::StepDown => {}
            }
        }
    }

    fn take_answer(&mut self, ticket: Ticket, answer: Answer) {
        let plan = self.open.remove(&ticket).expect("a plan is answered once");
        match answer {
            Answer::Result(result) => self.told.extend(result.placed),
            Answer::Overloaded | Answer::Unavailable => {
                let placements = plan.placements.values().flatten();
                self.untold.extend(placements.map(|alloc| alloc.id));
            }
        }
    }

    /// A worker plans on a possibly stale snapshot and submits the plan once or twice.
    fn submit(&mut self) {
        let name = format!("job{}", self.below(JOBS));
        let mut plan = self.store.start_plan(&name);
        self.show();
        for _ in 0..self.below(4) {
            let node = self.any_node();
            let cpu_mhz = self.rng.random_range(1..500);
            self.store.place(&mut plan, node, cpu_mhz);
            if self.below(3) == 0 {
                let port_value = 8_000 + u16::try_from(self.below(2)).unwrap();
                let placed = plan.placements.get_mut(&node).unwrap().last_mut().unwrap();
                placed.resources.ports = vec![port(port_value)];
            }
        }
        let snapshot = self.store.snapshot();
        for view in snapshot
            .allocs_by_job(&plan.job)
            .filter(|view| !view.is_terminal())
        {
            if self.below(3) == 0 {
                plan.stops
                    .entry(view.alloc.node_id)
                    .or_default()
                    .push(stop(view.alloc.id));
            }
        }
        // Other jobs' allocations take room.
        let mut others: Vec<_> = snapshot
            .allocs()
            .filter(|view| !view.is_terminal())
            .collect();
        others.sort_by_key(|view| view.alloc.id);
        for view in others {
            let is_own = view.alloc.job_key() == plan.job;
            if !is_own && plan.placements.contains_key(&view.alloc.node_id) && self.below(6) == 0 {
                plan.preemptions
                    .entry(view.alloc.node_id)
                    .or_default()
                    .push(stop(view.alloc.id));
            }
        }
        plan.all_at_once = self.below(5) == 0;
        plan.priority = u8::try_from(self.below(100)).unwrap();
        let copies = if self.below(6) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let ticket = Ticket(self.tickets);
            self.tickets += 1;
            self.open.insert(ticket, plan.clone());
            self.tell(Event::Submit {
                ticket,
                plan: Box::new(plan.clone()),
            });
        }
    }

    fn verify_all(&mut self) {
        let Some((ticket, plan, pending, snapshot)) = self.verifying.take() else {
            return;
        };
        let verification = Verification::new(&snapshot, &pending, &plan);
        let verdict = verification.check_whole().unwrap_or_else(|| {
            let nodes = verification.nodes();
            let verdicts = nodes.into_iter().map(|node| verification.check_node(node));
            verification.conclude(verdicts.collect(), NOW)
        });
        self.tell(Event::Verified { ticket, verdict });
    }

    fn settle(&mut self) {
        let Some((commit, pieces)) = self.out.take() else {
            return;
        };
        if self.below(20) == 0 {
            // No answer; the transaction was executed, will be, or never will.
            self.in_doubt.push(pieces);
            if self.rng.random() {
                self.late();
            }
            self.elect();
            return;
        }
        let event = match self.store.commit(&pieces) {
            Ok(revision) => Event::Committed { commit, revision },
            Err(revision) => Event::Conflict { commit, revision },
        };
        self.check();
        self.tell(event);
    }

    /// A transaction in doubt is executed late, if its compares hold.
    fn late(&mut self) {
        if let Some(pieces) = self.in_doubt.pop() {
            let _ = self.store.commit(&pieces);
            self.check();
        }
    }

    /// The leader is deposed; its fence fails from now on. The next one starts from the stored state.
    fn elect(&mut self) {
        self.tell(Event::Deposed);
        self.in_doubt.clear();
        self.verifying = None;
        self.out = None;
        let info = model::LeaderInfo {
            address: String::new(),
            replica: String::new(),
        };
        let revision = self
            .store
            .put(Key::Election("plan-applier".into()), Entity::Election(info));
        self.show();
        self.applier = Applier::new(revision);
    }

    /// The replica catches up.
    fn show(&mut self) {
        self.replica = self.store.snapshot();
        self.tell(Event::Replica);
    }

    fn change_node(&mut self) {
        let node = self.any_node();
        let what = self.below(5);
        self.store.edit_node(node, |node| match what {
            0 => node.status = NodeStatus::Down,
            1 => node.eligibility = NodeEligibility::Ineligible,
            2 => node.reserved_ports = vec![8_001],
            _ => {
                node.status = NodeStatus::Ready;
                node.eligibility = NodeEligibility::Eligible;
            }
        });
    }

    fn end_alloc(&mut self) {
        let snapshot = self.store.snapshot();
        let mut live: Vec<_> = snapshot
            .allocs()
            .filter(|view| !view.is_terminal())
            .collect();
        live.sort_by_key(|view| view.alloc.id);
        let count = u32::try_from(live.len()).unwrap();
        if count > 0 {
            let id = live[self.below(count) as usize].alloc.id;
            let client = model::AllocClient {
                status: ClientStatus::Complete,
                ..model::AllocClient::default()
            };
            self.store
                .put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)));
        }
    }

    fn step(&mut self) {
        match self.below(10) {
            0 | 1 => self.submit(),
            2 | 3 => self.verify_all(),
            4 | 5 => self.settle(),
            6 => self.show(),
            7 => self.change_node(),
            8 => self.end_alloc(),
            _ if self.below(10) == 0 => self.elect(),
            _ => {}
        }
        self.check();
    }

    /// Checks that no node is overcommitted and no port is held twice.
    fn check(&self) {
        let snapshot = self.store.snapshot();
        for node in snapshot.nodes().map(|node| &node.value) {
            let Some(usage) = snapshot.usage(node.id) else {
                continue;
            };
            let over = usage.total.exceeds(node.available());
            assert_eq!(
                over, None,
                "seed {}: {} holds {usage:?}",
                self.seed, node.name
            );
            let twice = usage.ports.iter().find(|(_, _, holders)| *holders > 1);
            assert_eq!(twice, None, "seed {}: {}", self.seed, node.name);
        }
    }

    fn finish(&mut self) {
        for _ in 0..1_000 {
            if self.open.is_empty() {
                return;
            }
            self.show();
            self.verify_all();
            self.settle();
        }
        panic!("seed {}: never answered: {:?}", self.seed, self.open.keys());
    }
}

#[test]
fn concurrent_plans_never_overcommit_and_are_all_answered() {
    let (mut placed, mut rejected) = (0, 0);
    for seed in 0..HISTORIES {
        let mut history = History::new(seed);
        for _ in 0..STEPS {
            history.step();
        }
        history.finish();
        let stored: BTreeSet<_> = history
            .store
            .snapshot()
            .allocs()
            .map(|view| view.alloc.id)
            .collect();
        assert!(
            history.told.is_subset(&stored),
            "seed {seed}: told of what is not there"
        );
        let silent: Vec<_> = stored
            .iter()
            .filter(|id| !history.told.contains(id) && !history.untold.contains(id))
            .collect();
        assert!(
            silent.is_empty(),
            "seed {seed}: {silent:?} were placed and not told"
        );
        placed += stored.len();
        rejected += usize::from(stored.is_empty());
    }
    assert!(
        placed > 500,
        "histories that place nothing show nothing: {placed}, {rejected} empty"
    );
}
