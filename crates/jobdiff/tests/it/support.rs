//! A job with every block that there is, and diffs as text, one line a difference.

use std::collections::BTreeMap;
use std::time::Duration;

use jobdiff::{DiffType, FieldDiff, JobDiff, ObjectDiff};
use model::job::{
    DelayFunction, DisconnectStrategy, HealthCheck, Lifecycle, LifecycleHook, MigrateStrategy,
    Network, Port, ReconcileChoice, ReschedulePolicy,
};
use model::service::{CheckRestart, ServiceCheck};
use model::{Affinity, Constraint, Job, Operator, Spread, SpreadTarget};
use test_kit::builders;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Two groups of two tasks each; the first ones have every block that there is.
pub(crate) fn full() -> Job {
    let mut job = builders::service("web", 2);
    let node = Constraint {
        left: "${node.class}".to_owned(),
        operator: Operator::Equal,
        right: "large".to_owned(),
    };
    let near = Affinity {
        left: "${meta.rack}".to_owned(),
        operator: Operator::Equal,
        right: "r1".to_owned(),
        weight: 50,
    };
    let spread = Spread {
        attribute: "${node.datacenter}".to_owned(),
        weight: 50,
        targets: vec![SpreadTarget {
            value: "dc1".to_owned(),
            percent: 60,
        }],
    };
    job.constraints = vec![node.clone()];
    job.affinities = vec![near.clone()];
    job.spreads = vec![spread.clone()];
    job.datacenters = vec!["dc1".to_owned()];
    job.meta = BTreeMap::from([("owner".to_owned(), "ops".to_owned())]);
    let mut group = job.task_groups[0].clone();
    group.name = "app".to_owned();
    group.constraints = vec![node.clone()];
    group.affinities = vec![near.clone()];
    group.spreads = vec![spread];
    group.meta = BTreeMap::from([("tier".to_owned(), "1".to_owned())]);
    let port = |label: &str, static_port| Port {
        label: label.to_owned(),
        static_port,
        to: None,
        host_network: "default".to_owned(),
        ignore_collision: false,
    };
    let mut service = builders::registered("web", "http");
    service.tags = vec!["v1".to_owned()];
    service.canary_tags = vec!["c1".to_owned()];
    service.checks = vec![ServiceCheck {
        name: "alive".to_owned(),
        path: "/".to_owned(),
        interval: seconds(10),
        timeout: seconds(2),
        header: [("Host".to_owned(), vec!["h".to_owned()])].into(),
        check_restart: Some(CheckRestart {
            limit: 1,
            grace: seconds(1),
            ignore_warnings: false,
        }),
        ..ServiceCheck::default()
    }];
    group.services = vec![service];
    group.networks = vec![Network {
        mode: "host".to_owned(),
        ports: vec![port("http", Some(8080)), port("debug", None)],
        ..Network::default()
    }];
    group.reschedule = Some(ReschedulePolicy {
        attempts: 1,
        interval: seconds(600),
        delay: seconds(30),
        delay_function: DelayFunction::Constant,
        max_delay: seconds(60),
        unlimited: false,
    });
    group.update = Some(builders::rolling_update(1));
    group.migrate = Some(MigrateStrategy {
        max_parallel: 1,
        health_check: HealthCheck::Checks,
        min_healthy_time: seconds(10),
        healthy_deadline: seconds(300),
    });
    group.disconnect = Some(DisconnectStrategy {
        lost_after: Some(seconds(60)),
        stop_on_client_after: None,
        replace: true,
        reconcile: ReconcileChoice::BestScore,
    });
    let mut task = group.tasks[0].clone();
    task.name = "server".to_owned();
    task.user = "web".to_owned();
    task.env = BTreeMap::from([("PORT".to_owned(), "80".to_owned())]);
    task.meta = BTreeMap::from([("role".to_owned(), "main".to_owned())]);
    task.constraints = vec![node];
    task.affinities = vec![near];
    task.kill_signal = "SIGTERM".to_owned();
    let config =
        serde_json::json!({"command": "/bin/sh", "args": ["-c", "true"], "limits": {"fd": 7}});
    task.config = config.as_object().unwrap().clone();
    let mut second = task.clone();
    second.name = "init".to_owned();
    second.lifecycle = Some(Lifecycle {
        hook: LifecycleHook::Prestart,
        sidecar: false,
        wait_for: None,
    });
    group.tasks = vec![task, second];
    let mut other = group.clone();
    other.name = "db".to_owned();
    job.task_groups = vec![group, other];
    job
}

/// Returns every difference as `path old => new`, as in `app/server/Env[PORT] 80 => 81`; whole
/// objects that come or go as one.
pub(crate) fn changes(diff: &JobDiff) -> Vec<String> {
    let mut found = Vec::new();
    if matches!(diff.diff_type, DiffType::Added | DiffType::Deleted) {
        return vec![format!("{} job {}", sign(diff.diff_type), diff.id)];
    }
    fields(&mut found, "", &diff.fields);
    objects(&mut found, "", &diff.objects);
    for group in &diff.task_groups {
        let path = format!("{}/", group.name);
        match group.diff_type {
            DiffType::None => continue,
            DiffType::Edited => {}
            whole => {
                found.push(format!("{} group {}", sign(whole), group.name));
                continue;
            }
        }
        fields(&mut found, &path, &group.fields);
        objects(&mut found, &path, &group.objects);
        for task in &group.tasks {
            let path = format!("{path}{}/", task.name);
            match task.diff_type {
                DiffType::None => {}
                DiffType::Edited => {
                    fields(&mut found, &path, &task.fields);
                    objects(&mut found, &path, &task.objects);
                }
                whole => found.push(format!("{} task {}/{}", sign(whole), group.name, task.name)),
            }
        }
    }
    found.sort();
    found
}

fn fields(found: &mut Vec<String>, path: &str, fields: &[FieldDiff]) {
    let changed = fields.iter().filter(|one| one.diff_type != DiffType::None);
    found.extend(changed.map(|one| format!("{path}{} {} => {}", one.name, one.old, one.new)));
}

fn objects(found: &mut Vec<String>, path: &str, all: &[ObjectDiff]) {
    for object in all {
        match object.diff_type {
            DiffType::Edited => {
                let path = format!("{path}{}/", object.name);
                fields(found, &path, &object.fields);
                objects(found, &path, &object.objects);
            }
            DiffType::None => panic!("an object that is the same is listed: {object:?}"),
            whole => found.push(format!("{} {path}{}", sign(whole), object.name)),
        }
    }
}

fn sign(diff_type: DiffType) -> char {
    match diff_type {
        DiffType::Added => '+',
        DiffType::Deleted => '-',
        DiffType::Edited | DiffType::None => ' ',
    }
}
