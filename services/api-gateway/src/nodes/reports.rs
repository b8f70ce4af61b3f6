//! What is written for what nodes tell of their allocations, and who has to look at it.
//!
//! Pure. The last report of an allocation wins, by the number that its node gave it: one that comes
//! late is left out, and one that says nothing new writes nothing. An
//! evaluation goes into the same transaction as the report that causes it, so neither is ever
//! without the other.
//! Source: Nomad's public behaviour.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::job::ReschedulePolicy;
use model::task_state::MAX_TASK_EVENTS;
use model::{
    AllocClient, AllocId, ClientStatus, DeploymentHealth, DesiredStatus, EvalId, EvalStatus,
    Evaluation, FieldErrors, JobKey, JobType, NodeId, Timestamp, TriggeredBy,
};
use state::{AllocView, Entity, Key, Snapshot};
use store::{Txn, TxnError, Value};

use crate::writes::{Write, into_txn};

/// How long a text that a node sends may be, in bytes: an error message with its causes has some
/// hundreds; a driver that quotes a whole log does not get it into the store.
const MAX_TEXT_BYTES: usize = 1_024;
/// How many details an event may have: the events of the spec have at most eight.
const MAX_DETAILS: usize = 16;
/// How large a report may be as it is stored, once its texts are cut: half of a transaction, so
/// that its evaluation has room beside it. Fifty tasks with ten events of 1 KiB each fit.
const MAX_REPORT_BYTES: usize = 512 << 10;

/// Reports waiting to be stored; of one allocation the last counts.
pub type Reports = BTreeMap<AllocId, AllocClient>;

/// Adds what came after `reports` came, unless it was made before.
pub fn add(reports: &mut Reports, alloc_id: AllocId, client: AllocClient) {
    let earlier = reports.get(&alloc_id);
    if earlier.is_none_or(|earlier| !is_late(&client, earlier)) {
        reports.insert(alloc_id, client);
    }
}

/// Tells whether a report was made before another that came first. Those without a number have no
/// order but that in which they come.
fn is_late(client: &AllocClient, known: &AllocClient) -> bool {
    client.report != 0 && client.report < known.report
}

/// Why a node's reports are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error("allocation {alloc_id} is on node {node_id}, not on the node that reports it")]
    AnotherNodes { alloc_id: AllocId, node_id: NodeId },
    #[error(
        "node {node_id} is {status}: its reports count again once it has sent a heartbeat and is not"
    )]
    NodeAway {
        node_id: NodeId,
        status: &'static str,
    },
}

/// Checks the reports of one node and cuts them to size. Allocations that the snapshot does not
/// have are returned in the second place: collected, or too new for it.
///
/// # Errors
/// See [`Refusal`]; nothing is stored then.
pub fn check(
    snapshot: &Snapshot,
    node_id: NodeId,
    reports: Reports,
) -> Result<(Reports, Vec<AllocId>), Refusal> {
    let mut known = Reports::new();
    let mut missing = Vec::new();
    for (position, (alloc_id, client)) in reports.into_iter().enumerate() {
        if matches!(client.status, ClientStatus::Lost | ClientStatus::Unknown) {
            let mut errors = FieldErrors::default();
            errors.push(
                format!("reports[{position}].client.status"),
                format!(
                    "{:?} is for the servers to say: want pending, running, complete or failed",
                    client.status.as_str()
                ),
            );
            return Err(errors.into());
        }
        match snapshot.alloc(alloc_id) {
            Some(view) if view.alloc.node_id != node_id => {
                return Err(Refusal::AnotherNodes {
                    alloc_id,
                    node_id: view.alloc.node_id,
                });
            }
            Some(_) => {
                let client = cut_to_size(client);
                check_size(&client, position)?;
                known.insert(alloc_id, client);
            }
            None => missing.push(alloc_id),
        }
    }
    Ok((known, missing))
}

fn cut_to_size(mut client: AllocClient) -> AllocClient {
    cut(&mut client.description);
    for state in client.task_states.values_mut() {
        let surplus = state.events.len().saturating_sub(MAX_TASK_EVENTS);
        state.events.drain(..surplus);
        for event in &mut state.events {
            cut(&mut event.event_type);
            cut(&mut event.message);
            while event.details.len() > MAX_DETAILS {
                event.details.pop_last();
            }
            let details = std::mem::take(&mut event.details).into_iter();
            event.details = details
                .map(|(mut key, mut value)| {
                    cut(&mut key);
                    cut(&mut value);
                    (key, value)
                })
                .collect();
        }
    }
    client
}

/// Refuses what is still too large once it is cut: a name of a task, or more tasks than are stored
/// together.
fn check_size(client: &AllocClient, position: usize) -> Result<(), FieldErrors> {
    // What cannot be encoded is refused when it is packed.
    let size = Value::from(client)
        .encode()
        .map_or(0, |encoded| encoded.len());
    if size <= MAX_REPORT_BYTES {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    errors.push(
        format!("reports[{position}].client.task_states"),
        format!(
            "{} tasks make a report of {size} bytes: want at most {MAX_REPORT_BYTES}",
            client.task_states.len()
        ),
    );
    Err(errors)
}

fn cut(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES)
            .rev()
            .find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
    }
}

/// What the report of one allocation comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub alloc_id: AllocId,
    pub job: JobKey,
    /// The client side as it is to be stored.
    pub write: Write,
    /// Why its job has to be looked at; `None`: it need not.
    pub eval: Option<EvalAsk>,
    /// A follow-up that has lost its reason, as it is to be stored.
    pub canceled: Option<(EvalId, Write)>,
}

/// An evaluation of a job, one for however many allocations ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalAsk {
    pub job_type: JobType,
    pub priority: u8,
    pub triggered_by: TriggeredBy,
}

/// Decides on every report, as of one snapshot.
///
/// Shape: ordered by job, so that those of one job share transactions; only what changes
/// something, and only allocations that the snapshot has.
pub fn decide(snapshot: &Snapshot, reports: &Reports, now: Timestamp) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = reports
        .iter()
        .filter_map(|(alloc_id, client)| outcome(snapshot, *alloc_id, client, now))
        .collect();
    outcomes.sort_by(|a, b| a.job.cmp(&b.job));
    // One evaluation a job: that a node came back says more than that something failed.
    let reconnected: HashSet<JobKey> = outcomes
        .iter()
        .filter(|outcome| is_reconnect(outcome.eval))
        .map(|outcome| outcome.job.clone())
        .collect();
    for outcome in &mut outcomes {
        if let Some(ask) = &mut outcome.eval
            && reconnected.contains(&outcome.job)
        {
            ask.triggered_by = TriggeredBy::Reconnect;
        }
    }
    outcomes
}

fn is_reconnect(ask: Option<EvalAsk>) -> bool {
    ask.is_some_and(|ask| ask.triggered_by == TriggeredBy::Reconnect)
}

fn outcome(
    snapshot: &Snapshot,
    alloc_id: AllocId,
    client: &AllocClient,
    now: Timestamp,
) -> Option<Outcome> {
    let view = snapshot.alloc(alloc_id)?;
    let mut client = client.clone();
    if let Some(stored) = &view.client {
        if is_late(&client, stored) {
            // Told through another gateway, or on a connection that has been given up.
            return None;
        }
        if stored.status.is_terminal() && stored.status != client.status {
            // An end is final. Without numbers, what says otherwise was told before it.
            return None;
        }
        if client.report == 0 {
            client.report = stored.report;
        }
        client.health = later_health(view, &stored.health, &client.health);
        client.modify_time = stored.modify_time;
        if **stored == client {
            return None;
        }
    }
    client.modify_time = now;
    let eval = eval_ask(snapshot, view, client.status, now);
    let key = Key::AllocClient(alloc_id);
    let entity = Entity::AllocClient(Box::new(client));
    let write = match view.client_modify_index {
        0 => Write::Create { key, entity },
        modify_index => Write::Update {
            key,
            modify_index,
            entity,
        },
    };
    let canceled = cancel_followup(snapshot, view, now);
    Some(Outcome {
        alloc_id,
        job: view.alloc.job_key(),
        write,
        eval,
        canceled,
    })
}

/// Returns which word on an allocation's health counts: users have one too, of which its node does
/// not know. The later one, of those about its deployment.
fn later_health(
    view: &AllocView,
    stored: &Option<DeploymentHealth>,
    told: &Option<DeploymentHealth>,
) -> Option<DeploymentHealth> {
    let is_own = |health: &DeploymentHealth| view.alloc.deployment_id == health.deployment_id;
    let stored = stored.filter(is_own);
    match told.filter(is_own) {
        Some(told) if stored.is_none_or(|stored| told.time >= stored.time) => Some(told),
        _ => stored.or(*told),
    }
}

/// Decides whether an allocation's job has to be looked at, now that its status is `reported`.
fn eval_ask(
    snapshot: &Snapshot,
    view: &AllocView,
    reported: ClientStatus,
    now: Timestamp,
) -> Option<EvalAsk> {
    let was_unknown = view.client_status() == ClientStatus::Unknown;
    if !reported.is_terminal() && !was_unknown {
        return None;
    }
    let wanted = view.alloc.desired_status == DesiredStatus::Run;
    let Some(job) = snapshot.job(&view.alloc.job_key()) else {
        // Purged. What is still wanted has to be stopped; the rest is over.
        return wanted.then_some(EvalAsk {
            job_type: JobType::Service,
            priority: ORPHAN_PRIORITY,
            triggered_by: TriggeredBy::JobDeregister,
        });
    };
    let ask = |triggered_by| EvalAsk {
        job_type: job.value.job_type,
        priority: job.value.priority,
        triggered_by,
    };
    if was_unknown {
        return Some(ask(TriggeredBy::Reconnect));
    }
    let newly_failed =
        reported == ClientStatus::Failed && view.client_status() != ClientStatus::Failed;
    if !newly_failed || !wanted || view.alloc.followup_eval_id.is_some() {
        return None;
    }
    let group = job.value.task_group(&view.alloc.task_group)?;
    let policy = group.reschedule.as_ref()?;
    may_reschedule(policy, &view.alloc.reschedules, now).then(|| ask(TriggeredBy::AllocFailure))
}

/// Source: Nomad's default priority of jobs.
const ORPHAN_PRIORITY: u8 = 50;

/// Tells whether a policy allows one more replacement now.
fn may_reschedule(policy: &ReschedulePolicy, past: &[RescheduleEvent], now: Timestamp) -> bool {
    if policy.unlimited {
        return true;
    }
    let within = |event: &&RescheduleEvent| now.since(event.time) < interval(policy);
    let used = past.iter().filter(within).count();
    used < usize::try_from(policy.attempts).unwrap_or(usize::MAX)
}

fn interval(policy: &ReschedulePolicy) -> Duration {
    policy.interval
}

/// Cancels the evaluation that was to replace an allocation out of reach, when the allocation is
/// heard of again and no other waits for the same evaluation.
fn cancel_followup(
    snapshot: &Snapshot,
    view: &AllocView,
    now: Timestamp,
) -> Option<(EvalId, Write)> {
    if view.client_status() != ClientStatus::Unknown {
        return None;
    }
    let eval_id = view.alloc.followup_eval_id?;
    let eval = snapshot
        .eval(eval_id)
        .filter(|eval| !eval.value.status.is_terminal())?;
    let is_shared = snapshot.allocs_by_job(&view.alloc.job_key()).any(|other| {
        other.alloc.id != view.alloc.id
            && other.alloc.followup_eval_id == Some(eval_id)
            && !other.is_terminal()
    });
    if is_shared {
        return None;
    }
    let canceled = Evaluation {
        status: EvalStatus::Canceled,
        status_description: format!("allocation {} is heard of again", view.alloc.id),
        modify_time: now,
        ..eval.value.clone()
    };
    let write = Write::Update {
        key: Key::Eval(eval_id),
        modify_index: eval.modify_index,
        entity: Entity::Eval(Box::new(canceled)),
    };
    Some((eval_id, write))
}

/// Transactions, and the reports that are in none of them because they cannot be stored.
#[derive(Debug, Default)]
pub struct Packed {
    pub txns: Vec<Txn>,
    pub refused: BTreeMap<AllocId, TxnError>,
}

/// Makes transactions of outcomes, as few as the limits of one allow; `new_txn` makes an empty
/// one. Each carries an evaluation for every job that one of its reports asks for. What not even
/// an empty transaction takes is left out: one report never holds up the others.
pub fn pack(
    outcomes: &[Outcome],
    now: Timestamp,
    trace_parent: &str,
    new_txn: impl Fn() -> Txn,
    mut next_id: impl FnMut() -> EvalId,
) -> Packed {
    let mut packed = Packed::default();
    let mut current = new_txn();
    let mut asked = BTreeSet::new();
    let mut canceled = BTreeSet::new();
    for outcome in outcomes {
        let mut writes = vec![outcome.write.clone()];
        let cancels = outcome
            .canceled
            .as_ref()
            .filter(|(eval_id, _)| !canceled.contains(eval_id));
        writes.extend(cancels.map(|(_, write)| write.clone()));
        let eval = outcome.eval.map(|ask| {
            let eval = evaluation(&outcome.job, ask, next_id(), now, trace_parent);
            Write::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            }
        });
        let with_eval = |asked: &BTreeSet<JobKey>| {
            let eval = eval.iter().filter(|_| !asked.contains(&outcome.job));
            into_txn(new_txn(), writes.iter().chain(eval))
        };
        let joined = with_eval(&asked).and_then(|part| current.merge(&part).map(|_| ()));
        if joined.is_err() {
            match with_eval(&BTreeSet::new()) {
                Ok(part) => {
                    packed.txns.push(std::mem::replace(&mut current, part));
                    asked.clear();
                }
                Err(error) => {
                    packed.refused.insert(outcome.alloc_id, error);
                    continue;
                }
            }
        }
        canceled.extend(cancels.map(|(eval_id, _)| *eval_id));
        if eval.is_some() {
            asked.insert(outcome.job.clone());
        }
    }
    packed.txns.push(current);
    packed.txns.retain(|txn| !txn.is_empty());
    packed
}

fn evaluation(
    job: &JobKey,
    ask: EvalAsk,
    id: EvalId,
    now: Timestamp,
    trace_parent: &str,
) -> Evaluation {
    let mut eval = Evaluation::pending(
        id,
        job.clone(),
        ask.job_type,
        ask.priority,
        ask.triggered_by,
        now,
    );
    trace_parent.clone_into(&mut eval.trace_parent);
    eval
}
