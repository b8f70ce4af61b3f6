//! The state machine of a leader: deployments to examine, with their timers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{AllocId, DeploymentHealth, DeploymentId, EvalId, JobKey, Timestamp};
use state::{Change, Entity, Key, Snapshot};

use crate::action::Action;
use crate::config::Config;
use crate::decision;
use crate::memory::Memory;

/// Watches deployments for the length of one leadership.
///
/// Its memory can be lost: after [`Rollout::resync`] a deployment may get one redundant evaluation,
/// but never misses one.
#[derive(Debug)]
pub struct Rollout {
    config: Config,
    memory: BTreeMap<DeploymentId, Memory>,
    /// Deadlines of deployments; at most one each.
    timers: BTreeSet<(Timestamp, DeploymentId)>,
    dirty: BTreeSet<DeploymentId>,
    /// Backoffs of deployments with a failed write.
    held: BTreeMap<DeploymentId, Hold>,
}

/// The first backoff of a deployment after a failed write; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest such backoff: rollouts continue within it once the store has recovered.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The backoff of one deployment, which does not delay the others.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Timestamp,
    pause: Duration,
}

impl Hold {
    /// A clock that is set back does not extend the backoff.
    fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now || self.until > now.plus(self.pause)
    }
}

impl Rollout {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            memory: BTreeMap::new(),
            timers: BTreeSet::new(),
            dirty: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    /// Marks every deployment for the next step: after an election, and whenever the change feed was
    /// interrupted.
    pub fn resync(&mut self, snapshot: &Snapshot) {
        for deployment in snapshot.deployments() {
            let id = deployment.value.id;
            self.dirty.insert(id);
            if !deployment.value.status.is_active() {
                continue;
            }
            for view in snapshot.allocs_by_deployment(id) {
                if let Some(health) = view.health() {
                    self.note_health(view.alloc.id, health, view.client_modify_index);
                }
            }
        }
        let gone: Vec<_> = self
            .memory
            .keys()
            .filter(|id| snapshot.deployment(**id).is_none())
            .copied()
            .collect();
        self.dirty.extend(gone);
    }

    /// Records the changes of one revision; `snapshot` is of that revision or a later one.
    pub fn note(&mut self, changes: &[Change], snapshot: &Snapshot) {
        for change in changes {
            match change {
                Change::Put {
                    key,
                    entity,
                    modify_index,
                    ..
                } => {
                    self.note_put(key, entity, *modify_index, snapshot);
                }
                Change::Delete { key } => self.note_delete(key, snapshot),
            }
        }
    }

    fn note_put(&mut self, key: &Key, entity: &Entity, modify_index: u64, snapshot: &Snapshot) {
        match (key, entity) {
            (Key::Deployment(id), _) => {
                self.dirty.insert(*id);
            }
            (Key::Alloc(_), Entity::Alloc(alloc)) => self.dirty.extend(alloc.deployment_id),
            (Key::AllocClient(id), Entity::AllocClient(client)) => {
                let deployment_id = snapshot
                    .alloc(*id)
                    .and_then(|view| view.alloc.deployment_id);
                if let Some((health, deployment_id)) = client.health.zip(deployment_id)
                    && health.deployment_id == Some(deployment_id)
                {
                    self.dirty.insert(deployment_id);
                    self.note_health(*id, health, modify_index);
                }
            }
            (Key::Eval(_), Entity::Eval(eval)) => self.note_job(snapshot, &eval.job),
            (Key::Job(job), _) => self.note_job(snapshot, job),
            _ => {}
        }
    }

    fn note_delete(&mut self, key: &Key, snapshot: &Snapshot) {
        match key {
            Key::Deployment(id) => {
                self.dirty.insert(*id);
            }
            Key::Job(job) => self.note_job(snapshot, job),
            _ => {}
        }
    }

    /// Examines a deployment with the next step: its write has succeeded, or another write was faster.
    pub fn examine_again(&mut self, id: DeploymentId) {
        self.held.remove(&id);
        self.dirty.insert(id);
    }

    /// Examines a deployment again after a backoff: its write has failed.
    pub fn examine_later(&mut self, now: Timestamp, id: DeploymentId) {
        let before = self.held.get(&id);
        let pause = before.map_or(FIRST_PAUSE, |hold| (hold.pause * 2).min(LONGEST_PAUSE));
        let until = now.plus(pause);
        self.held.insert(id, Hold { until, pause });
        self.dirty.insert(id);
    }

    fn note_job(&mut self, after: &Snapshot, job: &JobKey) {
        let active = after
            .deployments_by_job(job)
            .filter(|deployment| deployment.value.status.is_active());
        self.dirty
            .extend(active.map(|deployment| deployment.value.id));
    }

    fn note_health(&mut self, alloc_id: AllocId, health: DeploymentHealth, index: u64) {
        let Some(deployment_id) = health.deployment_id else {
            return;
        };
        let memory = self.memory.entry(deployment_id).or_default();
        if memory.verdicts.insert(alloc_id, health) != Some(health) {
            memory.health_index = memory.health_index.max(index);
        }
    }

    /// Examines the changed and due deployments in `snapshot` and returns their actions, ordered by
    /// deployment id, at most one for each.
    ///
    /// `next_id` draws the ids of new evaluations. The caller performs the actions, waits until its
    /// snapshots show them, and only then steps again. Otherwise the same actions are returned twice.
    pub fn step(
        &mut self,
        now: Timestamp,
        snapshot: &Snapshot,
        next_id: &mut dyn FnMut() -> EvalId,
    ) -> Vec<Action> {
        while let Some((due, id)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            self.timers.remove(&(due, id));
            self.dirty.insert(id);
        }
        let mut actions = Vec::new();
        let is_held = |id: &DeploymentId| self.held.get(id).is_some_and(|hold| !hold.is_over(now));
        let due: Vec<_> = self
            .dirty
            .iter()
            .copied()
            .filter(|id| !is_held(id))
            .collect();
        for id in due {
            self.dirty.remove(&id);
            let action = self.look(now, snapshot, id, next_id);
            if action.is_none() {
                self.held.remove(&id);
            }
            actions.extend(action);
        }
        actions
    }

    fn look(
        &mut self,
        now: Timestamp,
        snapshot: &Snapshot,
        id: DeploymentId,
        next_id: &mut dyn FnMut() -> EvalId,
    ) -> Option<Action> {
        let mut memory = self.memory.remove(&id).unwrap_or_default();
        if let Some(at) = memory.next_at.take() {
            self.timers.remove(&(at, id));
        }
        let deployment = snapshot.deployment(id)?;
        let decision = decision::decide(
            &self.config,
            now,
            snapshot,
            deployment,
            &mut memory,
            next_id,
        );
        if deployment.value.status.is_active() {
            memory.next_at = decision.next_at;
            if let Some(at) = decision.next_at {
                self.timers.insert((at, id));
            }
            self.memory.insert(id, memory);
        }
        decision.action
    }

    /// Returns the time of the next [`Rollout::step`]; `None`: only a change requires one.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(due, _)| *due);
        let waiting = self.dirty.iter().filter_map(|id| self.held.get(id));
        let hold = waiting.map(|hold| hold.until).min();
        timer.into_iter().chain(hold).min()
    }

    /// Tells whether a deployment is to be examined now.
    pub fn has_work(&self) -> bool {
        self.dirty.iter().any(|id| !self.held.contains_key(id))
    }

    /// Returns how many active deployments are watched.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }
}
