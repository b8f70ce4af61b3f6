//! The identity blocks of a task.

use std::collections::BTreeSet;

use model::template::ChangeMode;
use model::{AllocPath, WorkloadIdentity};

use super::signal;
use super::validation::{Path, Validation};

/// Identities of one task, more than anyone writes by hand.
const MAX_IDENTITIES: usize = 64;

/// Reads the default identity and the named ones; a default without settings is left out.
pub(super) fn identities(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Task,
) -> Vec<WorkloadIdentity> {
    let mut identities = Vec::new();
    let block = path.block("identity");
    if let Some(spec) = &spec.identity {
        let mut identity = identity(check, &block, spec);
        if identity.name.is_empty() {
            identity.name = WorkloadIdentity::DEFAULT_NAME.to_owned();
        }
        if identity.audience.is_empty() {
            identity.audience = vec![WorkloadIdentity::DEFAULT_AUDIENCE.to_owned()];
        }
        if identity.name != WorkloadIdentity::DEFAULT_NAME {
            let message = format!(
                "this is the default identity; got the name {:?}: write it in Identities",
                identity.name
            );
            check.error(block.field("name"), message);
        } else if identity != WorkloadIdentity::default_identity() {
            identities.push(identity);
        }
    }
    if spec.identities.len() > MAX_IDENTITIES {
        let message = format!(
            "has {} blocks, more than {MAX_IDENTITIES}: remove some",
            spec.identities.len()
        );
        check.error(&block, message);
        return identities;
    }
    let mut names = BTreeSet::from([WorkloadIdentity::DEFAULT_NAME.to_owned()]);
    for (position, spec) in spec.identities.iter().enumerate() {
        let path = path.at("identity", position);
        let identity = identity(check, &path, spec);
        if identity.name.is_empty() {
            check.error(
                path.field("name"),
                "Missing identity name: write the name of another identity than the default one",
            );
        } else if !is_name(&identity.name) {
            let message = format!(
                "Invalid identity name {:?}: use up to 128 letters, digits, dashes and underscores",
                identity.name
            );
            check.error(path.field("name"), message);
        } else if !names.insert(identity.name.clone()) {
            let message = format!(
                "there are two identities {:?}: rename one of them",
                identity.name
            );
            check.error(path.field("name"), message);
        }
        let is_seen = identity.env || identity.file;
        if is_seen && identity.audience.is_empty() {
            check.warn(format!(
                "Identity {:?} has no audience: systems that check it refuse its token, write aud = [\"…\"]",
                identity.name
            ));
        }
        identities.push(identity);
    }
    identities
}

/// The name is part of a file's name and of a variable's.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.len() <= 128 && name.bytes().all(fits)
}

fn identity(check: &mut Validation, path: &Path, spec: &job_fields::Identity) -> WorkloadIdentity {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let env = spec.env.unwrap_or(false);
    let (change_mode, change_signal) = change(check, path, spec);
    if change_mode == Some(ChangeMode::Signal) && env {
        let message = "cannot use signals with a token in the environment: a process keeps its environment, \
                       use restart or noop, or write file = true instead of env";
        check.error(path.field("change_mode"), message);
    }
    let filepath = text(&spec.filepath);
    if !filepath.is_empty() && !filepath.contains("${") && AllocPath::file(&filepath).is_none() {
        let message = format!(
            "filepath escapes allocation directory: {filepath:?} is not a file below the task's directory or \
             ../alloc, write a path such as \"local/token.jwt\""
        );
        check.error(path.field("filepath"), message);
    }
    if spec.audience.iter().any(String::is_empty) {
        check.error(path.field("aud"), "an audience is empty: remove it");
    }
    let positive = "Identity TTL must be a positive value: leave it out for tokens of 24h";
    let ttl = check
        .signed_duration(path.field("ttl"), spec.ttl.as_ref(), positive)
        .unwrap_or_default();
    let range = WorkloadIdentity::TTL_MIN..=WorkloadIdentity::TTL_MAX;
    if !ttl.is_zero() && !range.contains(&ttl) {
        let message = "is out of range: want 20s to 720h, or leave it out for tokens of 24h";
        check.error(path.field("ttl"), message);
    }
    WorkloadIdentity {
        name: text(&spec.name),
        audience: spec.audience.clone(),
        change_mode,
        change_signal,
        env,
        file: spec.file.unwrap_or(false),
        filepath,
        service_name: text(&spec.service_name),
        ttl,
    }
}

fn change(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Identity,
) -> (Option<ChangeMode>, String) {
    let modes = [ChangeMode::Noop, ChangeMode::Restart, ChangeMode::Signal];
    let modes = modes.map(|mode| (mode.as_str(), mode));
    let given = spec.change_mode.as_deref().filter(|mode| !mode.is_empty());
    let mode = given.map(|_| {
        check.choice(
            path.field("change_mode"),
            given,
            &modes,
            ChangeMode::Noop,
            |mode| format!("Invalid change mode {mode:?}: use noop, restart or signal"),
        )
    });
    let signal = spec
        .change_signal
        .clone()
        .unwrap_or_default()
        .to_uppercase();
    if mode == Some(ChangeMode::Signal) && signal.is_empty() {
        let message = "change_signal must be specified when using signal change mode: write a signal such as \"SIGHUP\"";
        check.error(path.field("change_signal"), message);
    } else if let Some(problem) = signal::problem(&signal) {
        check.error(path.field("change_signal"), problem);
    }
    (mode, signal)
}
