//! Edits of every field of a job: each shows in one place of the diff and nowhere else.

use std::time::Duration;

use jobdiff::{DiffType, diff};
use model::artifact::{Artifact, ArtifactMode};
use model::job::{
    DelayFunction, Dns, HealthCheck, JobType, LifecycleHook, ReconcileChoice, RestartMode,
    TaskAction, Ui, UiLink, WaitFor,
};
use model::scaling::{ScaledResource, TaskScaling};
use model::service::{AddressMode, CheckType, InitialStatus, OnUpdate, Provider};
use model::template::ChangeMode;
use model::{Job, Operator, Task, TaskGroup, Timestamp, Vault, WorkloadIdentity};

use crate::support::{changes, full};

/// An edit, and the differences it makes.
pub(crate) type Edit = (fn(&mut Job), &'static [&'static str]);

const LONG: Duration = Duration::from_nanos(7);

fn app(job: &mut Job) -> &mut TaskGroup {
    &mut job.task_groups[0]
}

fn server(job: &mut Job) -> &mut Task {
    &mut job.task_groups[0].tasks[0]
}

/// Independent edits, at least one for each field of the model.
pub(crate) const EDITS: &[Edit] = &[
    // The job.
    (
        |job| job.namespace = "ops".into(),
        &["Namespace default => ops"],
    ),
    (|job| job.name = "site".into(), &["Name web => site"]),
    (|job| job.region = "eu".into(), &["Region global => eu"]),
    (
        |job| job.job_type = JobType::Batch,
        &["Type service => batch"],
    ),
    (|job| job.priority = 70, &["Priority 50 => 70"]),
    (|job| job.all_at_once = true, &["AllAtOnce false => true"]),
    (
        |job| job.node_pool = "gpu".into(),
        &["NodePool default => gpu"],
    ),
    (|job| job.stop = true, &["Stop false => true"]),
    (
        |job| job.datacenters.push("dc2".into()),
        &["Datacenters/Datacenters  => dc2"],
    ),
    (
        |job| job.constraints[0].right = "small".into(),
        &["+ Constraint", "- Constraint"],
    ),
    (
        |job| job.affinities[0].weight = -50,
        &["+ Affinity", "- Affinity"],
    ),
    (|job| job.spreads[0].weight = 51, &["+ Spread", "- Spread"]),
    (
        |job| drop(job.meta.insert("owner".into(), "dev".into())),
        &["Meta[owner] ops => dev"],
    ),
    (
        |job| drop(job.meta.insert("empty".into(), String::new())),
        &["Meta[empty]  => "],
    ),
    (
        |job| {
            job.ui = Some(Ui {
                description: "Shop".into(),
                links: vec![UiLink {
                    label: "Runbook".into(),
                    url: "https://example.com".into(),
                }],
            });
        },
        &["+ UI"],
    ),
    // Blocks of a task.
    (
        |job| {
            server(job).actions.push(TaskAction {
                name: "flush".into(),
                command: "/bin/flush".into(),
                args: vec!["-all".into()],
            });
        },
        &["+ app/server/Action"],
    ),
    (
        |job| {
            server(job).artifacts.push(Artifact {
                source: "https://a/b".into(),
                options: [("checksum".into(), "md5:x".into())].into(),
                headers: [("X".into(), "y".into())].into(),
                mode: ArtifactMode::File,
                insecure: true,
                destination: "local/b".into(),
                chown: true,
            });
        },
        &["+ app/server/Artifact"],
    ),
    (
        |job| {
            server(job).identities.push(WorkloadIdentity {
                name: "vault_default".into(),
                ttl: LONG,
                ..WorkloadIdentity::default()
            });
        },
        &["+ app/server/Identity"],
    ),
    (
        |job| {
            server(job).vault = Some(Vault {
                policies: vec![],
                role: "r".into(),
                namespace: String::new(),
                cluster: "default".into(),
                env: true,
                disable_file: false,
                change_mode: ChangeMode::Restart,
                change_signal: "SIGHUP".into(),
                allow_token_expiration: false,
            });
        },
        &["+ app/server/Vault"],
    ),
    (
        |job| {
            server(job).scaling_policies.push(TaskScaling {
                resource: ScaledResource::VerticalCpu,
                enabled: true,
                min: None,
                max: 500,
                policy: serde_json::Map::new(),
            });
        },
        &["+ app/server/Scaling"],
    ),
    (
        |job| app(job).networks[0].hostname = "web".into(),
        &["app/Network/Hostname  => web"],
    ),
    (
        |job| {
            app(job).networks[0].dns = Some(Dns {
                servers: vec!["1.1.1.1".into()],
                ..Dns::default()
            });
        },
        &["+ app/Network/DNS"],
    ),
    (
        |job| drop(app(job).networks[0].cni_args.insert("a".into(), "b".into())),
        &["+ app/Network/CNI"],
    ),
    // A group.
    (|job| app(job).count = 3, &["app/Count 2 => 3"]),
    (
        |job| app(job).shutdown_delay = LONG,
        &["app/ShutdownDelay  => 7"],
    ),
    (
        |job| app(job).max_run_duration = Some(LONG),
        &["app/MaxRunDuration  => 7"],
    ),
    (
        |job| drop(app(job).meta.remove("tier")),
        &["app/Meta[tier] 1 => "],
    ),
    (
        |job| app(job).constraints[0].operator = Operator::NotEqual,
        &["+ app/Constraint", "- app/Constraint"],
    ),
    (
        |job| app(job).affinities[0].right = "r2".into(),
        &["+ app/Affinity", "- app/Affinity"],
    ),
    (
        |job| app(job).spreads[0].targets[0].percent = 61,
        &["+ app/Spread", "- app/Spread"],
    ),
    (
        |job| app(job).services[0].name = "api".into(),
        &["app/Service/Name web => api"],
    ),
    (
        |job| app(job).services[0].provider = Provider::Consul,
        &["app/Service/Provider nomad => consul"],
    ),
    (
        |job| app(job).services[0].enable_tag_override = true,
        &["app/Service/EnableTagOverride false => true"],
    ),
    (
        |job| app(job).services[0].kind = "api".into(),
        &["app/Service/Kind  => api"],
    ),
    (
        |job| {
            drop(
                app(job).services[0]
                    .canary_meta
                    .insert("a".into(), "b".into()),
            )
        },
        &["app/Service/CanaryMeta[a]  => b"],
    ),
    (
        |job| {
            drop(
                app(job).services[0]
                    .tagged_addresses
                    .insert("lan".into(), "h:1".into()),
            )
        },
        &["app/Service/TaggedAddresses[lan]  => h:1"],
    ),
    (
        |job| app(job).services[0].checks[0].failures_before_warning = 2,
        &["app/Service/Check/FailuresBeforeWarning 0 => 2"],
    ),
    (
        |job| app(job).services[0].checks[0].notes = "n".into(),
        &["app/Service/Check/Notes  => n"],
    ),
    (
        |job| app(job).services[0].port = "debug".into(),
        &["app/Service/PortLabel http => debug"],
    ),
    (
        |job| app(job).services[0].address = "h".into(),
        &["app/Service/Address  => h"],
    ),
    (
        |job| app(job).services[0].address_mode = AddressMode::Host,
        &["app/Service/AddressMode auto => host"],
    ),
    (
        |job| app(job).services[0].checks[0].address_mode = Some(AddressMode::Alloc),
        &["app/Service/Check/AddressMode  => alloc"],
    ),
    (
        |job| app(job).services[0].task = "server".into(),
        &["app/Service/TaskName  => server"],
    ),
    (
        |job| app(job).services[0].on_update = OnUpdate::Ignore,
        &["app/Service/OnUpdate require_healthy => ignore"],
    ),
    (
        |job| app(job).services[0].tags.push("v2".into()),
        &["app/Service/Tags/Tags  => v2"],
    ),
    (
        |job| app(job).services[0].canary_tags.push("v2".into()),
        &["app/Service/CanaryTags/CanaryTags  => v2"],
    ),
    (
        |job| drop(app(job).services[0].meta.insert("a".into(), "b".into())),
        &["app/Service/Meta[a]  => b"],
    ),
    (
        |job| app(job).services[0].checks[0].name = "up".into(),
        &["app/Service/Check/Name alive => up"],
    ),
    (
        |job| app(job).services[0].checks[0].check_type = CheckType::Tcp,
        &["app/Service/Check/Type http => tcp"],
    ),
    (
        |job| app(job).services[0].checks[0].port = "debug".into(),
        &["app/Service/Check/PortLabel  => debug"],
    ),
    (
        |job| app(job).services[0].checks[0].task = "server".into(),
        &["app/Service/Check/TaskName  => server"],
    ),
    (
        |job| app(job).services[0].checks[0].interval = LONG,
        &["app/Service/Check/Interval 10000000000 => 7"],
    ),
    (
        |job| app(job).services[0].checks[0].timeout = LONG,
        &["app/Service/Check/Timeout 2000000000 => 7"],
    ),
    (
        |job| app(job).services[0].checks[0].path = "/x".into(),
        &["app/Service/Check/Path / => /x"],
    ),
    (
        |job| app(job).services[0].checks[0].protocol = "https".into(),
        &["app/Service/Check/Protocol  => https"],
    ),
    (
        |job| app(job).services[0].checks[0].method = "HEAD".into(),
        &["app/Service/Check/Method  => HEAD"],
    ),
    (
        |job| app(job).services[0].checks[0].body = "x".into(),
        &["app/Service/Check/Body  => x"],
    ),
    (
        |job| app(job).services[0].checks[0].tls_server_name = "x".into(),
        &["app/Service/Check/TLSServerName  => x"],
    ),
    (
        |job| app(job).services[0].checks[0].tls_skip_verify = true,
        &["app/Service/Check/TLSSkipVerify false => true"],
    ),
    (
        |job| app(job).services[0].checks[0].grpc_service = "x".into(),
        &["app/Service/Check/GRPCService  => x"],
    ),
    (
        |job| app(job).services[0].checks[0].grpc_use_tls = true,
        &["app/Service/Check/GRPCUseTLS false => true"],
    ),
    (
        |job| app(job).services[0].checks[0].command = "x".into(),
        &["app/Service/Check/Command  => x"],
    ),
    (
        |job| app(job).services[0].checks[0].args = vec!["x".into()],
        &["+ app/Service/Check/Args"],
    ),
    (
        |job| app(job).services[0].checks[0].initial_status = Some(InitialStatus::Passing),
        &["app/Service/Check/InitialStatus  => passing"],
    ),
    (
        |job| app(job).services[0].checks[0].success_before_passing = 2,
        &["app/Service/Check/SuccessBeforePassing 0 => 2"],
    ),
    (
        |job| app(job).services[0].checks[0].failures_before_critical = 2,
        &["app/Service/Check/FailuresBeforeCritical 0 => 2"],
    ),
    (
        |job| app(job).services[0].checks[0].on_update = OnUpdate::Ignore,
        &["app/Service/Check/OnUpdate require_healthy => ignore"],
    ),
    (
        |job| {
            drop(
                app(job).services[0].checks[0]
                    .header
                    .insert("A".into(), vec!["b".into()]),
            )
        },
        &["app/Service/Check/Header/A[0]  => b"],
    ),
    (
        |job| {
            app(job).services[0].checks[0]
                .check_restart
                .as_mut()
                .unwrap()
                .limit = 2
        },
        &["app/Service/Check/CheckRestart/Limit 1 => 2"],
    ),
    (
        |job| {
            app(job).services[0].checks[0]
                .check_restart
                .as_mut()
                .unwrap()
                .grace = LONG
        },
        &["app/Service/Check/CheckRestart/Grace 1000000000 => 7"],
    ),
    (
        |job| {
            app(job).services[0].checks[0]
                .check_restart
                .as_mut()
                .unwrap()
                .ignore_warnings = true
        },
        &["app/Service/Check/CheckRestart/IgnoreWarnings false => true"],
    ),
    (
        |job| app(job).networks[0].mode = "bridge".into(),
        &["app/Network/Mode  => bridge"],
    ),
    (
        |job| app(job).networks[0].ports[0].static_port = Some(8081),
        &["app/Network/Static Port/Value 8080 => 8081"],
    ),
    (
        |job| app(job).networks[0].ports[0].host_network = "public".into(),
        &["app/Network/Static Port/HostNetwork default => public"],
    ),
    (
        |job| app(job).networks[0].ports[1].to = Some(9),
        &["app/Network/Dynamic Port/To 0 => 9"],
    ),
    (
        |job| app(job).restart.attempts = 77,
        &["app/RestartPolicy/Attempts 2 => 77"],
    ),
    (
        |job| app(job).restart.interval = LONG,
        &["app/RestartPolicy/Interval 1800000000000 => 7"],
    ),
    (
        |job| app(job).restart.delay = LONG,
        &["app/RestartPolicy/Delay 15000000000 => 7"],
    ),
    (
        |job| app(job).restart.mode = RestartMode::Delay,
        &["app/RestartPolicy/Mode fail => delay"],
    ),
    (
        |job| app(job).restart.render_templates = true,
        &["app/RestartPolicy/RenderTemplates false => true"],
    ),
    (
        |job| app(job).reschedule.as_mut().unwrap().attempts = 2,
        &["app/ReschedulePolicy/Attempts 1 => 2"],
    ),
    (
        |job| app(job).reschedule.as_mut().unwrap().interval = LONG,
        &["app/ReschedulePolicy/Interval 600000000000 => 7"],
    ),
    (
        |job| app(job).reschedule.as_mut().unwrap().delay = LONG,
        &["app/ReschedulePolicy/Delay 30000000000 => 7"],
    ),
    (
        |job| app(job).reschedule.as_mut().unwrap().delay_function = DelayFunction::Fibonacci,
        &["app/ReschedulePolicy/DelayFunction constant => fibonacci"],
    ),
    (
        |job| app(job).reschedule.as_mut().unwrap().max_delay = LONG,
        &["app/ReschedulePolicy/MaxDelay 60000000000 => 7"],
    ),
    (
        |job| app(job).reschedule.as_mut().unwrap().unlimited = true,
        &["app/ReschedulePolicy/Unlimited false => true"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().max_parallel = 2,
        &["app/Update/MaxParallel 1 => 2"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().health_check = HealthCheck::Manual,
        &["app/Update/HealthCheck checks => manual"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().min_healthy_time = LONG,
        &["app/Update/MinHealthyTime 10000000000 => 7"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().healthy_deadline = LONG,
        &["app/Update/HealthyDeadline 300000000000 => 7"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().progress_deadline = LONG,
        &["app/Update/ProgressDeadline 600000000000 => 7"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().auto_revert = true,
        &["app/Update/AutoRevert false => true"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().auto_promote = true,
        &["app/Update/AutoPromote false => true"],
    ),
    (
        |job| app(job).update.as_mut().unwrap().canary = 1,
        &["app/Update/Canary 0 => 1"],
    ),
    (
        |job| app(job).migrate.as_mut().unwrap().max_parallel = 2,
        &["app/Migrate/MaxParallel 1 => 2"],
    ),
    (
        |job| app(job).migrate.as_mut().unwrap().health_check = HealthCheck::TaskStates,
        &["app/Migrate/HealthCheck checks => task_states"],
    ),
    (
        |job| app(job).migrate.as_mut().unwrap().min_healthy_time = LONG,
        &["app/Migrate/MinHealthyTime 10000000000 => 7"],
    ),
    (
        |job| app(job).migrate.as_mut().unwrap().healthy_deadline = LONG,
        &["app/Migrate/HealthyDeadline 300000000000 => 7"],
    ),
    (
        |job| app(job).disconnect.as_mut().unwrap().lost_after = None,
        &["app/Disconnect/LostAfter 60000000000 => 0"],
    ),
    (
        |job| app(job).disconnect.as_mut().unwrap().stop_on_client_after = Some(LONG),
        &["app/Disconnect/StopOnClientAfter nil => 7"],
    ),
    (
        |job| app(job).disconnect.as_mut().unwrap().replace = false,
        &["app/Disconnect/Replace true => false"],
    ),
    (
        |job| app(job).disconnect.as_mut().unwrap().reconcile = ReconcileChoice::KeepOriginal,
        &["app/Disconnect/Reconcile best_score => keep_original"],
    ),
    (
        |job| app(job).ephemeral_disk.size_mib = 7,
        &["app/EphemeralDisk/SizeMB 300 => 7"],
    ),
    (
        |job| app(job).ephemeral_disk.sticky = true,
        &["app/EphemeralDisk/Sticky false => true"],
    ),
    (
        |job| app(job).ephemeral_disk.migrate = true,
        &["app/EphemeralDisk/Migrate false => true"],
    ),
    // A task.
    (
        |job| server(job).driver = "raw_exec".into(),
        &["app/server/Driver mock_driver => raw_exec"],
    ),
    (
        |job| server(job).user = String::new(),
        &["app/server/User web => "],
    ),
    (
        |job| drop(server(job).env.insert("PORT".into(), "81".into())),
        &["app/server/Env[PORT] 80 => 81"],
    ),
    (
        |job| drop(server(job).env.insert("DEBUG".into(), "1".into())),
        &["app/server/Env[DEBUG]  => 1"],
    ),
    (
        |job| drop(server(job).meta.insert("role".into(), "spare".into())),
        &["app/server/Meta[role] main => spare"],
    ),
    (
        |job| drop(server(job).config.insert("command".into(), "x".into())),
        &["app/server/Config/command /bin/sh => x"],
    ),
    (
        |job| server(job).config["args"][1] = "false".into(),
        &["app/server/Config/args[1] true => false"],
    ),
    (
        |job| server(job).config["limits"]["fd"] = 8.into(),
        &["app/server/Config/limits[fd] 7 => 8"],
    ),
    (
        |job| server(job).constraints[0].left = "${node.id}".into(),
        &["+ app/server/Constraint", "- app/server/Constraint"],
    ),
    (
        |job| server(job).affinities.clear(),
        &["- app/server/Affinity"],
    ),
    (
        |job| server(job).resources.cpu_mhz = 7,
        &["app/server/Resources/CPU 500 => 7"],
    ),
    (
        |job| server(job).resources.memory_mib = 7,
        &["app/server/Resources/MemoryMB 256 => 7"],
    ),
    (
        |job| server(job).resources.memory_max = model::MemoryMax::Mib(7),
        &["app/server/Resources/MemoryMaxMB 0 => 7"],
    ),
    // Shows at the group, from which the task usually has it.
    (|job| server(job).restart.attempts = 77, &[]),
    (
        |job| server(job).kill_timeout = LONG,
        &["app/server/KillTimeout 5000000000 => 7"],
    ),
    (
        |job| server(job).kill_signal = "SIGINT".into(),
        &["app/server/KillSignal SIGTERM => SIGINT"],
    ),
    (
        |job| server(job).leader = true,
        &["app/server/Leader false => true"],
    ),
    (
        |job| server(job).shutdown_delay = LONG,
        &["app/server/ShutdownDelay 0 => 7"],
    ),
    (
        |job| app(job).tasks[1].lifecycle.as_mut().unwrap().hook = LifecycleHook::Poststart,
        &["app/init/Lifecycle/Hook prestart => poststart"],
    ),
    (
        |job| app(job).tasks[1].lifecycle.as_mut().unwrap().sidecar = true,
        &["app/init/Lifecycle/Sidecar false => true"],
    ),
    (
        |job| app(job).tasks[1].lifecycle.as_mut().unwrap().wait_for = Some(WaitFor::Healthy),
        &["app/init/Lifecycle/WaitFor  => healthy"],
    ),
    (
        |job| server(job).logs.max_files = 77,
        &["app/server/LogConfig/MaxFiles 10 => 77"],
    ),
    (
        |job| server(job).logs.max_file_size_mib = 77,
        &["app/server/LogConfig/MaxFileSizeMB 10 => 77"],
    ),
    (
        |job| server(job).logs.disabled = true,
        &["app/server/LogConfig/Disabled false => true"],
    ),
    // Another group, to see that it is not taken for the first.
    (
        |job| job.task_groups[1].tasks[0].user = "db".into(),
        &["db/server/User web => db"],
    ),
];

/// Edits of larger parts, which overlap with others.
const LARGE: &[Edit] = &[
    (
        |job| job.datacenters = vec!["dc2".into()],
        &[
            "Datacenters/Datacenters  => dc2",
            "Datacenters/Datacenters dc1 => ",
        ],
    ),
    (|job| job.datacenters.clear(), &["- Datacenters"]),
    (|job| drop(job.task_groups.remove(1)), &["- group db"]),
    (
        |job| job.task_groups[1].name = "cache".into(),
        &["+ group cache", "- group db"],
    ),
    (
        |job| server(job).name = "main".into(),
        &["+ task app/main", "- task app/server"],
    ),
    (|job| drop(app(job).tasks.remove(1)), &["- task app/init"]),
    (|job| app(job).networks.clear(), &["- app/Network"]),
    (
        |job| app(job).networks[0].ports[1].static_port = Some(99),
        &["+ app/Network/Static Port", "- app/Network/Dynamic Port"],
    ),
    (
        |job| app(job).networks[0].ports[0].label = "web".into(),
        &["+ app/Network/Static Port", "- app/Network/Static Port"],
    ),
    (
        |job| app(job).reschedule = None,
        &["- app/ReschedulePolicy"],
    ),
    (|job| app(job).update = None, &["- app/Update"]),
    (|job| app(job).migrate = None, &["- app/Migrate"]),
    (|job| app(job).disconnect = None, &["- app/Disconnect"]),
    (
        |job| app(job).tasks[1].lifecycle = None,
        &["- app/init/Lifecycle"],
    ),
    (|job| server(job).config.clear(), &["- app/server/Config"]),
    (
        |job| server(job).config["args"] = serde_json::json!([]),
        &[
            "app/server/Config/args  => []",
            "app/server/Config/args[0] -c => ",
            "app/server/Config/args[1] true => ",
        ],
    ),
    (
        |job| {
            let copy = job.constraints[0].clone();
            job.constraints.push(copy);
        },
        &["+ Constraint"],
    ),
];

/// Edits that do not show.
const NOTHING: &[fn(&mut Job)] = &[
    |job| job.version = 7,
    |job| job.submit_time = Timestamp(7),
    |job| app(job).update.as_mut().unwrap().stagger = LONG,
    |job| job.task_groups.reverse(),
    |job| app(job).tasks.reverse(),
    |job| app(job).networks[0].ports.reverse(),
];

fn changes_of(edit: fn(&mut Job), contextual: bool) -> (DiffType, Vec<String>) {
    let old = full();
    let mut new = old.clone();
    edit(&mut new);
    assert_ne!(old, new, "nothing was edited");
    let diff = diff(Some(&old), Some(&new), contextual);
    (diff.diff_type, changes(&diff))
}

#[test]
fn every_change_shows_where_it_was_made_and_nowhere_else() {
    for (edit, expected) in EDITS.iter().chain(LARGE) {
        for contextual in [false, true] {
            let (diff_type, found) = changes_of(*edit, contextual);
            assert_eq!(found, *expected);
            assert_eq!(diff_type, DiffType::Edited, "{expected:?}");
        }
    }
}

#[test]
fn order_versions_and_times_are_no_difference() {
    for (number, edit) in NOTHING.iter().enumerate() {
        assert_eq!(
            changes_of(*edit, true),
            (DiffType::None, vec![]),
            "{number}"
        );
    }
}

#[test]
fn the_other_way_round_it_is_undone() {
    for (edit, _) in EDITS.iter().chain(LARGE) {
        let (old, mut new) = (full(), full());
        edit(&mut new);
        let there = changes(&diff(Some(&old), Some(&new), false));
        let back = changes(&diff(Some(&new), Some(&old), false));
        let mut undone: Vec<String> = there.iter().map(|change| reversed(change)).collect();
        undone.sort();
        assert_eq!(back, undone);
    }
}

fn reversed(change: &str) -> String {
    if let Some(rest) = change.strip_prefix('+') {
        return format!("-{rest}");
    }
    if let Some(rest) = change.strip_prefix('-') {
        return format!("+{rest}");
    }
    let (left, new) = change.split_once(" => ").unwrap();
    let place = left.find("] ").map_or_else(|| path_end(left), |at| at + 1);
    let (path, old) = left.split_at(place);
    format!("{path} {new} => {}", &old[1..])
}

/// Returns the offset of the value: a path has a space only in the name of a port.
fn path_end(left: &str) -> usize {
    let from = left.find(" Port/").map_or(0, |at| at + 1);
    from + left[from..].find(' ').unwrap()
}
