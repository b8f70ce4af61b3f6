//! Registration: fields of the node, fields of the servers, and refusals.

use std::cell::Cell;

use model::refusal::{Kind, Refusal as _};
use model::{
    AllocId, ClientStatus, DesiredStatus, EvalId, Indexed, IntroductionTokenId, Job, JobType, Node,
    NodeEligibility, NodeIntroduction, NodeRevocation, NodeStatus, Timestamp,
};
use state::{Entity, Key, Write};
use test_kit::{Stored, builders};

use crate::nodes::node_evals::{EvalInputs, NodeWrites, node_evals};
use crate::nodes::registration::{
    Record, Registration, RegistrationRefusal, check, decide, record,
};
use crate::nodes::revocation::Revoked;
use crate::nodes::session::{SessionRefusal, same_secret};

const NOW: Timestamp = Timestamp(7_000);

fn sent() -> Node {
    Node {
        address: "http://127.0.0.1:7201".into(),
        status: NodeStatus::Ready,
        computed_class: "the node cannot know".into(),
        ..builders::node(1)
    }
}

fn inputs(next_id: &dyn Fn() -> EvalId) -> EvalInputs<'_> {
    EvalInputs {
        now: NOW,
        trace_parent: "00-parent-01",
        next_id,
    }
}

/// Returns ids that count from 1.
fn numbered() -> impl Fn() -> EvalId {
    let count = Cell::new(0);
    move || {
        count.set(count.get() + 1);
        EvalId::from_random(count.get())
    }
}

/// Returns the record as a first registration stores it.
fn stored() -> Indexed<Node> {
    let Record::Write { write, .. } = record(None, sent(), NOW).unwrap() else {
        panic!()
    };
    let Write::Create {
        entity: Entity::Node(node),
        ..
    } = *write
    else {
        panic!()
    };
    Indexed {
        create_index: 5,
        modify_index: 9,
        value: *node,
    }
}

#[test]
fn a_new_node_is_initializing_and_has_a_class() {
    let node = stored().value;
    assert_eq!(node.status, NodeStatus::Initializing);
    assert_eq!(node.eligibility, NodeEligibility::Eligible);
    assert_eq!(node.status_updated_at, NOW);
    assert!(
        node.computed_class.starts_with("v1:"),
        "{}",
        node.computed_class
    );
    assert_eq!(node.secret, sent().secret);
}

#[test]
fn a_record_that_says_nothing_new_is_not_written() {
    assert_eq!(
        record(Some(&stored()), sent(), Timestamp(9_000)).unwrap(),
        Record::Unchanged { modify_index: 9 }
    );
}

#[test]
fn status_and_eligibility_are_the_servers() {
    let mut known = stored();
    known.value.status = NodeStatus::Down;
    known.value.status_description = "missed its heartbeat".into();
    known.value.eligibility = NodeEligibility::Ineligible;
    known.value.status_updated_at = Timestamp(8_000);
    let mut changed = sent();
    changed.resources.memory_mib *= 2;
    let result = record(Some(&known), changed, Timestamp(9_000)).unwrap();
    let Record::Write {
        write,
        feasibility_changed,
    } = result
    else {
        panic!("{result:?}")
    };
    assert!(
        !feasibility_changed,
        "more memory is capacity, not another answer"
    );
    let Write::Update {
        modify_index,
        entity: Entity::Node(node),
        ..
    } = *write
    else {
        panic!()
    };
    assert_eq!(modify_index, 9);
    let memory_mib = sent().resources.memory_mib * 2;
    let resources = model::ComparableResources {
        memory_mib,
        ..known.value.resources
    };
    assert_eq!(
        *node,
        Node {
            resources,
            ..known.value
        }
    );
}

#[test]
fn scenario_066_more_memory_is_written_and_makes_no_evaluations() {
    let mut changed = sent();
    changed.resources.memory_mib += 1;
    let result = record(Some(&stored()), changed, NOW).unwrap();
    let is_capacity = matches!(
        result,
        Record::Write {
            feasibility_changed: false,
            ..
        }
    );
    assert!(is_capacity, "{result:?}");
}

#[test]
fn a_registration_keeps_the_drain_and_the_events_of_the_node() {
    let mut known = stored();
    let strategy = model::DrainStrategy::new(None, true, NOW);
    known.value.begin_drain(strategy, Default::default(), NOW);
    assert_eq!(
        record(Some(&known), sent(), NOW).unwrap(),
        Record::Unchanged { modify_index: 9 }
    );
    // Nor can a node say that it drains.
    let mut pretending = sent();
    pretending.begin_drain(strategy, Default::default(), NOW);
    for known in [None, Some(&stored())] {
        let result = record(known, pretending.clone(), NOW).unwrap();
        if let Record::Write { write, .. } = result {
            let (Write::Create { entity, .. } | Write::Update { entity, .. }) = *write else {
                panic!()
            };
            let Entity::Node(node) = entity else { panic!() };
            assert_eq!((node.drain, node.last_drain), (None, None));
            assert!(node.events.is_empty());
        }
    }
}

#[test]
fn changed_attributes_evaluate_the_nodes_jobs() {
    let edits: [fn(&mut Node); 7] = [
        |node| node.datacenter = "dc2".into(),
        |node| node.name = "n9".into(),
        |node| node.node_class = "large".into(),
        |node| drop(node.attributes.insert("cpu.arch".into(), "arm64".into())),
        |node| drop(node.meta.insert("rack".into(), "r1".into())),
        |node| node.drivers.clear(),
        // Allocations with ports on the old address are to be replaced.
        |node| node.host_ip = "10.0.0.9".into(),
    ];
    for (position, edit) in edits.iter().enumerate() {
        let mut changed = sent();
        edit(&mut changed);
        let result = record(Some(&stored()), changed, NOW).unwrap();
        assert!(
            matches!(
                result,
                Record::Write {
                    feasibility_changed: true,
                    ..
                }
            ),
            "edit {position}: {result:?}"
        );
    }
}

/// A plan may place an allocation on the earlier address after the snapshot of the registration.
#[test]
fn after_a_change_of_addresses_the_controller_looks_for_jobs_without_an_evaluation() {
    type Edit = fn(&mut Node);
    let edits: [(Edit, bool); 3] = [
        (
            |node| drop(node.meta.insert("rack".into(), "r1".into())),
            false,
        ),
        (|node| node.host_ip = "10.0.0.9".into(), true),
        (
            |node| {
                drop(
                    node.host_networks
                        .insert("public".into(), Default::default()),
                )
            },
            true,
        ),
    ];
    for (position, (edit, want)) in edits.into_iter().enumerate() {
        let mut cluster = Stored::default();
        let job = builders::service("web", 1);
        cluster.put_job(&job);
        cluster.put_node(&stored().value);
        cluster.put_alloc(&builders::allocation(1, &job, sent().id));
        let mut changed = sent();
        edit(&mut changed);
        let decided = decide(&cluster.snapshot(), &changed, &inputs(&numbered())).unwrap();
        assert_eq!(decided.changes.eval_ids.len(), 1, "edit {position}");
        let nodes = decided.changes.writes.iter().filter_map(Write::entity);
        let lacks: Vec<_> = nodes
            .filter_map(|entity| match entity {
                Entity::Node(node) => Some(node.lacks_evals),
                _ => None,
            })
            .collect();
        assert_eq!(lacks, [want], "edit {position}");
    }
}

#[test]
fn a_known_node_keeps_its_secret() {
    let thief = Node {
        secret: "another".into(),
        ..sent()
    };
    let refused = record(Some(&stored()), thief, NOW).unwrap_err();
    assert_eq!(refused, SessionRefusal::WrongSecret(sent().id));
    for (a, b, same) in [
        ("abc", "abc", true),
        ("abc", "abd", false),
        ("abc", "ab", false),
    ] {
        assert_eq!(same_secret(a, b), same);
    }
}

#[test]
fn everything_wrong_with_a_record_is_said_at_once() {
    assert_eq!(check(&sent()), Ok(()));
    let bad = Node {
        secret: String::new(),
        name: String::new(),
        node_pool: "all".into(),
        address: "10.0.0.9:7201".into(),
        resources: model::ComparableResources::default(),
        reserved: sent().resources,
        min_dynamic_port: 9,
        max_dynamic_port: 8,
        ..sent()
    };
    let errors = check(&bad).unwrap_err();
    let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "secret",
            "node.name",
            "node.node_pool",
            "node.address",
            "node.resources.cpu_mhz",
            "node.resources.memory_mib",
            "node.reserved",
            "node.min_dynamic_port",
        ]
    );
    assert!(
        errors.0.iter().all(|error| error.message.contains("want")),
        "{errors}"
    );
}

#[test]
fn a_system_job_is_looked_at_for_every_node_in_its_scope() {
    let (mut stored, node) = (Stored::default(), builders::node(1));
    let mut log = builders::service("log", 1);
    log.job_type = JobType::System;
    let mut elsewhere = log.clone();
    elsewhere.id = "elsewhere".into();
    elsewhere.node_pool = "gpu".into();
    let mut stopped = log.clone();
    stopped.id = "stopped".into();
    stopped.stop = true;
    for job in [&log, &elsewhere, &stopped] {
        stored.put_job(job);
    }
    let writes = node_evals(
        &stored.snapshot(),
        &node,
        &inputs(&|| EvalId::from_random(1)),
    );
    let [
        Write::Create {
            entity: Entity::Eval(eval),
            ..
        },
    ] = writes.as_slice()
    else {
        panic!("one evaluation, not {writes:?}")
    };
    assert_eq!((&*eval.job.job_id, eval.job_type), ("log", JobType::System));
}

/// §7.5: which jobs have something left to decide on a node.
#[test]
fn a_nodes_jobs_get_one_evaluation_each_while_something_is_left_to_decide() {
    use ClientStatus::{Complete, Running};
    use DesiredStatus::{Run, Stop};
    let of_type = |job_type, id: &str| Job {
        job_type,
        // A system job that is wanted concerns every node.
        stop: job_type == JobType::System,
        ..builders::batch(id, 1)
    };
    let table = [
        (builders::service("a", 1), Run, Running, true),
        (builders::service("b", 1), Run, Complete, true),
        (builders::service("c", 1), Stop, Running, true),
        (builders::service("d", 1), Stop, Complete, false),
        (builders::batch("e", 1), Run, Running, true),
        (builders::batch("f", 1), Stop, Running, true),
        (builders::batch("g", 1), Run, Complete, false),
        (of_type(JobType::Sysbatch, "h"), Run, Running, true),
        (of_type(JobType::Sysbatch, "i"), Run, Complete, false),
        (of_type(JobType::System, "j"), Stop, Running, true),
        (of_type(JobType::System, "k"), Stop, Complete, false),
    ];
    let (mut stored, node) = (Stored::default(), builders::node(1));
    for (number, (job, desired, client, _)) in table.iter().enumerate() {
        stored.put_job(job);
        // Two of each: still one evaluation.
        for copy in [0, 100] {
            let mut alloc = builders::allocation(number as u128 + copy, job, node.id);
            alloc.desired_status = *desired;
            stored.put_alloc(&alloc);
            stored.put_status(alloc.id, *client);
        }
    }
    let writes = node_evals(&stored.snapshot(), &node, &inputs(&numbered()));
    let jobs: Vec<String> = writes
        .iter()
        .map(|write| {
            let Write::Create {
                entity: Entity::Eval(eval),
                ..
            } = write
            else {
                panic!()
            };
            assert_eq!(
                (eval.node_id, eval.trace_parent.as_str()),
                (Some(node.id), "00-parent-01")
            );
            eval.job.job_id.to_string()
        })
        .collect();
    let want: Vec<&str> = table
        .iter()
        .filter(|row| row.3)
        .map(|(job, ..)| job.id.as_str())
        .collect();
    assert_eq!(jobs, want);
}

#[test]
fn other_devices_may_suit_other_groups() {
    let mut changed = sent();
    changed.devices = vec![model::node::NodeDevice {
        vendor: "nvidia".into(),
        device_type: "gpu".into(),
        name: "k80".into(),
        instances: ["a", "b"]
            .map(|id| model::node::DeviceInstance {
                id: id.into(),
                healthy: true,
            })
            .into(),
        ..model::node::NodeDevice::default()
    }];
    check(&changed).unwrap();
    let result = record(Some(&stored()), changed.clone(), Timestamp(9_000)).unwrap();
    let is_looked_at = matches!(
        result,
        Record::Write {
            feasibility_changed: true,
            ..
        }
    );
    assert!(is_looked_at, "{result:?}");
    changed.devices[0].instances[1].id = "a".into();
    let errors = check(&changed).unwrap_err();
    assert_eq!(errors.0[0].field, "node.devices");
    assert!(errors.0[0].message.contains("\"a\" twice"), "{errors:?}");
}

/// Decides on the registration of `node` in what is stored.
fn registered(stored: &Stored, node: &Node) -> Registration {
    decide(&stored.snapshot(), node, &inputs(&numbered())).unwrap()
}

fn keys(writes: &[Write]) -> Vec<&Key> {
    writes.iter().map(Write::key).collect()
}

#[test]
fn a_revoked_node_and_one_outside_of_its_tokens_pool_do_not_register() {
    let mut stored = Stored::default();
    let node = sent();
    let introduced = NodeIntroduction {
        token_id: IntroductionTokenId::from_random(1),
        public_key_sha256: "hash".to_owned(),
        node_name: String::new(),
        node_pool: "gpu".to_owned(),
        introduced_at: NOW,
        certified_until: NOW,
    };
    let key = Key::NodeIntroduction(node.id);
    stored.put(key, Entity::NodeIntroduction(Box::new(introduced)));
    let decided = |stored: &Stored| decide(&stored.snapshot(), &node, &inputs(&numbered()));
    let refused = decided(&stored).unwrap_err();
    let fields = refused.field_errors().expect("errors of fields");
    assert!(fields.0[0].field.contains("node_pool"), "{refused}");

    let revoked = NodeRevocation {
        revoked_at: NOW,
        node_name: String::new(),
        reason: String::new(),
    };
    let key = Key::NodeRevocation(node.id);
    stored.put(key, Entity::NodeRevocation(Box::new(revoked)));
    let refused = decided(&stored).unwrap_err();
    assert_eq!(refused, RegistrationRefusal::Revoked(Revoked(node.id)));
    assert_eq!(refused.kind(), Kind::Denied);
}

#[test]
fn a_registration_joins_its_pool_and_evaluates_what_its_change_concerns() {
    let mut stored = Stored::default();
    let job = builders::service("web", 1);
    stored.put_job(&job);
    let mut node = sent();
    node.node_pool = "gpu".into();
    let (record, pool) = (Key::Node(node.id), Key::NodePool("gpu".into()));

    let first = registered(&stored, &node);
    assert_eq!(first.status, NodeStatus::Initializing);
    assert_eq!(first.kept_index, None);
    let unrevoked = Key::NodeRevocation(node.id);
    let compared = [&record, &pool, &unrevoked];
    assert_eq!(keys(&first.changes.writes), compared);

    // Registered, and its pool is deleted meanwhile.
    let Some(Entity::Node(known)) = first.changes.writes[0].entity() else {
        panic!("{first:?}")
    };
    let mut known = known.clone();
    known.status = NodeStatus::Ready;
    let modify_index = stored.put_node(&known);
    stored.put_alloc(&builders::allocation(1, &job, node.id));
    let again = registered(&stored, &node);
    assert_eq!(again.status, NodeStatus::Ready);
    assert_eq!(again.kept_index, Some(modify_index));
    assert_eq!(keys(&again.changes.writes), [&pool, &unrevoked]);

    // In a built-in pool nothing is left to write.
    node.node_pool = "default".into();
    known.node_pool = "default".into();
    known.computed_class = placement::class::computed_class(&node);
    let modify_index = stored.put_node(&known);
    let same = registered(&stored, &node);
    assert_eq!(same.kept_index, Some(modify_index));
    assert_eq!(same.changes, NodeWrites::default());

    node.meta.insert("rack".into(), "r1".into());
    let changed = registered(&stored, &node);
    let eval_id = EvalId::from_random(1);
    assert_eq!(
        (changed.status, changed.kept_index),
        (NodeStatus::Ready, None)
    );
    assert_eq!(
        keys(&changed.changes.writes),
        [&record, &Key::Eval(eval_id), &unrevoked]
    );
    assert_eq!(changed.changes.eval_ids, [eval_id]);
}

/// A transaction has a thousand operations at most.
#[test]
fn a_record_without_room_for_all_evaluations_says_so() {
    let (mut stored, mut node) = (Stored::default(), builders::node(1));
    let written = |stored: &Stored, node: &Node| {
        let changes = registered(stored, node).changes;
        let record = changes
            .writes
            .iter()
            .find_map(|write| match write.entity() {
                Some(Entity::Node(node)) => Some(node.lacks_evals),
                _ => None,
            });
        let evals = changes.writes.iter().map(Write::key);
        let evals: Vec<EvalId> = evals
            .filter_map(|key| match key {
                Key::Eval(id) => Some(*id),
                _ => None,
            })
            .collect();
        assert_eq!(evals, changes.eval_ids);
        (record.expect("the record is written"), evals.len())
    };
    for number in 0..901 {
        let job = builders::service(&format!("job-{number:04}"), 1);
        stored.put_job(&job);
        stored.put_alloc(&builders::allocation(number, &job, node.id));
    }
    stored.put_node(&node);
    node.meta.insert("rack".into(), "r1".into());
    assert_eq!(written(&stored, &node), (true, 900));

    // The record of the servers is kept: the cluster-controller alone ends it, or a registration
    // with all evaluations.
    let mut known = node.clone();
    known.lacks_evals = true;
    stored.put_node(&known);
    node.resources.cpu_mhz += 1;
    assert_eq!(written(&stored, &node), (true, 0));
    stored.delete(Key::Alloc(AllocId::from_random(900)));
    node.meta.insert("rack".into(), "r2".into());
    assert_eq!(written(&stored, &node), (false, 900));
}
