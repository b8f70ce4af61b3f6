//! Properties of random clusters, jobs and histories.
//!
//! The cluster itself checks the invariants of every revision (no node overcommitted, no port or
//! name used twice), and that the plan-applier accepts every plan on the newest state as a whole. A
//! failure names its seed: `KAFILA_SEED=17 KAFILA_HISTORIES=1` replays it alone.
//! `docs/mutation-checks.md` lists the mutations that each property caught.

use std::cell::Cell;
use std::collections::BTreeMap;

use model::{
    Allocation, ClientStatus, Constraint, DeploymentStatus, EvalStatus, Job, JobType, Node,
    NodeStatus, Operator, TriggeredBy,
};
use placement::{Feasibility, Requirements};
use state::{AllocView, Snapshot};

use crate::cluster::TestCluster;
use crate::random_history::{
    ALL, ANYWHERE, EVERYWHERE, Observation, RandomHistory, play, play_and,
};
use crate::report::describe;

/// The number of successful rounds until a cluster must be at rest: a rolling update of twelve, one
/// at a time, after another group's, with some slack.
const ROUNDS_MAX: usize = 60;

fn is_marked_unknown(view: &AllocView) -> bool {
    view.alloc.client_status_override == Some(ClientStatus::Unknown) && !view.is_terminal()
}

fn live(cluster: &TestCluster, job: &Job) -> Vec<AllocView> {
    let mut views = cluster.allocs(&job.key());
    views.retain(|view| !view.is_terminal());
    views
}

fn live_by_group(views: &[AllocView]) -> BTreeMap<String, u32> {
    let mut live = BTreeMap::new();
    for view in views {
        *live.entry(view.alloc.task_group.to_string()).or_insert(0) += 1;
    }
    live
}

/// Returns the desired canaries of a group in the newest deployment, until its promotion.
fn canaries(cluster: &TestCluster, job: &Job, group: &str) -> u32 {
    let snapshot = cluster.snapshot();
    let newest = snapshot.latest_deployment(&job.key());
    let newest = newest.filter(|newest| newest.value.job_version == job.version);
    let part = newest.and_then(|newest| newest.value.groups.get(group));
    part.map_or(0, |part| match part.promoted {
        true => 0,
        false => part.desired_canaries,
    })
}

#[test]
fn a_group_never_has_more_than_its_count_and_its_canaries() {
    play(ANYWHERE, |history, shown| {
        let mut views = live(&history.cluster, shown.job);
        // A disconnected one may have been replaced.
        views.retain(|view| !is_marked_unknown(view));
        for (name, live) in live_by_group(&views) {
            let count = shown.job.task_group(&name).map_or(0, |group| group.count);
            let wanted = if shown.job.stop { 0 } else { count };
            let tried = canaries(&history.cluster, shown.job, &name);
            assert!(
                live <= wanted + tried,
                "seed {}: {live} of {wanted} and {tried} in {name}",
                history.seed
            );
        }
    });
}

#[test]
fn a_group_is_short_only_of_queued_or_waiting_allocations() {
    play(ANYWHERE, |history, shown| {
        let job = shown.job;
        let outcome = shown.decision.plan.eval_outcome.as_ref().unwrap();
        let snapshot = history.cluster.snapshot();
        let newest = snapshot.latest_deployment(&job.key());
        let is_held = newest.is_some_and(|newest| newest.value.status != DeploymentStatus::Running);
        let is_gone = snapshot.job(&job.key()).is_none();
        if job.stop || is_gone || is_held {
            return;
        }
        let views = history.cluster.allocs(&job.key());
        for group in &job.task_groups {
            if canaries(&history.cluster, job, &group.name) > 0 {
                continue;
            }
            let of_group = |view: &&AllocView| *view.alloc.task_group == *group.name;
            // Ended ones that keep their slots: completed batch work, failures with a delay.
            let ended = views.iter().filter(of_group).filter(|view| {
                let keeps = !view.alloc.is_server_terminal() && view.is_client_terminal();
                keeps || view.alloc.transition.migrate_disable_placement
            });
            // Lost ones that their nodes may still run.
            let lost = views.iter().filter(of_group).filter(|view| {
                let due = view.alloc.followup_eval_id.and_then(|id| snapshot.eval(id));
                view.client_status() == ClientStatus::Lost
                    && due.is_some_and(|eval| eval.value.wait_until > history.cluster.now)
            });
            let waiting = u32::try_from(ended.count() + lost.count()).unwrap();
            let queued = outcome.queued_allocs.get(&group.name).copied().unwrap_or(0);
            let live = live(&history.cluster, job);
            let live = live_by_group(&live).get(&group.name).copied().unwrap_or(0);
            assert!(
                live + queued + waiting >= group.count,
                "seed {}: {live} live, {queued} queued, {waiting} wait of {}",
                history.seed,
                group.count
            );
        }
    });
}

/// Tells whether migrations may leave room for another allocation to stay.
fn is_distinct(job: &Job) -> bool {
    let groups = job.task_groups.iter();
    groups
        .flat_map(|group| &group.constraints)
        .any(|constraint: &Constraint| {
            matches!(
                constraint.operator,
                Operator::DistinctHosts | Operator::DistinctProperty
            )
        })
}

fn looking_again_changes_nothing(history: &mut RandomHistory, shown: &Observation<'_>) {
    let outcome = shown.decision.plan.eval_outcome.as_ref().unwrap();
    // A failed placement may fit where the same plan has freed resources.
    let is_gone = history.cluster.snapshot().job(&shown.job.key()).is_none();
    if !outcome.failed_task_groups.is_empty() || is_gone || is_distinct(shown.job) {
        return;
    }
    let again = history.cluster.add_eval(shown.job, TriggeredBy::NodeUpdate);
    let (before, now) = (history.cluster.snapshot(), history.cluster.now);
    let again = history.cluster.run(again);
    let description = describe(&again, &before, now);
    let first = describe(shown.decision, shown.before, now);
    assert!(
        again.plan.is_no_op(),
        "seed {}: after\n{first}came\n{description}",
        history.seed
    );
}

#[test]
fn planning_twice_changes_nothing() {
    play(ANYWHERE, |history, shown| {
        looking_again_changes_nothing(history, &shown);
    });
}

#[test]
fn planning_twice_changes_nothing_everywhere() {
    play(EVERYWHERE, |history, shown| {
        looking_again_changes_nothing(history, &shown);
    });
}

#[test]
fn planning_twice_changes_nothing_where_others_make_way() {
    play(ALL, |history, shown| {
        looking_again_changes_nothing(history, &shown);
    });
}

fn is_stopped_everywhere(history: &mut RandomHistory, shown: &Observation<'_>) {
    let is_gone = history.cluster.snapshot().job(&shown.job.key()).is_none();
    if is_gone || shown.job.stop {
        let left = live(&history.cluster, shown.job);
        assert_eq!(left, [], "seed {}", history.seed);
    }
}

#[test]
fn a_stopped_job_is_stopped_everywhere() {
    play(ANYWHERE, |history, shown| {
        is_stopped_everywhere(history, &shown)
    });
    play(EVERYWHERE, |history, shown| {
        is_stopped_everywhere(history, &shown)
    });
}

/// Returns the number of destructive updates of a group in the plan.
fn updated(shown: &Observation<'_>, group: &str) -> u32 {
    let stops = shown.decision.plan.stops.values().flatten();
    let updates = stops.filter(|stop| {
        let view = shown.before.alloc(stop.alloc_id).expect("it exists");
        stop.description == "alloc is being updated due to job update"
            && *view.alloc.task_group == *group
    });
    u32::try_from(updates.count()).unwrap()
}

/// Returns the number of available allocations of a group that are replaced, and of unavailable
/// ones of an earlier deployment that keep running.
fn overtaken(shown: &Observation<'_>, group: &str, is_system: bool) -> (u32, u32) {
    let stops = shown.decision.plan.stops.values().flatten();
    let stops: BTreeMap<_, _> = stops
        .map(|stop| (stop.alloc_id, &stop.description))
        .collect();
    let (mut proven, mut on_the_way) = (0, 0);
    for view in shown.before.allocs_by_job(&shown.job.key()) {
        let node = shown.before.node(view.alloc.node_id);
        let is_reached = node.is_some_and(|node| node.value.is_schedulable());
        if *view.alloc.task_group != *group || view.is_terminal() || !is_reached {
            continue;
        }
        let verdict = view.health().map(|health| health.healthy);
        let is_proven = view.alloc.deployment_id.is_none() || verdict == Some(true);
        match stops.get(&view.alloc.id) {
            Some(why) if *why == "alloc is being updated due to job update" => {
                proven += u32::from(is_proven);
            }
            Some(_) => {}
            None if view.client_status() == ClientStatus::Unknown => {}
            None => on_the_way += u32::from(!(is_proven || is_system && verdict.is_some())),
        }
    }
    (proven, on_the_way)
}

fn goes_no_faster_than_allowed(history: &mut RandomHistory, shown: &Observation<'_>) {
    let job = shown.job;
    if job.job_type.runs_to_end() {
        return;
    }
    let is_system = job.job_type == JobType::System;
    let newest = shown.before.latest_deployment(&job.key());
    let current = newest.filter(|newest| {
        let create_index = shown.before.job(&job.key()).map(|job| job.create_index);
        newest.value.job_version == job.version
            && Some(newest.value.job_create_index) == create_index
            && newest.value.status != DeploymentStatus::Successful
    });
    for group in &job.task_groups {
        let updated = updated(shown, &group.name);
        let limit = group.update.map_or(0, |update| update.max_parallel);
        if updated == 0 || limit == 0 {
            continue;
        }
        let mut allowed = limit;
        if let Some(current) = current {
            assert_eq!(
                current.value.status,
                DeploymentStatus::Running,
                "seed {}: an update while it is held",
                history.seed
            );
            let of_deployment = shown.before.allocs_by_deployment(current.value.id);
            let counted = of_deployment.filter(|view| {
                let verdict = view.health().map(|health| health.healthy);
                let counts = if is_system {
                    verdict.is_none()
                } else {
                    verdict != Some(true)
                };
                let moves = is_system && view.alloc.transition.migrate;
                *view.alloc.task_group == *group.name && !view.is_terminal() && !moves && counts
            });
            // System allocations on unschedulable nodes stay, and lost ones count by their
            // replacements, once these are placed.
            let stops = shown.decision.plan.stops.values().flatten();
            let lost = stops.filter(|stop| stop.client_status == Some(ClientStatus::Lost));
            let lost: Vec<_> = lost.map(|stop| stop.alloc_id).collect();
            let counted = counted.filter(|view| !lost.contains(&view.alloc.id));
            let counted = counted.filter(|view| {
                let node = shown.before.node(view.alloc.node_id);
                node.is_some_and(|node| match is_system {
                    true => node.value.is_schedulable(),
                    false => node.value.status != NodeStatus::Down,
                })
            });
            allowed = limit.saturating_sub(u32::try_from(counted.count()).unwrap());
        }
        let snapshot = history.cluster.snapshot();
        let newest = snapshot.latest_deployment(&job.key());
        let part = newest.and_then(|newest| newest.value.groups.get(&group.name));
        if let Some(part) = part.filter(|part| part.desired_canaries > 0 && !part.promoted) {
            allowed = if is_system { part.desired_canaries } else { 0 };
        }
        assert!(
            updated <= allowed,
            "seed {}: {updated} updated, {allowed} allowed of {limit}:\n{}",
            history.seed,
            describe(shown.decision, shown.before, history.cluster.now)
        );
        let (proven, on_the_way) = overtaken(shown, &group.name, is_system);
        assert!(
            current.is_some() || proven == 0 || proven + on_the_way <= limit,
            "seed {}: {proven} updated beside {on_the_way} on their way, of {limit}:\n{}",
            history.seed,
            describe(shown.decision, shown.before, history.cluster.now)
        );
    }
}

#[test]
fn an_update_goes_no_faster_than_its_limit() {
    play(ANYWHERE, |history, shown| {
        goes_no_faster_than_allowed(history, &shown)
    });
    play(EVERYWHERE, |history, shown| {
        goes_no_faster_than_allowed(history, &shown)
    });
}

#[test]
fn nothing_tries_out_a_version_that_will_not_be_rolled_out() {
    play(ANYWHERE, |history, shown| {
        let snapshot = history.cluster.snapshot();
        for view in live(&history.cluster, shown.job) {
            let id = view.alloc.deployment_id;
            let Some(deployment) = id.and_then(|id| snapshot.deployment(id)) else {
                continue;
            };
            let Some(part) = deployment.value.groups.get(&*view.alloc.task_group) else {
                continue;
            };
            let is_canary = part.placed_canaries.contains(&view.alloc.id);
            let is_tried = part.desired_canaries > 0 && !part.promoted;
            assert!(
                !is_canary || !is_tried || deployment.value.status.is_active(),
                "seed {}: {} is left of a deployment that is {}",
                history.seed,
                view.alloc.name(),
                deployment.value.status.as_str()
            );
        }
    });
}

#[test]
fn an_evaluation_is_due_when_the_time_of_unknown_allocations_ends() {
    play(ANYWHERE, |history, shown| {
        let snapshot = history.cluster.snapshot();
        for view in live(&history.cluster, shown.job) {
            let group = shown.job.task_group(&view.alloc.task_group);
            let block = group.and_then(|group| group.disconnect);
            let lost_after = block
                .filter(|block| block.replace)
                .and_then(|block| block.lost_after);
            let (Some(lost_after), ClientStatus::Unknown) = (lost_after, view.client_status())
            else {
                continue;
            };
            let expires = view.alloc.unknown_since.plus(lost_after);
            let looks = snapshot.evals_by_job(&shown.job.key()).any(|eval| {
                eval.value.triggered_by == TriggeredBy::MaxDisconnectTimeout
                    && eval.value.status == EvalStatus::Pending
                    && eval.value.wait_until.since(expires).as_secs() <= 5
            });
            assert!(
                looks,
                "seed {}: no evaluation expires {}",
                history.seed,
                view.alloc.name()
            );
        }
    });
}

#[test]
fn a_job_comes_to_rest_when_all_turns_out_well() {
    play_and(ANYWHERE, |_, _| {}, rests);
    play_and(EVERYWHERE, |_, _| {}, rests);
    play_and(ALL, |_, _| {}, rests);
}

fn rests(history: &mut RandomHistory) {
    let rounds = history.turn_out_well(ROUNDS_MAX);
    assert!(rounds.is_some(), "seed {}: it never rests", history.seed);
    let snapshot = history.cluster.snapshot();
    for job in snapshot.jobs().filter(|job| !job.value.stop) {
        let key = job.value.key();
        let newest = snapshot.latest_deployment(&key);
        let is_held = newest.is_some_and(|newest| {
            newest.value.job_version == job.value.version
                && !matches!(
                    newest.value.status,
                    DeploymentStatus::Running | DeploymentStatus::Successful
                )
        });
        let newest_eval = snapshot
            .evals_by_job(&key)
            .max_by_key(|eval| eval.create_index);
        let is_short = newest_eval.is_some_and(|eval| !eval.value.failed_task_groups.is_empty());
        if job.value.job_type != JobType::Service || is_held || is_short {
            continue;
        }
        let is_active = newest.is_some_and(|newest| newest.value.status.is_active());
        let views = live(&history.cluster, &job.value);
        let mut has_failures = false;
        for group in &job.value.task_groups {
            let of_group = views
                .iter()
                .filter(|view| *view.alloc.task_group == *group.name);
            let of_group: Vec<_> = of_group.collect();
            let failed = history.cluster.allocs(&key);
            let failed = failed.iter().filter(|view| {
                *view.alloc.task_group == *group.name
                    && !view.alloc.is_server_terminal()
                    && view.client_status() == ClientStatus::Failed
            });
            let (running, failed) = (of_group.len(), failed.count());
            has_failures |= failed > 0;
            let count = group.count as usize;
            assert!(
                running <= count && running + failed >= count,
                "seed {}: {running} run of {count}",
                history.seed
            );
            let old = of_group
                .iter()
                .filter(|view| view.alloc.job_version != job.value.version);
            // Rollouts with failures are up to the deployment watcher, which is not part of this
            // test.
            let is_stuck = is_active && has_failures;
            let old = old.count();
            assert!(
                old == 0 || is_stuck,
                "seed {}: {old} old ones are left",
                history.seed
            );
        }
        assert!(
            !is_active || has_failures,
            "seed {}: its deployment goes on",
            history.seed
        );
    }
}

#[test]
fn a_system_job_is_once_on_every_node_that_can_run_it() {
    play(EVERYWHERE, |history, shown| {
        let (job, snapshot) = (shown.job, history.cluster.snapshot());
        if job.stop || snapshot.job(&job.key()).is_none() {
            return;
        }
        let outcome = shown.decision.plan.eval_outcome.as_ref().unwrap();
        let views = live(&history.cluster, job);
        for group in &job.task_groups {
            let requirements = Requirements::new(job, group).looking_in(&snapshot);
            let mut feasibility = Feasibility::new(&requirements);
            let is_full = outcome.failed_task_groups.contains_key(&group.name);
            for node in snapshot.nodes() {
                let here = views.iter().filter(|view| {
                    view.alloc.node_id == node.value.id && *view.alloc.task_group == *group.name
                });
                let here = u32::try_from(here.count()).unwrap();
                let can_run = node.value.is_schedulable()
                    && requirements.scope.contains(&node.value)
                    && feasibility.check(&node.value).is_ok();
                let name = &node.value.name;
                assert!(
                    here <= group.count,
                    "seed {}: {here} on {name}",
                    history.seed
                );
                let is_done = job.job_type == JobType::Sysbatch;
                let is_limited = !requirements.distinct_properties.is_empty();
                // Its policy decides on the next attempt.
                let all = history.cluster.allocs(&job.key());
                let on_it = all.iter().filter(|view| {
                    view.alloc.node_id == node.value.id && *view.alloc.task_group == *group.name
                });
                let newest = on_it.max_by_key(|view| view.create_index);
                let has_failed =
                    newest.is_some_and(|view| view.client_status() == ClientStatus::Failed);
                let waits = has_failed && group.reschedule.is_some();
                assert!(
                    !can_run || is_limited || waits || is_full || is_done || here == group.count,
                    "seed {}: {here} of {} on {name}",
                    history.seed,
                    group.count
                );
                let is_down = node.value.status == NodeStatus::Down;
                assert!(
                    !is_down || here == 0,
                    "seed {}: {here} on {name}",
                    history.seed
                );
            }
        }
    });
}

/// People add up the counts: to the number of placements, and with the allocations that stay to the
/// number of nodes.
#[test]
fn every_placement_of_a_system_job_is_in_one_count() {
    let canaries = Cell::new(0);
    play(EVERYWHERE, |history, shown| {
        let plan = &shown.decision.plan;
        let outcome = plan.eval_outcome.as_ref().unwrap();
        for (name, desired) in &shown.decision.desired_updates {
            let placed = plan.placements.values().flatten().filter(|alloc| {
                *alloc.task_group == **name && shown.before.alloc(alloc.id).is_none()
            });
            let placed = u32::try_from(placed.count()).unwrap();
            let queued = outcome.queued_allocs.get(name).copied().unwrap_or(0);
            let counted =
                desired.place + desired.migrate + desired.destructive_update + desired.canary;
            assert_eq!(
                counted,
                placed + queued,
                "seed {}: {name} {desired:?}",
                history.seed
            );
            canaries.set(canaries.get() + desired.canary);
        }
    });
    assert!(canaries.get() > 10, "only {} canaries", canaries.get());
}

#[test]
fn placements_have_their_volumes_and_addresses() {
    for types in [ANYWHERE, EVERYWHERE] {
        play(types, |history, shown| {
            for alloc in shown.decision.plan.placements.values().flatten() {
                let is_new = shown.before.alloc(alloc.id).is_none();
                let job = shown
                    .before
                    .job_version(&alloc.job_key(), alloc.job_version);
                let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
                let (true, Some(group)) = (is_new, group) else {
                    continue;
                };
                let node = &shown.before.node(alloc.node_id).unwrap().value;
                for request in group.volumes.values() {
                    let source = request.source_for(alloc.name_index);
                    let is_good = match node.host_volumes.get(&*source) {
                        Some(one) => request.read_only || !one.read_only,
                        None => {
                            let named = shown.before.volumes_named(&alloc.namespace, &source);
                            named.is_some_and(|nodes| nodes.contains_key(&node.id))
                        }
                    };
                    assert!(
                        is_good,
                        "seed {}: {} on {}",
                        history.seed,
                        alloc.name(),
                        node.name
                    );
                }
                let asked = group.networks.iter().flat_map(|network| &network.ports);
                assert_eq!(asked.clone().count(), alloc.resources.ports.len());
                for (ask, port) in asked.zip(&alloc.resources.ports) {
                    let alias = match ask.host_network.as_str() {
                        "${meta.network}" => node.meta["network"].as_str(),
                        alias => alias,
                    };
                    let addresses = node.addresses(alias).unwrap();
                    assert!(addresses.contains(&port.host_ip), "seed {}", history.seed);
                }
            }
        });
    }
}

#[test]
fn distinct_constraints_hold_for_placements() {
    for types in [ANYWHERE, EVERYWHERE] {
        distinct_constraints_hold(types);
    }
}

/// The allocations of a node that a distinctness constraint of a group counts, and the maximum.
fn distinct_rule(constraint: &Constraint) -> Option<(Option<&'static str>, usize)> {
    match constraint.operator {
        Operator::DistinctHosts => Some((None, 1)),
        Operator::DistinctProperty => Some((Some("rack"), 2)),
        _ => None,
    }
}

fn value_on<'n>(node: &'n Node, property: Option<&str>) -> &'n str {
    property.map_or(&node.name, |key| &node.meta[key])
}

/// Tells whether `view` is a canary of a version that is not promoted.
fn is_tried_out(snapshot: &Snapshot, view: &AllocView) -> bool {
    let deployment = view
        .alloc
        .deployment_id
        .and_then(|id| snapshot.deployment(id));
    let part = deployment.and_then(|one| one.value.groups.get(&*view.alloc.task_group));
    part.is_some_and(|part| part.awaits_promotion() && view.alloc.canary)
}

/// Returns the number of a group's allocations by value, among those from which `alloc` has to be
/// distinct.
fn used_values(
    history: &RandomHistory,
    job: &Job,
    alloc: &Allocation,
    property: Option<&str>,
) -> BTreeMap<String, usize> {
    let snapshot = history.cluster.snapshot();
    let is_canary = |view: &AllocView| is_tried_out(&snapshot, view);
    let mut views = live(&history.cluster, job);
    views.retain(|view| {
        *view.alloc.task_group == *alloc.task_group
            && match (alloc.canary, alloc.job_version < job.version) {
                // In-place updates have been applied by now.
                (true, _) => view.alloc.job_version == job.version,
                (_, true) => !is_canary(view),
                _ => true,
            }
    });
    let mut used = BTreeMap::<String, usize>::new();
    for view in views {
        if let Some(node) = snapshot.node(view.alloc.node_id) {
            let value = value_on(&node.value, property);
            *used.entry(value.to_owned()).or_default() += 1;
        }
    }
    used
}

fn distinct_constraints_hold(types: &'static [JobType]) {
    play(types, |history, shown| {
        let (job, snapshot) = (shown.job, history.cluster.snapshot());
        let placed = shown.decision.plan.placements.values().flatten();
        let new = placed.filter(|alloc| shown.before.alloc(alloc.id).is_none());
        for alloc in new {
            // Its own version decides on its constraints.
            let version = snapshot.job_version(&job.key(), alloc.job_version);
            let group = version.and_then(|job| job.value.task_group(&alloc.task_group));
            let rules = group.iter().flat_map(|group| &group.constraints);
            for (property, allowed) in rules.filter_map(distinct_rule) {
                let used = used_values(history, job, alloc, property);
                let node = snapshot.node(alloc.node_id).unwrap();
                let value = value_on(&node.value, property);
                assert!(
                    used[value] <= allowed,
                    "seed {}: {} on {value}, {used:?}",
                    history.seed,
                    alloc.name()
                );
            }
        }
    });
}

#[test]
fn a_group_is_as_distinct_as_it_asks_once_a_rollout_is_over() {
    play_and(
        &[JobType::Service],
        |_, _| {},
        |history| {
            history.turn_out_well(ROUNDS_MAX);
            let snapshot = history.cluster.snapshot();
            for job in snapshot.jobs().filter(|job| !job.value.stop) {
                let newest = snapshot.latest_deployment(&job.value.key());
                let newest = newest.filter(|newest| newest.value.job_version == job.value.version);
                let is_deployed = newest.is_some();
                let is_over =
                    newest.is_none_or(|newest| newest.value.status == DeploymentStatus::Successful);
                if !is_over {
                    continue;
                }
                let views = live(&history.cluster, &job.value);
                for group in &job.value.task_groups {
                    // Without a deployment nothing marks the end. An allocation that waits for its
                    // replacement stays until then, and others may be beside it.
                    let mut old = views.iter().filter(|view| {
                        *view.alloc.task_group == *group.name
                            && view.alloc.job_version != job.value.version
                    });
                    if !is_deployed && old.next().is_some() {
                        continue;
                    }
                    let rules = group.constraints.iter();
                    for (property, allowed) in rules.filter_map(distinct_rule) {
                        let mut used = BTreeMap::<&str, usize>::new();
                        for view in &views {
                            let node = snapshot.node(view.alloc.node_id);
                            if let Some(node) =
                                node.filter(|_| *view.alloc.task_group == *group.name)
                            {
                                *used.entry(value_on(&node.value, property)).or_default() += 1;
                            }
                        }
                        assert!(
                            used.values().all(|count| *count <= allowed),
                            "seed {}: {used:?}",
                            history.seed
                        );
                    }
                }
            }
        },
    );
}
