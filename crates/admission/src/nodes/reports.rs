//! Reports of allocations: which are stored, and which cause an evaluation.
//!
//! The last report of an allocation wins, by the number that its node gave it: a late one is
//! dropped, and one without news writes nothing. The evaluation belongs in the transaction of the
//! report that causes it, so neither is ever stored without the other.
//! Source: Nomad's public behaviour.

mod evals;

use std::collections::{BTreeMap, HashSet};

use model::task_state::MAX_TASK_EVENTS;
use model::{
    AllocClient, AllocId, AllocServices, ClientStatus, DeploymentHealth, EvalId, FieldErrors,
    JobKey, Node, NodeId, NodeStatus, ServiceHealth, ServiceRegistration, Timestamp, TriggeredBy,
};
use state::{AllocView, Entity, Key, Snapshot, Write};

use model::refusal::{Kind, Refusal};

pub use evals::EvalRequest;

/// The length limit of a text that a node sends, in bytes: an error message with its causes has some
/// hundreds. A driver that quotes a whole log does not get it into the store.
const MAX_TEXT_BYTES: usize = 1_024;
/// The largest number of details that an event keeps: Nomad's events have at most eight.
const MAX_DETAILS: usize = 16;
/// The largest number of registrations of an allocation: job files are limited to fewer.
const MAX_SERVICES: usize = 1_024;
/// The size limit of a stored report after its texts are cut: half of a transaction, so that its
/// evaluation fits beside it. Fifty tasks with ten events of 1 KiB each fit.
const MAX_REPORT_BYTES: usize = 512 << 10;

/// Reports to be stored, at most one for each allocation.
pub type Reports = BTreeMap<AllocId, AllocClient>;

/// Adds a report that came after `reports`, unless its node made it before the known one.
pub fn add(reports: &mut Reports, alloc_id: AllocId, client: AllocClient) {
    let earlier = reports.get(&alloc_id);
    if earlier.is_none_or(|earlier| !is_late(&client, earlier)) {
        reports.insert(alloc_id, client);
    }
}

/// Tells whether a report is older than a known one. Reports without a number are in the order in
/// which they come.
fn is_late(client: &AllocClient, known: &AllocClient) -> bool {
    client.report != 0 && client.report < known.report
}

/// The reason why a node's reports are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error("allocation {alloc_id} is on node {node_id}, not on the node that reports it")]
    AnotherNodes { alloc_id: AllocId, node_id: NodeId },
    #[error("node {node_id} is {status}: its reports are accepted again after its next heartbeat")]
    NodeAway {
        node_id: NodeId,
        status: &'static str,
    },
}

impl Refusal for ReportRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::AnotherNodes { .. } => Kind::Denied,
            Self::NodeAway { .. } => Kind::Precondition,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

/// Refuses the reports of a node that is down or disconnected.
///
/// Source: Nomad's public behaviour: the node first has to receive the decisions that were made
/// about its allocations while it was away.
///
/// # Errors
/// [`ReportRefusal::NodeAway`].
pub fn check_present(node: &Node) -> Result<(), ReportRefusal> {
    match node.status {
        NodeStatus::Initializing | NodeStatus::Ready => Ok(()),
        status @ (NodeStatus::Disconnected | NodeStatus::Down) => Err(ReportRefusal::NodeAway {
            node_id: node.id,
            status: status.as_str(),
        }),
    }
}

/// Checks the reports of one node and cuts their texts to size. The second result lists allocations
/// that the snapshot does not have: collected, or newer than the snapshot. `stored_size` returns
/// the size of a report as it is stored, in bytes.
///
/// # Errors
/// See [`ReportRefusal`]; nothing may be stored then.
pub fn check(
    snapshot: &Snapshot,
    node_id: NodeId,
    reports: Reports,
    stored_size: impl Fn(&AllocClient) -> usize,
) -> Result<(Reports, Vec<AllocId>), ReportRefusal> {
    let mut known = Reports::new();
    let mut missing = Vec::new();
    for (position, (alloc_id, client)) in reports.into_iter().enumerate() {
        if matches!(client.status, ClientStatus::Lost | ClientStatus::Unknown) {
            let mut errors = FieldErrors::default();
            errors.push(
                format!("reports[{position}].client.status"),
                format!(
                    "{:?} is set by the servers only: want pending, running, complete or failed",
                    client.status.as_str()
                ),
            );
            return Err(errors.into());
        }
        match snapshot.alloc(alloc_id) {
            Some(view) if view.alloc.node_id != node_id => {
                return Err(ReportRefusal::AnotherNodes {
                    alloc_id,
                    node_id: view.alloc.node_id,
                });
            }
            Some(_) => {
                let client = drop_events(cut_to_size(client), &stored_size);
                check_size(&client, stored_size(&client), position)?;
                known.insert(alloc_id, client);
            }
            None => missing.push(alloc_id),
        }
    }
    Ok((known, missing))
}

fn cut_to_size(mut client: AllocClient) -> AllocClient {
    cut(&mut client.description);
    client.services.truncate(MAX_SERVICES);
    for service in &mut client.services {
        let texts = [&mut service.id, &mut service.name, &mut service.address];
        texts.into_iter().for_each(cut);
        let tags = service.tags.iter_mut().chain(&mut service.canary_tags);
        tags.for_each(cut);
    }
    for (_, state) in client.task_states.iter_mut() {
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

/// Drops the oldest events of each task, more and more of them, until the report has its size: the states of
/// hundreds of tasks matter more than their history.
fn drop_events(
    mut client: AllocClient,
    stored_size: &impl Fn(&AllocClient) -> usize,
) -> AllocClient {
    let mut kept = MAX_TASK_EVENTS;
    while kept > 0 && stored_size(&client) > MAX_REPORT_BYTES {
        kept /= 2;
        for (_, state) in client.task_states.iter_mut() {
            let surplus = state.events.len().saturating_sub(kept);
            state.events.drain(..surplus);
        }
    }
    client
}

/// Refuses a report that is too large without any event: huge task names, or too many tasks.
fn check_size(client: &AllocClient, size: usize, position: usize) -> Result<(), FieldErrors> {
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

/// The decision on the report of one allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportDecision {
    pub alloc_id: AllocId,
    pub job: JobKey,
    /// The client side.
    pub write: Write,
    /// The change of its service registrations; `None`: they stay as they are.
    pub services: Option<Write>,
    /// The evaluation of its job; `None`: none is needed.
    pub eval: Option<EvalRequest>,
    /// The cancellation of a follow-up evaluation that is not needed any more.
    pub canceled: Option<(EvalId, Write)>,
}

/// Returns the number of the last report of each allocation, the ones in `reports` included.
pub fn numbers(snapshot: &Snapshot, reports: &Reports) -> BTreeMap<AllocId, u64> {
    let number = |(alloc_id, client): (&AllocId, &AllocClient)| {
        let view = snapshot.alloc(*alloc_id);
        let stored = view.and_then(|view| view.client.as_ref());
        let stored = stored.map_or(0, |stored| stored.report);
        (*alloc_id, stored.max(client.report))
    };
    reports.iter().map(number).collect()
}

/// Returns the allocations in `reports` whose stored report has a higher number, with that number: the
/// submitted report was dropped. A report without a number is never too late.
pub fn newer(numbers: &BTreeMap<AllocId, u64>, reports: &Reports) -> Vec<(AllocId, u64)> {
    let newer = reports.iter().filter_map(|(alloc_id, client)| {
        let number = *numbers.get(alloc_id)?;
        (client.report != 0 && number > client.report).then_some((*alloc_id, number))
    });
    newer.collect()
}

/// Decides on every report, as of one snapshot.
///
/// Shape: ordered by job, so that outcomes of one job share transactions; reports without news and
/// reports of allocations that the snapshot does not have are left out.
pub fn decide(snapshot: &Snapshot, reports: &Reports, now: Timestamp) -> Vec<ReportDecision> {
    let mut outcomes: Vec<ReportDecision> = reports
        .iter()
        .filter_map(|(alloc_id, client)| outcome(snapshot, *alloc_id, client, now))
        .collect();
    outcomes.sort_by(|a, b| a.job.cmp(&b.job));
    // A job gets one evaluation: a reconnect takes precedence over a failure.
    let reconnected: HashSet<JobKey> = outcomes
        .iter()
        .filter(|outcome| is_reconnect(outcome.eval))
        .map(|outcome| outcome.job.clone())
        .collect();
    for outcome in &mut outcomes {
        if let Some(request) = &mut outcome.eval
            && reconnected.contains(&outcome.job)
        {
            request.triggered_by = TriggeredBy::Reconnect;
        }
    }
    outcomes
}

fn is_reconnect(request: Option<EvalRequest>) -> bool {
    request.is_some_and(|request| request.triggered_by == TriggeredBy::Reconnect)
}

fn outcome(
    snapshot: &Snapshot,
    alloc_id: AllocId,
    client: &AllocClient,
    now: Timestamp,
) -> Option<ReportDecision> {
    let view = snapshot.alloc(alloc_id)?;
    let mut client = client.clone();
    let registrations = std::mem::take(&mut client.services);
    let services = services(snapshot, alloc_id, &client, registrations);
    if let Some(stored) = &view.client {
        if is_late(&client, stored) {
            // Sent through another gateway, or on an abandoned connection.
            return None;
        }
        if stored.status.is_terminal() && stored.status != client.status {
            // A terminal status is final: an unnumbered report of another status is older.
            return None;
        }
        if client.report == 0 {
            client.report = stored.report;
        }
        client.health = later_health(view, &stored.health, &client.health);
        client.modify_time = stored.modify_time;
        if **stored == client && services.is_none() {
            return None;
        }
    }
    client.modify_time = now;
    let eval = evals::request(snapshot, view, &client);
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
    let canceled = evals::cancel_followup(snapshot, view, now);
    Some(ReportDecision {
        alloc_id,
        job: view.alloc.job_key(),
        write,
        services,
        eval,
        canceled,
    })
}

/// Returns the change of an allocation's registrations: an ended one has none.
///
/// It is in the transaction of the report, whose compare and number refuse a late report, so it needs no
/// number of its own.
fn services(
    snapshot: &Snapshot,
    alloc_id: AllocId,
    client: &AllocClient,
    mut registrations: Vec<ServiceRegistration>,
) -> Option<Write> {
    if client.status.is_terminal() {
        registrations.clear();
    }
    let key = Key::Services(alloc_id);
    let Some(stored) = snapshot.alloc_services(alloc_id) else {
        if registrations.is_empty() {
            return None;
        }
        let deleted = Vec::new();
        let services = AllocServices {
            registrations,
            deleted,
        };
        let entity = Entity::Services(Box::new(services));
        return Some(Write::Create { key, entity });
    };
    let modify_index = stored.modify_index;
    if registrations.is_empty() {
        return Some(Write::Delete { key, modify_index });
    }
    for registration in &mut registrations {
        keep_health(registration, &stored.value);
    }
    // A deletion by a user holds until the node takes the registration back.
    let is_kept = |id: &&String| registrations.iter().any(|kept| kept.id == **id);
    let deleted = stored.value.deleted.iter().filter(is_kept);
    let services = AllocServices {
        deleted: deleted.cloned().collect(),
        registrations,
    };
    if services == stored.value {
        return None;
    }
    let entity = Entity::Services(Box::new(services));
    Some(Write::Update {
        key,
        modify_index,
        entity,
    })
}

/// Keeps the stored result of a registration's checks until there is a new one: an agent that restarts runs
/// the checks of its tasks anew, and the tasks have gone on.
fn keep_health(registration: &mut ServiceRegistration, stored: &AllocServices) {
    if registration.health == ServiceHealth::Pending {
        let mut known = stored.registrations.iter();
        let known = known.find(|known| known.id == registration.id);
        registration.health = known.map_or(ServiceHealth::Pending, |known| known.health);
    }
}

/// Returns the later of the stored and the reported health, of those that are about the
/// allocation's deployment. Users set health, too, and the node does not know of it.
fn later_health(
    view: &AllocView,
    stored: &Option<DeploymentHealth>,
    reported: &Option<DeploymentHealth>,
) -> Option<DeploymentHealth> {
    let is_own = |health: &DeploymentHealth| view.alloc.deployment_id == health.deployment_id;
    let stored = stored.filter(is_own);
    match reported.filter(is_own) {
        Some(new) if stored.is_none_or(|stored| new.time >= stored.time) => Some(new),
        _ => stored.or(*reported),
    }
}
