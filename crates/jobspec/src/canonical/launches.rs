//! The periodic, parameterized and dispatch_payload blocks.

use std::collections::BTreeSet;
use std::path::{Component, Path as FilePath};

use cron::{Schedule, Zone};
use model::job::{Job, JobType};
use model::{DispatchPayload, Parameterized, Payload, PayloadRule, Periodic};

use super::environment;
use super::validation::{Path, Validation};

/// Limit of cron expressions: each is evaluated for its next time again and again.
const MAX_CRONS: usize = 64;

/// Limit of meta keys of a dispatch.
const MAX_META_KEYS: usize = 256;

pub(super) fn periodic(
    check: &mut Validation,
    spec: Option<&job_fields::Periodic>,
    job_type: JobType,
) -> Option<Periodic> {
    let spec = spec?;
    let path = Path::root().block("periodic");
    if !job_type.runs_to_end() {
        let message = "Periodic can only be used with \"batch\" or \"sysbatch\" scheduler: set \
                       type, or remove the block";
        check.error("periodic", message);
    }
    let spec_type = spec.spec_type.as_deref().unwrap_or_default();
    if !matches!(spec_type, "" | "cron") {
        let message = format!("Unknown periodic spec type {spec_type:?}: leave it out");
        check.error(path.field("SpecType"), message);
    }
    let cron = spec.cron.as_ref().filter(|cron| !cron.is_empty());
    let crons = Some(&spec.crons).filter(|crons| !crons.is_empty());
    let is_list = crons.is_some();
    let (field, crons) = match (cron, crons) {
        (Some(_), Some(_)) => {
            let message = "Only cron or crons may be used: put all of them into crons";
            check.error(path.field("crons"), message);
            return None;
        }
        (Some(cron), None) => (path.field("cron"), vec![cron.clone()]),
        (None, Some(crons)) => (path.field("crons"), crons.clone()),
        (None, None) => {
            let message = "Must specify a spec: write cron = \"@daily\" or the like";
            check.error("periodic", message);
            return None;
        }
    };
    if crons.len() > MAX_CRONS {
        let message = format!("has {} expressions: want at most {MAX_CRONS}", crons.len());
        check.error(&field, message);
    }
    for cron in crons.iter().take(MAX_CRONS) {
        if let Err(error) = Schedule::parse(cron) {
            let message = format!("Invalid cron spec {cron:?}: {error}");
            check.error(&field, message);
        }
    }
    let zone = spec.time_zone.as_deref().filter(|zone| !zone.is_empty());
    let zone = zone.unwrap_or("UTC");
    if let Err(error) = Zone::named(zone) {
        let message = format!("Invalid time zone {zone:?}: {error}");
        check.error(path.field("time_zone"), message);
    }
    Some(Periodic {
        enabled: spec.enabled.unwrap_or(true),
        crons,
        is_list,
        prohibit_overlap: spec.prohibit_overlap.unwrap_or(false),
        time_zone: zone.to_owned(),
    })
}

pub(super) fn parameterized(
    check: &mut Validation,
    spec: Option<&job_fields::Parameterized>,
    job_type: JobType,
) -> Option<Parameterized> {
    let spec = spec?;
    let path = Path::root().block("parameterized");
    if !job_type.runs_to_end() {
        let message = "Parameterized job can only be used with \"batch\" or \"sysbatch\" \
                       scheduler: set type, or remove the block";
        check.error("parameterized", message);
    }
    let rules = PayloadRule::ALL.map(|rule| (rule.as_str(), rule));
    let payload = check.choice(
        path.field("payload"),
        spec.payload.as_deref().filter(|rule| !rule.is_empty()),
        &rules,
        PayloadRule::Optional,
        |rule| {
            format!("Unknown payload requirement: {rule:?}: use optional, required or forbidden")
        },
    );
    let meta_required = distinct(&spec.meta_required);
    let meta_optional = distinct(&spec.meta_optional);
    if meta_required.len() + meta_optional.len() > MAX_META_KEYS {
        let message = format!("more than {MAX_META_KEYS} keys: put what belongs together into one");
        check.error("parameterized", message);
    }
    for key in &meta_optional {
        if meta_required.contains(key) {
            let message = format!(
                "Required and optional meta keys should be disjoint, and {key:?} is in both: \
                 remove it here or there",
            );
            check.error(path.field("meta_optional"), message);
        }
    }
    Some(Parameterized {
        payload,
        meta_required,
        meta_optional,
    })
}

/// Returns each key once, in the order of its first occurrence.
fn distinct(keys: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    keys.iter()
        .filter(|key| seen.insert(key.as_str()))
        .cloned()
        .collect()
}

/// Returns the payload that a stored job was dispatched with.
pub(super) fn payload(check: &mut Validation, bytes: Option<&[u8]>) -> Payload {
    let payload = Payload(bytes.unwrap_or_default().to_vec());
    if payload.0.len() > Payload::MAX_BYTES {
        let message = format!(
            "Payload exceeds maximum size; {} > {}: pass a reference to it instead",
            payload.0.len(),
            Payload::MAX_BYTES,
        );
        check.error("Payload", message);
    }
    payload
}

pub(super) fn dispatch_payload(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::DispatchPayload>,
) -> Option<DispatchPayload> {
    let file = spec?.file.clone().unwrap_or_default();
    let field = path.block("dispatch_payload").field("file");
    if file.is_empty() {
        let message = "missing: want the file's name below the task's local directory";
        check.error(field, message);
    } else if let Some(problem) = environment::unfit(&file) {
        check.error(field, problem);
    } else if !is_below(&file) {
        let message = format!(
            "destination escapes allocation directory: {file:?} is not below the task's local \
             directory, write a plain name",
        );
        check.error(field, message);
    }
    Some(DispatchPayload { file })
}

/// Tells whether a path stays below where it starts, and names something there.
fn is_below(path: &str) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let is_named = !path.ends_with('/') && FilePath::new(path).file_name().is_some();
    is_named && FilePath::new(path).components().all(plain)
}

/// Warns of dispatch blocks in a job that is not dispatched.
pub(super) fn warn(check: &mut Validation, job: &Job) {
    if job.parameterized.is_some() {
        return;
    }
    for group in &job.task_groups {
        for task in group
            .tasks
            .iter()
            .filter(|task| task.dispatch_payload.is_some())
        {
            check.warn(format!(
                "Task {:?} has a dispatch_payload block, which has no effect: the job is not \
                 parameterized",
                task.name,
            ));
        }
    }
}
