//! Dispatch: a child of a parameterized job, and its evaluation, in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use model::launch::dispatched_child_id;
use model::{
    DispatchToken, FieldErrors, Job, JobKey, Parameterized, Payload, PayloadRule, TriggeredBy,
};
use state::{Entity, Key, Snapshot};

use super::launches::{begin, create_eval, create_job, evaluation, unchanged};
use super::{Made, Outcome, Refusal, Stamp, eval_priority, refuse_beyond};
use crate::settings::{namespaces, scheduler_config};
use crate::writes::Write;

/// How long a token may be, in bytes: a UUID has 36, a path of a pipeline some more.
const MAX_TOKEN_BYTES: usize = 256;
/// It stands in the child's id, and that in keys.
const MAX_TEMPLATE_BYTES: usize = 128;

#[derive(Clone, Debug)]
pub struct DispatchRequest {
    pub parent: JobKey,
    pub payload: Payload,
    pub meta: BTreeMap<String, String>,
    /// Empty: none.
    pub token: String,
    /// Stands in the child's id; empty: nothing does.
    pub id_template: String,
    /// 0: the parent's.
    pub priority: u32,
    /// Tells the child from others of the same second; the same in every attempt of one request.
    pub nonce: u32,
    /// How many evaluations may be open before jobs are refused.
    pub max_open_evals: usize,
}

/// Decides on a dispatch.
///
/// Two dispatches with one token write one key, so that the second finds the first one's child.
///
/// # Errors
/// See [`Refusal`].
pub fn dispatch(
    snapshot: &Snapshot,
    request: &DispatchRequest,
    stamp: &Stamp,
) -> Result<Outcome, Refusal> {
    // First of all: an attempt of this request was carried out.
    if let Some(eval) = snapshot.eval(stamp.eval_id) {
        return Ok(done(snapshot, &eval.value.job, Some(stamp)));
    }
    let own = child_key(request, stamp);
    // A child that is periodic itself has no evaluation to know the attempt by.
    if snapshot
        .job(&own)
        .is_some_and(|child| child.value.is_parent())
    {
        return Ok(done(snapshot, &own, None));
    }
    if snapshot.scheduler_config().reject_job_registration {
        return Err(Refusal::Rejected);
    }
    let job_id = &*request.parent.job_id;
    let stored = snapshot.job(&request.parent);
    let stored = stored.ok_or_else(|| Refusal::no_such_job(&request.parent))?;
    let parent = &stored.value;
    let rules = parent.parameterized.as_ref().filter(|_| parent.is_parent());
    let rules = rules.ok_or_else(|| {
        Refusal::state(format!(
            "Specified job {job_id:?} is not a parameterized job"
        ))
    })?;
    if parent.stop {
        let message = format!("Specified job {job_id:?} is stopped: run it again first");
        return Err(Refusal::state(message));
    }
    check(request, rules)?;
    let priority = eval_priority(request.priority).map_err(renamed)?;
    let token = if request.token.is_empty() {
        None
    } else {
        snapshot.dispatch_token(&request.parent, &request.token)
    };
    if let Some(token) = token {
        let key = JobKey::new(&*request.parent.namespace, token.value.child_id.as_str());
        if snapshot.job(&key).is_some() {
            return Ok(done(snapshot, &key, None));
        }
    }
    refuse_beyond(snapshot, request.max_open_evals)?;

    let mut child = parent.dispatched_child(
        own.job_id.to_string(),
        &request.meta,
        request.payload.clone(),
        &request.token,
        stamp.now,
    );
    child.priority = priority.unwrap_or(parent.priority);
    child.version = snapshot.unused_version(&own);
    let mut writes = vec![unchanged(stored), scheduler_config::guard(snapshot)];
    writes.extend(namespaces::join_as_job(snapshot, &child)?);
    let eval = (!child.is_parent()).then(|| {
        let (job_type, priority) = (child.job_type, child.priority);
        evaluation(stamp, &child, job_type, priority, TriggeredBy::JobRegister)
    });
    let eval_id = eval.as_ref().map(|eval| eval.id);
    writes.extend(eval.map(create_eval));
    writes.extend(begin(snapshot, &child, None, stamp.now));
    if !request.token.is_empty() {
        let key = Key::DispatchToken(request.parent.clone(), request.token.clone());
        let entity = Entity::DispatchToken(DispatchToken {
            child_id: child.id.clone(),
        });
        writes.push(match token {
            // The child that it stood for is gone.
            Some(row) => Write::Update {
                key,
                modify_index: row.modify_index,
                entity,
            },
            None => Write::Create { key, entity },
        });
    }
    let made = Made {
        job_id: child.id.clone(),
        eval_id,
        job_index: None,
    };
    writes.extend(create_job(child));
    Ok(Outcome::Commit { writes, made })
}

fn child_key(request: &DispatchRequest, stamp: &Stamp) -> JobKey {
    let (parent, template) = (&*request.parent.job_id, request.id_template.as_str());
    let id = dispatched_child_id(parent, template, stamp.now, request.nonce);
    JobKey::new(&*request.parent.namespace, id.as_str())
}

fn done(snapshot: &Snapshot, child: &JobKey, stamp: Option<&Stamp>) -> Outcome {
    let created = snapshot.job(child).map_or(0, |job| job.create_index);
    Outcome::Done {
        made: Made {
            job_id: child.job_id.to_string(),
            eval_id: stamp.map(|stamp| stamp.eval_id),
            job_index: Some(created),
        },
        index: created.max(1),
    }
}

fn renamed(mut errors: FieldErrors) -> FieldErrors {
    for error in &mut errors.0 {
        error.field = "priority".to_owned();
    }
    errors
}

/// Checks what is brought along against what the job asks for. Source: Nomad's texts.
fn check(request: &DispatchRequest, rules: &Parameterized) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let bytes = request.payload.0.len();
    match rules.payload {
        PayloadRule::Required if bytes == 0 => errors.push(
            "payload",
            "Payload is not provided but required by parameterized job: bring one",
        ),
        PayloadRule::Forbidden if bytes > 0 => errors.push(
            "payload",
            "Payload provided but forbidden by parameterized job: leave it out",
        ),
        _ => {}
    }
    if bytes > Payload::MAX_BYTES {
        let limit = Payload::MAX_BYTES;
        let message = format!(
            "Payload exceeds maximum size; {bytes} > {limit}: pass a reference to it instead"
        );
        errors.push("payload", message);
    }
    let required: BTreeSet<&str> = rules.meta_required.iter().map(String::as_str).collect();
    let known = |key: &&str| {
        required.contains(key) || rules.meta_optional.iter().any(|optional| optional == key)
    };
    let given = || request.meta.keys().map(String::as_str);
    let unknown: Vec<&str> = given().filter(|key| !known(key)).collect();
    if !unknown.is_empty() {
        let message = format!(
            "Dispatch request included unpermitted metadata keys: {unknown:?}: the job knows {:?}",
            required
                .iter()
                .copied()
                .chain(rules.meta_optional.iter().map(String::as_str))
                .collect::<Vec<_>>(),
        );
        errors.push("meta", message);
    }
    let missing = required
        .iter()
        .filter(|key| !request.meta.contains_key(**key));
    let missing: Vec<&str> = missing.copied().collect();
    if !missing.is_empty() {
        let message = format!("Dispatch did not provide required meta keys: {missing:?}: set them");
        errors.push("meta", message);
    }
    for (key, value) in &request.meta {
        if value.contains('\0') {
            errors.push(
                "meta",
                format!("the value of {key:?} cannot include null characters"),
            );
        }
    }
    if request.token.len() > MAX_TOKEN_BYTES {
        let message = format!(
            "has {} bytes: want at most {MAX_TOKEN_BYTES}, as in a UUID",
            request.token.len()
        );
        errors.push("idempotency_token", message);
    }
    let template = &request.id_template;
    let is_fit = |character: char| !character.is_whitespace() && !"/\0".contains(character);
    if template.len() > MAX_TEMPLATE_BYTES || !template.chars().all(is_fit) {
        let message = format!(
            "{template:?} stands in the job's id: want at most {MAX_TEMPLATE_BYTES} bytes without \
             spaces and slashes"
        );
        errors.push("id_prefix_template", message);
    }
    errors.into_result(())
}

/// Checks what a user's registration says of what only the servers say.
pub(super) fn check_owned(stored: Option<&Job>, job: &Job) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if stored.is_none() && job.dispatched {
        errors.push(
            "dispatched",
            "job can't be submitted with 'Dispatched' set: leave it out",
        );
    }
    if stored.is_none() && !job.payload.is_empty() {
        let message = "job can't be submitted with a payload, only dispatched: leave it out";
        errors.push("payload", message);
    }
    errors.into_result(())
}
