//! The job itself: names, priority, datacenters, and the settings that its groups inherit.

use model::job::{DEFAULT_PRIORITY, DEFAULT_REGION, Job, JobType, MAX_PRIORITY, TaskGroup};
use model::{Namespace, NodePool, Timestamp};

use super::inherited::Inherited;
use super::job_types::{self, NO_RESCHEDULE};
use super::limits::MAX_TOTAL_COUNT;
use super::validation::{Path, Validation};
use super::{
    constraint, environment, group, launches, name, rank, reschedule, service, template, ui,
    update, vault,
};

pub(super) fn job(check: &mut Validation, spec: &job_fields::Job, now: Timestamp) -> Job {
    let root = Path::root();
    let id = name::job_id(check, spec.id.as_deref(), spec.parent_id.as_deref());
    let name = spec
        .name
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| id.clone());
    if name.contains('\0') {
        check.error("name", "Job name contains a null character: remove it");
    }
    let job_type = job_type(check, spec.r#type.as_deref());
    let priority = priority(check, spec.priority);
    let datacenters = datacenters(check, &spec.datacenters);
    let constraints = constraint::constraints(
        check,
        &root,
        &spec.constraints,
        constraint::Level::JobOrGroup,
    );
    let ranks = rank::Ranks::of(&spec.affinities, &spec.spreads);
    ranks.refuse_for_system(check, &root, job_type);
    let affinities = rank::affinities(check, &root, &spec.affinities);
    let spreads = rank::spreads(check, &root, &spec.spreads);
    let inherited = inherited(check, spec, &name, job_type);
    let task_groups = task_groups(check, &spec.task_groups, &inherited);
    let update = update::of_job(&inherited);
    let job = Job {
        namespace: or_default(spec.namespace.as_deref(), Namespace::DEFAULT),
        id,
        name,
        region: or_default(spec.region.as_deref(), DEFAULT_REGION),
        job_type,
        priority,
        all_at_once: spec.all_at_once.unwrap_or(false),
        datacenters,
        node_pool: or_default(spec.node_pool.as_deref(), NodePool::DEFAULT),
        constraints,
        affinities,
        spreads,
        task_groups,
        update,
        meta: environment::variables(check, &root, "meta", &spec.meta),
        ui: ui::ui(check, spec.ui.as_ref()),
        periodic: launches::periodic(check, spec.periodic.as_ref(), job_type),
        parameterized: launches::parameterized(check, spec.parameterized.as_ref(), job_type),
        parent_id: spec.parent_id.clone().unwrap_or_default(),
        dispatched: spec.dispatched.unwrap_or(false),
        payload: launches::payload(check, spec.payload.as_deref()),
        dispatch_token: spec.dispatch_idempotency_token.clone().unwrap_or_default(),
        stop: spec.stop.unwrap_or(false),
        version: 0,
        forced_version: None,
        written_by: None,
        submit_time: now,
    };
    warn(check, &job);
    launches::warn(check, &job);
    template::warn(check, &job);
    vault::warn(check, &job);
    service::warn(check, spec);
    job
}

/// An empty text counts as absent, as it does in Nomad's JSON.
fn or_default(text: Option<&str>, default: &str) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or(default)
        .to_owned()
}

fn job_type(check: &mut Validation, text: Option<&str>) -> JobType {
    let text = text.filter(|text| !text.is_empty()).unwrap_or("service");
    JobType::parse(text).unwrap_or_else(|| {
        let message = format!("Invalid job type: {text:?}: use service, batch, system or sysbatch");
        check.error("type", message);
        JobType::Service
    })
}

fn priority(check: &mut Validation, priority: Option<i64>) -> u8 {
    let Some(priority) = priority else {
        return DEFAULT_PRIORITY;
    };
    match u8::try_from(priority) {
        Ok(priority @ 1..=MAX_PRIORITY) => priority,
        _ => {
            let message = format!(
                "job priority must be between [1, {MAX_PRIORITY}]; got {priority}: \
                 leave it out for {DEFAULT_PRIORITY}",
            );
            check.error("priority", message);
            DEFAULT_PRIORITY
        }
    }
}

fn datacenters(check: &mut Validation, datacenters: &[String]) -> Vec<String> {
    if datacenters.is_empty() {
        return vec!["*".to_owned()];
    }
    if datacenters.iter().any(String::is_empty) {
        let message = "Job datacenter must be non-empty string: remove the empty one";
        check.error("datacenters", message);
    }
    datacenters.to_vec()
}

fn task_groups(
    check: &mut Validation,
    specs: &[job_fields::TaskGroup],
    inherited: &Inherited<'_>,
) -> Vec<TaskGroup> {
    let root = Path::root();
    if specs.is_empty() {
        let message = "Missing job task groups: add a group \"…\" block with a task in it";
        check.error("group", message);
    }
    let names = specs
        .iter()
        .map(|group| group.name.as_deref().unwrap_or_default());
    name::distinct(check, &root, "group", names);
    let mut groups = Vec::with_capacity(specs.len());
    for (position, group) in specs.iter().enumerate() {
        let path = root.labelled("group", group.name.as_deref(), position);
        groups.push(group::group(check, &path, group, inherited));
    }
    let total: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    if total > MAX_TOTAL_COUNT {
        let message = format!(
            "the counts of all groups add up to {total}, more than {MAX_TOTAL_COUNT}: \
             lower a count, or split the job",
        );
        check.error("group", message);
    }
    groups
}

/// Returns the settings that the groups inherit, without those that the type of the job does not
/// allow, so that the mistake is reported once and not per group.
fn inherited<'a>(
    check: &mut Validation,
    spec: &'a job_fields::Job,
    job_name: &'a str,
    job_type: JobType,
) -> Inherited<'a> {
    let update = spec.update.as_ref().filter(|_| {
        let allowed = job_types::allows_update(job_type);
        if !allowed {
            check.error("update", job_types::refusal(job_type, "update"));
        }
        allowed
    });
    let migrate = spec.migrate.as_ref().filter(|_| {
        let allowed = job_type == JobType::Service;
        if !allowed {
            check.error("migrate", job_types::refusal(job_type, "migrate"));
        }
        allowed
    });
    let reschedule = spec.reschedule.as_ref().filter(|spec| {
        let allowed = job_types::has_reschedule(job_type) || reschedule::grants_attempts(spec);
        if !allowed {
            check.error("reschedule", NO_RESCHEDULE);
        }
        allowed
    });
    Inherited {
        job_name,
        job_type,
        update,
        reschedule,
        migrate,
    }
}

/// Warns of legal but probably unintended values.
fn warn(check: &mut Validation, job: &Job) {
    // The count of a job on every node is not its number of allocations.
    let is_counted = !job.job_type.is_per_node();
    for group in job.task_groups.iter().filter(|_| is_counted) {
        // A single allocation is replaced all at once anyway.
        let Some(update) = group.update.filter(|_| group.count > 1) else {
            continue;
        };
        if update.max_parallel > group.count {
            check.warn(format!(
                "Group {:?} has warnings: Update max parallel count is greater than task group \
                 count ({} > {}). A destructive change would replace all of them at once",
                group.name, update.max_parallel, group.count,
            ));
        }
    }
    let updates = job.task_groups.iter().filter_map(|group| group.update);
    let mut canaries = updates.filter(|update| update.canary > 0);
    let some_promote = canaries.clone().any(|update| update.auto_promote);
    if some_promote && !canaries.all(|update| update.auto_promote) {
        // Source: Nomad's text.
        check.warn("auto_promote must be true for all groups to enable automatic promotion");
    }
}
