//! Tests that break each fact on purpose: the checker must find every violation.

mod addresses;
mod canaries;

use model::{
    AllocClient, AllocId, AllocatedPort, AllocatedResources, Allocation, ClientStatus,
    ComparableResources, Deployment, DeploymentId, DeploymentStatus, DesiredStatus, EvalId,
    EvalStatus, Job, JobType, LeaderInfo, Node, Timestamp, TriggeredBy,
};
use state::{Change, Entity, Key};
use test_kit::builders;

use crate::indexes::{Indexes, check_indexes};
use crate::{Fact, History, check_at_rest};

fn alloc(id: u128, node: &Node, number: u32) -> Allocation {
    Allocation {
        id: AllocId::from_random(id),
        eval_id: EvalId::from_random(1),
        job_version: 0,
        name_index: number,
        resources: AllocatedResources {
            total: ComparableResources {
                cpu_mhz: 100,
                memory_mib: 64,
                disk_mib: 10,
            },
            ..AllocatedResources::default()
        },
        create_time: Timestamp(1),
        ..builders::allocation(id, &web(1), node.id)
    }
}

fn web(count: u32) -> Job {
    let mut job = builders::service("web", count);
    job.task_groups[0].name = "app".to_owned();
    job
}

fn put(key: Key, entity: Entity) -> Change {
    put_at(1, key, entity)
}

/// Puts an object that was created at `revision`.
fn put_at(revision: u64, key: Key, entity: Entity) -> Change {
    Change::Put {
        key,
        entity,
        create_index: revision,
        modify_index: revision,
    }
}

fn put_node(node: &Node) -> Change {
    put(Key::Node(node.id), Entity::Node(Box::new(node.clone())))
}

fn put_job(job: &Job) -> Change {
    put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())))
}

fn put_version(job: &Job) -> Change {
    let key = Key::JobVersion(job.key(), job.version);
    put(key, Entity::JobVersion(Box::new(job.clone())))
}

fn put_alloc(alloc: &Allocation) -> Change {
    put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc.clone())))
}

fn put_client(id: AllocId, status: ClientStatus) -> Change {
    let client = AllocClient {
        status,
        ..AllocClient::default()
    };
    put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)))
}

fn put_deployment(status: DeploymentStatus) -> Change {
    put_rollout(0, status)
}

fn put_rollout(job_version: u64, status: DeploymentStatus) -> Change {
    let deployment = Deployment {
        id: DeploymentId::from_random(1),
        job: web(1).key(),
        job_version,
        job_modify_index: 1,
        job_create_index: 1,
        status,
        status_description: String::new(),
        groups: std::collections::BTreeMap::new(),
        eval_priority: 50,
        create_time: Timestamp(1),
        modify_time: Timestamp(1),
    };
    put(
        Key::Deployment(deployment.id),
        Entity::Deployment(Box::new(deployment)),
    )
}

/// Plays one change per revision and returns the violated facts, in order.
fn broken(changes: impl IntoIterator<Item = Change>) -> Vec<Fact> {
    let mut history = History::default();
    for (revision, change) in (1..).zip(changes) {
        history.apply(revision, vec![change]);
    }
    history
        .violations()
        .iter()
        .map(|violation| violation.fact)
        .collect()
}

#[test]
fn a_sound_history_is_found_sound() {
    let node = builders::node(1);
    let first = alloc(1, &node, 0);
    let mut stopped = first.clone();
    stopped.desired_status = DesiredStatus::Stop;
    let changes = [
        put_node(&node),
        put_job(&web(1)),
        put_version(&web(1)),
        put_alloc(&first),
        put_client(first.id, ClientStatus::Running),
        put_alloc(&stopped),
        put_client(first.id, ClientStatus::Complete),
        put_alloc(&alloc(2, &node, 0)),
    ];
    assert_eq!(broken(changes), []);
}

#[test]
fn an_overcommitted_node_is_found_at_its_revision() {
    let mut node = builders::node(1);
    node.resources = ComparableResources {
        cpu_mhz: 250,
        memory_mib: 1_000,
        disk_mib: 1_000,
    };
    node.reserved = ComparableResources::default();
    let mut history = History::default();
    history.apply(1, vec![put_node(&node)]);
    for number in 0..3_u32 {
        history.apply(
            u64::from(number) + 2,
            vec![put_alloc(&alloc(number.into(), &node, number))],
        );
    }
    let found = history.violations();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].revision, found[0].fact),
        (4, Fact::NodeNotOvercommitted)
    );
    assert!(found[0].to_string().contains("cpu"), "{}", found[0]);
}

#[test]
fn a_port_held_twice_is_found() {
    let node = builders::node(1);
    let with_port = |id, number| {
        let mut alloc = alloc(id, &node, number);
        alloc.resources.ports = vec![AllocatedPort {
            label: "http".to_owned(),
            value: 8_080,
            to: 8_080,
            host_ip: "127.0.0.1".to_owned(),
            ignore_collision: false,
            task: String::new(),
        }];
        put_alloc(&alloc)
    };
    assert_eq!(
        broken([put_node(&node), with_port(1, 0), with_port(2, 1)]),
        [Fact::PortHeldOnce]
    );
}

#[test]
fn a_reserved_port_that_is_held_is_found() {
    let mut node = builders::node(1);
    let mut alloc = alloc(1, &node, 0);
    alloc.resources.ports = vec![AllocatedPort {
        label: "ssh".to_owned(),
        value: 22,
        to: 22,
        host_ip: "127.0.0.1".to_owned(),
        ignore_collision: false,
        task: String::new(),
    }];
    assert_eq!(broken([put_node(&node), put_alloc(&alloc)]), []);
    node.reserved_ports = vec![22];
    let changes = [put_node(&node), put_alloc(&alloc)];
    assert_eq!(broken(changes), [Fact::ReservedPortsAreFree]);
}

#[test]
fn a_version_that_goes_before_its_allocations_is_found() {
    let node = builders::node(1);
    let (job, first) = (web(1), alloc(1, &node, 0));
    let (with, running) = ([put_job(&job), put_version(&job)], put_alloc(&first));
    let gone = || Change::Delete {
        key: Key::JobVersion(job.key(), 0),
    };
    let purged = Change::Delete {
        key: Key::Job(job.key()),
    };
    let mut stopped = first.clone();
    stopped.desired_status = DesiredStatus::Stop;
    let play = |rest: Vec<Change>| broken(with.iter().cloned().chain(rest));
    assert_eq!(play(vec![running.clone(), gone()]), [Fact::VersionIsKept]);
    assert_eq!(play(vec![running.clone(), put_alloc(&stopped), gone()]), []);
    assert_eq!(
        play(vec![running, purged, gone()]),
        [],
        "its allocations are on their way out"
    );
}

#[test]
fn every_index_that_is_wrong_is_found() {
    let node = builders::node(1);
    let mut first = alloc(1, &node, 0);
    first.deployment_id = Some(DeploymentId::from_random(1));
    let eval = builders::evaluation(1, &web(1));
    let changes = [
        put_node(&node),
        put_job(&web(1)),
        put(Key::Eval(eval.id), Entity::Eval(Box::new(eval))),
        put_alloc(&first),
        put_deployment(DeploymentStatus::Running),
    ];
    let snapshot = state::State::from_list(9, changes).snapshot();
    assert_eq!(check_indexes(&snapshot), []);

    let right = Indexes::recorded_in(&snapshot);
    type Breakage = (&'static str, fn(&mut Indexes));
    let breakages: [Breakage; 9] = [
        ("allocations by node", |indexes| {
            indexes.allocs_by_node.clear()
        }),
        ("allocations by job", |indexes| {
            indexes.allocs_by_job.clear()
        }),
        ("allocations by eval", |indexes| {
            indexes.allocs_by_eval.clear()
        }),
        ("allocations by deployment", |indexes| {
            indexes.allocs_by_deployment.clear()
        }),
        ("evaluations by job", |indexes| indexes.evals_by_job.clear()),
        ("open evaluations", |indexes| indexes.open_evals.clear()),
        ("deployments by job", |indexes| {
            indexes.deployments_by_job.clear()
        }),
        ("active deployments", |indexes| {
            indexes.active_deployments.clear()
        }),
        ("usage", |indexes| indexes.usage.clear()),
    ];
    for (index, break_it) in breakages {
        let mut wrong = right.clone();
        break_it(&mut wrong);
        assert_ne!(wrong, right, "{index} had nothing in it");
        for (reported, counted) in [(&wrong, &right), (&right, &wrong)] {
            let found = reported.differences(counted);
            assert_eq!(found.len(), 1, "{index}: {found:?}");
            assert!(found[0].starts_with(index), "{found:?}");
        }
    }
}

#[test]
fn a_name_used_twice_is_found_but_for_canaries_and_unknown_ones() {
    let node = builders::node(1);
    let twin = alloc(2, &node, 0);
    assert_eq!(
        broken([put_alloc(&alloc(1, &node, 0)), put_alloc(&twin)]),
        [Fact::NameUsedOnce]
    );

    let mut canary = twin.clone();
    canary.canary = true;
    assert_eq!(
        broken([put_alloc(&alloc(1, &node, 0)), put_alloc(&canary)]),
        []
    );

    let mut unknown = alloc(1, &node, 0);
    unknown.client_status_override = Some(ClientStatus::Unknown);
    assert_eq!(broken([put_alloc(&unknown), put_alloc(&twin)]), []);
}

#[test]
fn coming_back_from_an_end_is_found() {
    let node = builders::node(1);
    let mut eval = builders::evaluation(1, &web(1));
    let mut put_eval = |status| {
        eval.status = status;
        put(Key::Eval(eval.id), Entity::Eval(Box::new(eval.clone())))
    };
    let evals = [
        put_eval(EvalStatus::Complete),
        put_eval(EvalStatus::Pending),
    ];
    assert_eq!(broken(evals), [Fact::EndIsFinal]);

    let mut stopped = alloc(1, &node, 0);
    stopped.desired_status = DesiredStatus::Stop;
    let allocs = [put_alloc(&stopped), put_alloc(&alloc(1, &node, 0))];
    assert_eq!(broken(allocs), [Fact::EndIsFinal]);

    let id = AllocId::from_random(1);
    let clients = [
        put_alloc(&alloc(1, &node, 0)),
        put_client(id, ClientStatus::Failed),
        put_client(id, ClientStatus::Running),
    ];
    assert_eq!(broken(clients), [Fact::EndIsFinal]);

    let deployments = [
        put_deployment(DeploymentStatus::Failed),
        put_deployment(DeploymentStatus::Running),
    ];
    assert_eq!(broken(deployments), [Fact::EndIsFinal]);
}

#[test]
fn a_report_that_replaces_a_later_one_is_found() {
    let (node, id) = (builders::node(1), AllocId::from_random(1));
    let reported = |report| {
        let client = AllocClient {
            status: ClientStatus::Running,
            report,
            ..AllocClient::default()
        };
        put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)))
    };
    let placed = || put_alloc(&alloc(1, &node, 0));
    let in_order = [placed(), reported(0), reported(1), reported(1), reported(3)];
    assert!(broken(in_order).is_empty());
    assert_eq!(
        broken([placed(), reported(3), reported(2)]),
        [Fact::ReportsInOrder]
    );
}

#[test]
fn a_promotion_that_is_undone_is_found() {
    let put_promoted = |promoted| {
        let Change::Put { key, entity, .. } = put_deployment(DeploymentStatus::Running) else {
            panic!("it is put");
        };
        let Entity::Deployment(mut deployment) = entity else {
            panic!("it is a deployment");
        };
        let group = model::DeploymentGroup {
            promoted,
            ..model::DeploymentGroup::default()
        };
        deployment.groups.insert("web".to_owned(), group);
        put(key, Entity::Deployment(deployment))
    };
    let promotions = [put_promoted(false), put_promoted(true), put_promoted(false)];
    assert_eq!(broken(promotions), [Fact::PromotionIsKept]);
}

#[test]
fn an_allocation_that_moves_is_found() {
    let moved = alloc(1, &builders::node(2), 0);
    let changes = [
        put_alloc(&alloc(1, &builders::node(1), 0)),
        put_alloc(&moved),
    ];
    // The old node's totals are wrong, too, because the replica relies on the fact.
    assert_eq!(
        broken(changes).first(),
        Some(&Fact::AllocationKeepsItsPlace)
    );
}

#[test]
fn an_eviction_without_an_evaluation_is_found() {
    let node = builders::node(1);
    let first = alloc(1, &node, 0);
    let mut evicted = first.clone();
    evicted.desired_status = DesiredStatus::Evict;
    let mut eval = builders::evaluation(1, &web(1));
    eval.triggered_by = TriggeredBy::Preemption;
    let followed_up = |index| Change::Put {
        key: Key::Eval(eval.id),
        entity: Entity::Eval(Box::new(eval.clone())),
        create_index: index,
        modify_index: index,
    };
    let forgotten = vec![Fact::EvictionHasEvaluation];
    // The allocations are of the job that was created at revision 1.
    for (with, job, created, expected) in [
        (vec![followed_up(4)], Some(web(1)), 1, vec![]),
        (vec![], Some(web(1)), 1, forgotten.clone()),
        (vec![followed_up(3)], Some(web(1)), 1, forgotten.clone()),
        (vec![], None, 0, vec![]),
        (vec![], Some(web(1)), 4, vec![]),
    ] {
        let mut history = History::default();
        history.apply(
            2,
            job.iter()
                .flat_map(|job| [put_job(job), put_version(job)])
                .collect(),
        );
        history.apply(3, vec![put_node(&node), put_alloc(&first)]);
        let mut changes = with;
        changes.push(put_alloc(&evicted));
        if let Some(job) = job.filter(|_| created == 4) {
            // Purged and registered again.
            let key = Key::Job(job.key());
            changes.push(put_at(4, key, Entity::Job(Box::new(job))));
        }
        history.apply(4, changes);
        let found = history.violations().iter().map(|found| found.fact);
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_victim_of_too_high_priority_is_found() {
    let (node, other_node) = (builders::node(1), builders::node(2));
    let named = |name: &str, priority| {
        let mut job = builders::service(name, 1);
        job.task_groups[0].name = "app".to_owned();
        job.priority = priority;
        job
    };
    let mut gone = alloc(1, &node, 0);
    gone.desired_status = DesiredStatus::Stop;
    let live = alloc(1, &node, 0);
    let mut elsewhere = alloc(1, &other_node, 0);
    elsewhere.desired_status = DesiredStatus::Stop;
    let wrong = vec![Fact::VictimsHaveLowerPriority];
    for (winner_job, priority, victim, expected) in [
        ("db", 60, &gone, vec![]),
        ("db", 59, &gone, wrong.clone()),
        ("web", 60, &gone, wrong.clone()),
        ("db", 60, &live, wrong.clone()),
        ("db", 60, &elsewhere, wrong),
    ] {
        let mut winner = alloc(2, &node, 1);
        winner.job_id = winner_job.into();
        winner.job_version = 1;
        winner.preempted_allocs = vec![victim.id];
        let mut own = named(winner_job, priority);
        own.version = 1;
        let changes = [
            put_version(&named("web", 50)),
            put_version(&own),
            put_alloc(victim),
            put_alloc(&winner),
        ];
        assert_eq!(broken(changes), expected, "{winner_job} {priority}");
    }
}

#[test]
fn a_version_that_is_skipped_or_kept_is_found() {
    for (next, expected) in [(1, vec![]), (2, vec![Fact::VersionsCountUp])] {
        let mut job = web(1);
        job.version = next;
        assert_eq!(
            broken([put_job(&web(1)), put_job(&job)]),
            expected,
            "version {next}"
        );
    }
}

#[test]
fn two_leaders_in_one_term_are_found() {
    let leader = |replica: &str| {
        let info = LeaderInfo {
            address: "http://127.0.0.1:1".into(),
            replica: replica.into(),
        };
        put(
            Key::Election("plan-applier".to_owned()),
            Entity::Election(info),
        )
    };
    assert_eq!(broken([leader("a"), leader("b")]), [Fact::OneLeaderATerm]);
    assert_eq!(broken([leader("a"), leader("a")]), []);
}

fn at_rest(changes: Vec<Change>) -> Vec<Fact> {
    let state = state::State::from_list(9, changes);
    check_at_rest(&state.snapshot())
        .into_iter()
        .map(|violation| violation.fact)
        .collect()
}

#[test]
fn at_rest_a_job_runs_its_counts() {
    let node = builders::node(1);
    let two = || {
        vec![
            put_alloc(&alloc(1, &node, 0)),
            put_alloc(&alloc(2, &node, 1)),
        ]
    };
    let with = |job: &Job| {
        let mut changes = two();
        changes.push(put_job(job));
        at_rest(changes)
    };
    assert_eq!(with(&web(2)), []);
    assert_eq!(with(&web(3)), [Fact::CountIsMet]);
    assert_eq!(with(&web(1)), [Fact::CountIsMet]);
    let mut stopped = web(2);
    stopped.stop = true;
    assert_eq!(with(&stopped), [Fact::CountIsMet]);
    assert_eq!(at_rest(two()), [Fact::CountIsMet], "the job is gone");
    let mut former = alloc(1, &node, 0);
    former.job_create_index = 0;
    let with_former = |count| at_rest(vec![put_alloc(&former), put_job(&web(count))]);
    assert_eq!(with_former(1), [], "as an older version's");
    assert_eq!(with_former(0), [Fact::CountIsMet]);
    // The number of others depends on their nodes or on their work.
    let mut everywhere = web(1);
    for job_type in [JobType::Batch, JobType::System, JobType::Sysbatch] {
        everywhere.job_type = job_type;
        everywhere.stop = false;
        assert_eq!(with(&everywhere), [], "{job_type:?}");
        everywhere.stop = true;
        assert_eq!(with(&everywhere), [Fact::CountIsMet], "{job_type:?}");
    }
}

#[test]
fn at_rest_an_old_one_may_wait_for_its_update() {
    let node = builders::node(1);
    let with = |version: u64| {
        let mut job = web(2);
        job.version = version;
        let mut eval = builders::evaluation(1, &job);
        eval.status = EvalStatus::Blocked;
        eval.queued_allocs = [("app".to_owned(), 1)].into();
        let entity = Entity::Eval(Box::new(eval.clone()));
        at_rest(vec![
            put_alloc(&alloc(1, &node, 0)),
            put_alloc(&alloc(2, &node, 1)),
            put_job(&job),
            put(Key::Eval(eval.id), entity),
        ])
    };
    assert_eq!(with(1), []);
    assert_eq!(
        with(0),
        [Fact::CountIsMet],
        "both are of the version that it asks for"
    );
}

#[test]
fn at_rest_a_job_whose_rollout_has_failed_may_run_less() {
    let node = builders::node(1);
    let with = |job: &Job, rolled_out: u64, status| {
        at_rest(vec![
            put_alloc(&alloc(1, &node, 0)),
            put_job(job),
            put_rollout(rolled_out, status),
        ])
    };
    assert_eq!(with(&web(2), 0, DeploymentStatus::Failed), []);
    assert_eq!(
        with(&web(2), 0, DeploymentStatus::Successful),
        [Fact::CountIsMet]
    );
    assert_eq!(
        with(&web(0), 0, DeploymentStatus::Failed),
        [Fact::CountIsMet],
        "more than it asks for is never right"
    );
    let mut newer = web(2);
    newer.version = 1;
    assert_eq!(
        with(&newer, 0, DeploymentStatus::Failed),
        [Fact::CountIsMet],
        "another version's rollout says nothing"
    );
}

#[test]
fn at_rest_no_evaluation_is_pending() {
    let job = web(0);
    let mut eval = builders::evaluation(1, &job);
    let mut with = |status, wait_until| {
        eval.status = status;
        eval.wait_until = wait_until;
        let entity = Entity::Eval(Box::new(eval.clone()));
        at_rest(vec![put_job(&job), put(Key::Eval(eval.id), entity)])
    };
    assert_eq!(
        with(EvalStatus::Pending, Timestamp::NEVER),
        [Fact::EvaluationsEnd]
    );
    assert_eq!(with(EvalStatus::Pending, Timestamp(5)), []);
    assert_eq!(with(EvalStatus::Blocked, Timestamp::NEVER), []);
    assert_eq!(with(EvalStatus::Complete, Timestamp::NEVER), []);
}

#[test]
fn cores_and_devices_held_twice_are_found() {
    let node = builders::node(1);
    let with = |id, number, edit: fn(&mut AllocatedResources)| {
        let mut alloc = alloc(id, &node, number);
        edit(&mut alloc.resources);
        put_alloc(&alloc)
    };
    let core: fn(&mut AllocatedResources) = |resources| {
        resources.cores.push(model::AllocatedCores {
            task: "t".to_owned(),
            ids: vec![3],
        });
    };
    let gpu: fn(&mut AllocatedResources) = |resources| {
        resources.devices.push(model::AllocatedDevice {
            task: "t".to_owned(),
            vendor: "nvidia".to_owned(),
            device_type: "gpu".to_owned(),
            name: "k80".to_owned(),
            instance_ids: vec!["a".to_owned()],
        });
    };
    assert_eq!(
        broken([put_node(&node), with(1, 0, core), with(2, 1, gpu)]),
        []
    );
    assert_eq!(
        broken([put_node(&node), with(1, 0, core), with(2, 1, core)]),
        [Fact::CoreHeldOnce]
    );
    assert_eq!(
        broken([put_node(&node), with(1, 0, gpu), with(2, 1, gpu)]),
        [Fact::DeviceHeldOnce]
    );
}

#[test]
fn a_node_with_more_allocations_than_it_takes_is_found() {
    let mut node = builders::node(1);
    node.max_allocs = 1;
    let [first, second] = [alloc(1, &node, 0), alloc(2, &node, 1)];
    assert_eq!(broken([put_node(&node), put_alloc(&first)]), []);
    assert_eq!(
        broken([put_node(&node), put_alloc(&first), put_alloc(&second)]),
        [Fact::NodeNotOvercommitted]
    );
}

#[test]
fn an_allocation_that_comes_to_a_node_which_takes_nothing_is_found() {
    let with = |edit: fn(&mut Node)| {
        let mut node = builders::node(1);
        edit(&mut node);
        broken([put_node(&node), put_alloc(&alloc(1, &node, 0))])
    };
    assert_eq!(with(|_| ()), []);
    let refused = [Fact::PlacedWhereAllowed];
    assert_eq!(with(|node| node.status = model::NodeStatus::Down), refused);
    let ineligible = model::NodeEligibility::Ineligible;
    let mut node = builders::node(1);
    node.eligibility = ineligible;
    let first = alloc(1, &node, 0);
    assert_eq!(broken([put_node(&node), put_alloc(&first)]), refused);
    // An existing allocation may be changed.
    let was_eligible = [
        put_node(&builders::node(1)),
        put_alloc(&first),
        put_node(&node),
        put_alloc(&first),
    ];
    assert_eq!(broken(was_eligible), []);
}

#[test]
fn an_allocation_of_a_job_that_is_stopped_is_found() {
    let node = builders::node(1);
    let of = |stop| {
        let mut job = web(1);
        job.stop = stop;
        broken([
            put_version(&job),
            put_job(&job),
            put_alloc(&alloc(1, &node, 0)),
        ])
    };
    assert_eq!(of(false), []);
    assert_eq!(of(true), [Fact::PlacedWhereAllowed]);
}

#[test]
fn an_allocation_with_the_create_index_of_another_object_than_its_job_is_found() {
    let node = builders::node(1);
    let naming = |job_create_index| {
        let mut placed = alloc(1, &node, 0);
        placed.job_create_index = job_create_index;
        broken([put_job(&web(1)), put_version(&web(1)), put_alloc(&placed)])
    };
    assert_eq!(naming(1), []);
    assert_eq!(naming(2), [Fact::PlacedForItsJob]);
    // A job that is purged meanwhile has none.
    assert_eq!(broken([put_alloc(&alloc(1, &node, 0))]), []);
}

#[test]
fn a_drain_without_a_record_of_its_end_is_found() {
    let idle = builders::node(1);
    let mut draining = idle.clone();
    let strategy = model::DrainStrategy::new(None, false, Timestamp(5));
    draining.begin_drain(strategy, std::collections::BTreeMap::new(), Timestamp(5));
    let mut drained = draining.clone();
    drained.end_drain(model::DrainStatus::Complete, Timestamp(9));
    assert_eq!(
        broken([put_node(&idle), put_node(&draining), put_node(&drained)]),
        []
    );
    assert_eq!(
        broken([put_node(&idle), put_node(&draining), put_node(&idle)]),
        [Fact::DrainsEnd]
    );
}

#[test]
fn an_update_that_replaces_too_many_at_once_is_found() {
    let node = builders::node(1);
    let mut job = web(2);
    job.task_groups[0].update = Some(builders::rolling_update(1));
    let mut newer = job.clone();
    newer.version = 1;
    let olds = [alloc(1, &node, 0), alloc(2, &node, 1)];
    let other = builders::node(2);
    let replaced = |position: usize| {
        let mut old = olds[position].clone();
        old.desired_status = DesiredStatus::Stop;
        let mut new = olds[position].clone();
        new.id = AllocId::from_random(11 + position as u128);
        new.node_id = other.id;
        new.job_version = 1;
        new.deployment_id = Some(DeploymentId::from_random(1));
        new.previous_alloc = Some(old.id);
        [put_alloc(&old), put_alloc(&new)]
    };
    let found = |steps: Vec<Vec<Change>>| {
        let mut history = History::default();
        let mut start = vec![put_node(&node), put_node(&other), put_job(&newer)];
        start.extend([put_version(&job), put_version(&newer)]);
        for old in &olds {
            start.push(put_alloc(old));
            start.push(put_client(old.id, ClientStatus::Running));
        }
        for (revision, changes) in (1..).zip([vec![start], steps].concat()) {
            history.apply(revision, changes);
        }
        let facts = history.violations().iter().map(|found| found.fact);
        facts.collect::<Vec<_>>()
    };
    assert_eq!(found(vec![replaced(0).to_vec()]), []);
    let both = [replaced(0), replaced(1)].concat();
    assert_eq!(found(vec![both]), [Fact::UpdatesKeepTheirPace]);
    // The second has to wait until the first is healthy.
    let one_by_one = vec![replaced(0).to_vec(), replaced(1).to_vec()];
    assert_eq!(found(one_by_one), [Fact::UpdatesKeepTheirPace]);
    // Given up with a node that was down when the plan was made, and is ready again: no update.
    let lost = |position: usize| {
        let [old, new] = replaced(position);
        let Change::Put {
            key,
            entity: Entity::Alloc(mut value),
            ..
        } = old
        else {
            unreachable!("it is an allocation")
        };
        value.client_status_override = Some(ClientStatus::Lost);
        [put(key, Entity::Alloc(value)), new]
    };
    assert_eq!(found(vec![[lost(0), lost(1)].concat()]), []);
    assert_eq!(found(vec![[lost(0), replaced(1)].concat()]), []);
    // A lost allocation is replaced at once.
    let mut down = node.clone();
    down.status = model::NodeStatus::Down;
    let both = [replaced(0), replaced(1)].concat();
    assert_eq!(found(vec![vec![put_node(&down)], both]), []);
}
