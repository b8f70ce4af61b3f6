//! Start order of tasks, and the specification taken from a job.

use std::collections::BTreeMap;

use model::job::{
    EphemeralDisk, HealthCheck, Lifecycle, LifecycleHook, LogConfig, TaskResources, UpdateStrategy,
};
use model::{
    AllocId, AllocatedResources, Allocation, DesiredTransition, EvalId, Job, NodeId, Task,
    TaskGroup,
};

use super::*;
use crate::Limits;

#[test]
fn a_task_starts_once_its_directories_stand() {
    let mut play = Play::new(service().with("web", Role::Main));
    assert_eq!(play.send(Event::Begin), ["prerun"]);
    assert_eq!(play.status(), ClientStatus::Pending);
    assert_eq!(play.send(Event::PrerunDone(Ok(()))), ["start web 1"]);
    assert_eq!(play.status(), ClientStatus::Pending);
    assert!(play.started("web", 1).is_empty());
    assert_eq!(play.status(), ClientStatus::Running);
    assert_eq!(play.events("web"), ["Received", "Task Setup", "Started"]);
    assert_eq!(
        play.runner.client().task_states["web"].started_at,
        WALL_START
    );
}

#[test]
fn a_failed_set_up_fails_every_task_and_spares_none() {
    let mut play = Play::new(
        service()
            .with("web", Role::Main)
            .with("after", Role::Poststop),
    );
    play.send(Event::Begin);
    assert_eq!(
        play.send(Event::PrerunDone(Err("disk full".to_owned()))),
        ["ended"]
    );
    assert_eq!(play.status(), ClientStatus::Failed);
    for task in ["web", "after"] {
        assert!(play.has_failed(task));
        assert_eq!(play.last_event(task).event_type, "Setup Failure");
        assert_eq!(play.last_event(task).details["setup_error"], "disk full");
    }
}

#[test]
fn stages_open_one_after_the_other() {
    let spec = batch()
        .with("1init", Role::Prestart)
        .with("1proxy", Role::PrestartSidecar)
        .with("2main", Role::Main)
        .with("3warm", Role::Poststart)
        .with("3tail", Role::PoststartSidecar)
        .with("4clean", Role::Poststop);
    let (mut play, effects) = Play::begun(spec);
    assert_eq!(effects, ["start 1init 1", "start 1proxy 1"]);
    assert!(play.started("1init", 1).is_empty());
    assert!(play.started("1proxy", 1).is_empty());
    assert_eq!(
        play.exited("1init", 1, 0),
        ["forget 1init 1", "start 2main 1"]
    );
    assert_eq!(play.started("2main", 1), ["start 3tail 1", "start 3warm 1"]);
    play.started("3tail", 1);
    play.started("3warm", 1);
    assert_eq!(play.exited("3warm", 1, 0), ["forget 3warm 1"]);
    assert_eq!(
        play.exited("2main", 1, 0),
        ["forget 2main 1", "stop 1proxy 1 5s", "stop 3tail 1 5s"]
    );
    assert_eq!(play.exited("1proxy", 1, 130), ["forget 1proxy 1"]);
    assert_eq!(
        play.exited("3tail", 1, 130),
        ["forget 3tail 1", "start 4clean 1"]
    );
    play.started("4clean", 1);
    assert_eq!(play.exited("4clean", 1, 0), ["ended", "forget 4clean 1"]);
    assert_eq!(play.status(), ClientStatus::Complete);
}

#[test]
fn a_main_task_waits_for_both_kinds_of_prestart() {
    let spec = service()
        .with("init", Role::Prestart)
        .with("proxy", Role::PrestartSidecar)
        .with("main", Role::Main);
    let (mut play, _) = Play::begun(spec);
    play.started("init", 1);
    assert_eq!(play.exited("init", 1, 0), ["forget init 1"]);
    assert_eq!(play.started("proxy", 1), ["start main 1"]);
}

#[test]
fn a_main_task_restarts_while_a_prestart_sidecar_is_down() {
    let mut play = Play::running(
        service()
            .with("proxy", Role::PrestartSidecar)
            .with("main", Role::Main),
    );
    play.started("main", 1);
    play.exited("proxy", 1, 1);
    play.jump(seconds(1));
    play.exited("main", 1, 1);
    let mut effects = play.pass(seconds(20));
    effects.sort();
    assert_eq!(effects, ["start main 2", "start proxy 2"]);
}

#[test]
fn scenario_050_main_never_starts_when_prestart_gives_up_and_poststop_still_runs() {
    let spec = service()
        .with("init", Role::Prestart)
        .with("main", Role::Main)
        .with("clean", Role::Poststop);
    let (mut play, _) = Play::begun(spec);
    for attempt in 1..=3 {
        play.started("init", attempt);
        let effects = play.exited("init", attempt, 1);
        if attempt < 3 {
            assert_eq!(effects, [format!("forget init {attempt}")]);
            assert_eq!(
                play.pass(seconds(19)),
                [format!("start init {}", attempt + 1)]
            );
        } else {
            assert_eq!(effects, ["forget init 3", "start clean 1"]);
        }
    }
    assert_eq!(play.status(), ClientStatus::Failed);
    play.started("clean", 1);
    assert_eq!(play.exited("clean", 1, 0), ["ended", "forget clean 1"]);
    assert_eq!(play.status(), ClientStatus::Failed);
    assert_eq!(
        play.events("main"),
        ["Received", "Sibling Task Failed", "Killed"]
    );
}

#[test]
fn an_answer_about_another_attempt_changes_nothing() {
    let mut play = Play::running(service().with("web", Role::Main));
    play.exited("web", 1, 1);
    play.pass(seconds(20));
    play.started("web", 2);
    let before = play.runner.state().clone();
    assert!(play.exited("web", 1, 9).is_empty());
    assert!(play.started("web", 1).is_empty());
    assert!(play.start_failed("web", 3, true).is_empty());
    assert!(play.exited("unknown", 1, 0).is_empty());
    assert_eq!(*play.runner.state(), before);
}

#[test]
fn a_main_task_that_ends_well_leaves_the_others_running() {
    let mut play = Play::running(batch().with("one", Role::Main).with("two", Role::Main));
    assert_eq!(play.exited("one", 1, 0), ["forget one 1"]);
    assert_eq!(play.status(), ClientStatus::Running);
    assert_eq!(play.exited("two", 1, 0), ["ended", "forget two 1"]);
    assert_eq!(play.status(), ClientStatus::Complete);
}

fn task(name: &str, hook: Option<(LifecycleHook, bool)>) -> Task {
    Task {
        name: name.to_owned(),
        driver: "mock_driver".to_owned(),
        user: String::new(),
        config: serde_json::Map::new(),
        env: BTreeMap::new(),
        meta: BTreeMap::new(),
        constraints: Vec::new(),
        affinities: Vec::new(),
        resources: TaskResources {
            cpu_mhz: 100,
            memory_mib: 300,
            memory_max: model::MemoryMax::AsAsked,
            ..TaskResources::default()
        },
        restart: RestartPolicy {
            attempts: 2,
            interval: seconds(1800),
            delay: seconds(15),
            mode: RestartMode::Fail,
            render_templates: false,
        },
        kill_timeout: seconds(45),
        kill_signal: "SIGTERM".to_owned(),
        leader: false,
        shutdown_delay: Duration::ZERO,
        lifecycle: hook.map(|(hook, sidecar)| Lifecycle {
            hook,
            sidecar,
            wait_for: None,
        }),
        logs: LogConfig {
            max_files: 10,
            max_file_size_mib: 10,
            disabled: false,
        },
        ..Task::default()
    }
}

fn job(job_type: JobType, tasks: Vec<Task>) -> Job {
    let group = TaskGroup {
        name: "group".to_owned(),
        count: 1,
        tasks,
        restart: RestartPolicy {
            attempts: 2,
            interval: seconds(1800),
            delay: seconds(15),
            mode: RestartMode::Fail,
            render_templates: false,
        },
        update: Some(UpdateStrategy {
            max_parallel: 1,
            health_check: HealthCheck::Checks,
            min_healthy_time: seconds(10),
            healthy_deadline: seconds(300),
            progress_deadline: seconds(600),
            auto_revert: false,
            auto_promote: false,
            canary: 0,
            stagger: seconds(30),
        }),
        ephemeral_disk: EphemeralDisk {
            size_mib: 300,
            ..EphemeralDisk::default()
        },
        shutdown_delay: seconds(3),
        max_run_duration: Some(seconds(60)),
        ..TaskGroup::default()
    };
    Job {
        periodic: None,
        parameterized: None,
        parent_id: String::new(),
        dispatched: false,
        forced_version: None,
        written_by: None,
        payload: model::Payload::default(),
        dispatch_token: String::new(),
        ui: None,
        update: None,
        namespace: "default".to_owned(),
        id: "job".to_owned(),
        name: "job".to_owned(),
        region: "global".to_owned(),
        job_type,
        priority: 50,
        all_at_once: false,
        datacenters: vec!["*".to_owned()],
        node_pool: "default".to_owned(),
        constraints: Vec::new(),
        affinities: Vec::new(),
        spreads: Vec::new(),
        task_groups: vec![group],
        meta: BTreeMap::new(),
        stop: false,
        version: 0,
        submit_time: Timestamp::NEVER,
    }
}

fn allocation() -> Allocation {
    Allocation {
        id: AllocId::from_random(1),
        eval_id: EvalId::from_random(2),
        node_id: NodeId::from_random(3),
        namespace: "default".into(),
        job_id: "job".into(),
        job_version: 0,
        job_create_index: 1,
        task_group: "group".into(),
        name_index: 0,
        resources: AllocatedResources::default(),
        desired_status: model::DesiredStatus::Run,
        desired_description: String::new(),
        transition: DesiredTransition::default(),
        deployment_id: Some(DeploymentId::from_random(4)),
        canary: false,
        client_status_override: None,
        unknown_since: Timestamp::NEVER,
        previous_alloc: None,
        next_alloc: None,
        followup_eval_id: None,
        preempted_by: None,
        preempted_allocs: Vec::new(),
        reschedules: Vec::new(),
        create_time: WALL_START,
        modify_time: Timestamp::NEVER,
        metric: None,
    }
}

#[test]
fn roles_and_restarts_on_success_follow_hook_and_job_type() {
    use LifecycleHook::{Poststart, Poststop, Prestart};
    let tasks = vec![
        task("init", Some((Prestart, false))),
        task("proxy", Some((Prestart, true))),
        task("main", None),
        task("warm", Some((Poststart, false))),
        task("tail", Some((Poststart, true))),
        task("clean", Some((Poststop, false))),
    ];
    for (job_type, main_restarts) in [
        (JobType::Service, true),
        (JobType::System, true),
        (JobType::Batch, false),
        (JobType::Sysbatch, false),
    ] {
        let spec = AllocSpec::new(
            &job(job_type, tasks.clone()),
            &allocation(),
            Limits::default(),
        )
        .unwrap();
        let found = |name: &str| (spec.tasks[name].role, spec.tasks[name].restart_on_success);
        assert_eq!(found("init"), (Role::Prestart, false));
        assert_eq!(found("proxy"), (Role::PrestartSidecar, true));
        assert_eq!(found("main"), (Role::Main, main_restarts));
        assert_eq!(found("warm"), (Role::Poststart, false));
        assert_eq!(found("tail"), (Role::PoststartSidecar, true));
        assert_eq!(found("clean"), (Role::Poststop, false));
        assert_eq!(
            spec.health.is_some(),
            main_restarts,
            "only service and system are with_health"
        );
        assert_eq!(spec.run_until, Some(WALL_START.plus(seconds(60))));
        assert_eq!(spec.group.shutdown_delay, seconds(3));
    }
}

#[test]
fn manual_health_is_never_judged_and_a_missing_group_is_no_allocation() {
    let mut manual = job(JobType::Service, vec![task("main", None)]);
    let group = &mut manual.task_groups[0];
    group.update.as_mut().unwrap().health_check = HealthCheck::Manual;
    assert_eq!(
        AllocSpec::new(&manual, &allocation(), Limits::default())
            .unwrap()
            .health,
        None
    );
    manual.task_groups[0].name = "other".to_owned();
    assert_eq!(
        AllocSpec::new(&manual, &allocation(), Limits::default()),
        None
    );
}

#[test]
fn a_scaled_job_is_no_change_for_its_running_allocations() {
    let spec = |change: fn(&mut TaskGroup)| {
        let mut job = job(JobType::Service, vec![task("main", None)]);
        change(&mut job.task_groups[0]);
        AllocSpec::new(&job, &allocation(), Limits::default()).unwrap()
    };
    let before = spec(|_| {});
    assert_eq!(spec(|group| group.count += 7), before);
    assert_eq!(spec(|group| group.reschedule = None), before);
    assert_ne!(spec(|group| group.shutdown_delay *= 2), before);
}

#[test]
fn scenario_045_the_node_bounds_the_kill_timeout() {
    let job = job(JobType::Service, vec![task("main", None)]);
    let spec = AllocSpec::new(&job, &allocation(), Limits::default()).unwrap();
    assert_eq!(spec.tasks["main"].kill_timeout, seconds(30));
    let spec = AllocSpec {
        run_until: None,
        ..spec.with_delay(Duration::ZERO)
    };
    let mut play = Play::running(spec);
    assert_eq!(play.stop(), ["stop main 1 SIGTERM30s"]);
}
