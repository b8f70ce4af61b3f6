//! Dispatch of a parameterized job: a child and its evaluation in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::children::dispatched_child_id;
use model::{
    DispatchToken, FieldErrors, Indexed, Job, JobKey, Parameterized, Payload, PayloadRule,
    TriggeredBy,
};
use state::{Entity, Key, Snapshot, Write};

use super::decision::{Outcome, Receipt, RequestContext};
use super::limits::{check_open_evals, eval_priority};
use super::missing::find_job;
use super::namespace_rules;
use super::refusal::JobRefusal;
use super::writes::{begin, create_job, evaluation};
use crate::cluster::scheduler_config;

/// The length limit of a token, in bytes: a UUID has 36, the path of a pipeline some more.
const MAX_TOKEN_BYTES: usize = 256;
/// The length limit of the template, which is part of the child's id and so of keys.
const MAX_TEMPLATE_BYTES: usize = 128;

#[derive(Clone, Debug)]
pub struct DispatchRequest {
    pub parent: JobKey,
    pub payload: Payload,
    pub meta: BTreeMap<String, String>,
    /// Empty: none.
    pub token: String,
    /// A part of the child's id; empty: none.
    pub id_template: String,
    /// 0: the parent's.
    pub priority: u32,
    /// Distinguishes children of the same second; the same in every attempt of one request.
    pub nonce: u32,
    /// With this many open evaluations it is refused.
    pub max_open_evals: usize,
}

/// Decides on a dispatch.
///
/// Two dispatches with one token write one key, so that the second finds the first one's child.
///
/// # Errors
/// See [`JobRefusal`].
pub fn dispatch(
    snapshot: &Snapshot,
    request: &DispatchRequest,
    context: &RequestContext,
) -> Result<Outcome, JobRefusal> {
    // First, because an earlier attempt may have been committed.
    if let Some(eval) = snapshot.eval(context.eval_id) {
        return Ok(done(snapshot, &eval.value.job, Some(context)));
    }
    let own = child_key(request, context);
    // A periodic child has no evaluation that identifies the attempt.
    if snapshot
        .job(&own)
        .is_some_and(|child| child.value.is_parent())
    {
        return Ok(done(snapshot, &own, None));
    }
    if snapshot.scheduler_config().reject_job_registration {
        return Err(JobRefusal::Rejected);
    }
    let job_id = &*request.parent.job_id;
    let stored = find_job(snapshot, &request.parent)?;
    let parent = &stored.value;
    let rules = parent.parameterized.as_ref().filter(|_| parent.is_parent());
    let rules = rules.ok_or_else(|| {
        JobRefusal::state(format!(
            "Specified job {job_id:?} is not a parameterized job"
        ))
    })?;
    if parent.stop {
        let message = format!("Specified job {job_id:?} is stopped: run it again first");
        return Err(JobRefusal::state(message));
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
    check_open_evals(snapshot, request.max_open_evals)?;
    let mut child = parent.dispatched_child(
        own.job_id.to_string(),
        &request.meta,
        request.payload.clone(),
        &request.token,
        context.now,
    );
    child.priority = priority.unwrap_or(parent.priority);
    child.version = snapshot.unused_version(&own);
    let token = put_token(request, &child, token);
    create(snapshot, stored, child, token, context)
}

/// Returns the creation of a child, with the write of its token if the request has one.
fn create(
    snapshot: &Snapshot,
    parent: &Indexed<Job>,
    child: Job,
    token: Option<Write>,
    context: &RequestContext,
) -> Result<Outcome, JobRefusal> {
    let mut writes = vec![
        Write::job_unchanged(parent),
        scheduler_config::guard(snapshot),
    ];
    writes.extend(namespace_rules::require_for_job(snapshot, &child)?);
    let eval = (!child.is_parent()).then(|| {
        let (job_type, priority) = (child.job_type, child.priority);
        evaluation(
            context,
            &child,
            job_type,
            priority,
            TriggeredBy::JobRegister,
        )
    });
    let eval_id = eval.as_ref().map(|eval| eval.id);
    writes.extend(eval.map(Write::create_eval));
    writes.extend(begin(snapshot, &child, None, context.now));
    writes.extend(token);
    let receipt = Receipt {
        job_id: child.id.clone(),
        eval_id,
        job_index: None,
    };
    writes.extend(create_job(child));
    Ok(Outcome::Commit {
        writes,
        receipt,
        adds_work: true,
    })
}

/// Returns the write that lets a repeated request find the child; `stored` is an earlier one, whose child
/// is gone. `None`: the request has no token.
fn put_token(
    request: &DispatchRequest,
    child: &Job,
    stored: Option<&Arc<Indexed<DispatchToken>>>,
) -> Option<Write> {
    if request.token.is_empty() {
        return None;
    }
    let key = Key::DispatchToken(request.parent.clone(), request.token.clone());
    let entity = Entity::DispatchToken(DispatchToken {
        child_id: child.id.clone(),
    });
    let modify_index = stored.map_or(0, |row| row.modify_index);
    Some(Write::put(key, modify_index, entity))
}

fn child_key(request: &DispatchRequest, context: &RequestContext) -> JobKey {
    let (parent, template) = (&*request.parent.job_id, request.id_template.as_str());
    let id = dispatched_child_id(parent, template, context.now, request.nonce);
    JobKey::new(&*request.parent.namespace, id.as_str())
}

fn done(snapshot: &Snapshot, child: &JobKey, context: Option<&RequestContext>) -> Outcome {
    let created = snapshot.job(child).map_or(0, |job| job.create_index);
    Outcome::Done {
        receipt: Receipt {
            job_id: child.job_id.to_string(),
            eval_id: context.map(|context| context.eval_id),
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

/// Checks the request against the rules of the job. Source: Nomad's texts.
fn check(request: &DispatchRequest, rules: &Parameterized) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let bytes = request.payload.0.len();
    match rules.payload {
        PayloadRule::Required if bytes == 0 => errors.push(
            "payload",
            "Payload is not provided but required by parameterized job: add one",
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
            "{template:?} is part of the job's id: want at most {MAX_TEMPLATE_BYTES} bytes without \
             spaces and slashes"
        );
        errors.push("id_prefix_template", message);
    }
    errors.into_result(())
}

/// Refuses a registration that sets fields of dispatched jobs.
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
