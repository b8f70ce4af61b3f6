//! Reconnected allocations: the choice between the original and its replacement.

use model::job::{ReconcileChoice, TaskGroup};
use model::{ClientStatus, Timestamp};
use state::{AllocView, Snapshot};

/// The maximum length of a chain of successors; longer ones are corrupt.
const SUCCESSORS_MAX: usize = 1_000;

/// Returns the successors of `view`, in order.
pub(crate) fn successors<'a>(snapshot: &'a Snapshot, view: &AllocView) -> Vec<&'a AllocView> {
    let mut found = Vec::new();
    let mut next = view.alloc.next_alloc;
    while let Some(successor) = next.and_then(|id| snapshot.alloc(id)) {
        if found.len() >= SUCCESSORS_MAX {
            break;
        }
        found.push(successor);
        next = successor.alloc.next_alloc;
    }
    found
}

/// Tells whether `original`, which runs, is kept and `replacement` stopped.
pub(crate) fn keeps_original(
    group: &TaskGroup,
    batch: bool,
    original: &AllocView,
    replacement: &AllocView,
) -> bool {
    let is_newer = replacement.alloc.job_create_index != original.alloc.job_create_index
        || replacement.alloc.job_version > original.alloc.job_version;
    if is_newer {
        return false;
    }
    // An ended replacement loses, unless it has completed the work.
    match replacement.client_status() {
        ClientStatus::Complete => return !batch,
        ClientStatus::Failed | ClientStatus::Lost => return true,
        ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown => {}
    }
    let choice = group
        .disconnect
        .map_or(ReconcileChoice::BestScore, |block| block.reconcile);
    match choice {
        ReconcileChoice::KeepOriginal => true,
        ReconcileChoice::KeepReplacement => false,
        ReconcileChoice::BestScore => has_best_score(original, replacement),
        ReconcileChoice::LongestRunning => {
            match (started_at(group, original), started_at(group, replacement)) {
                (None, None) => has_best_score(original, replacement),
                (Some(first), Some(second)) => first < second,
                (first, None) => first.is_some(),
                (None, Some(_)) => false,
            }
        }
    }
}

fn has_best_score(original: &AllocView, replacement: &AllocView) -> bool {
    let score = |view: &AllocView| {
        view.alloc
            .metric
            .as_ref()
            .map(|metric| metric.read().score_per_mille)
    };
    let replacement_runs = replacement.client_status() == ClientStatus::Running;
    !(score(replacement) > score(original) && replacement_runs)
}

/// Returns the start of the leader task, or of the first task without a leader.
fn started_at(group: &TaskGroup, view: &AllocView) -> Option<Timestamp> {
    let client = view.client.as_ref()?;
    let started = |name: &str| {
        let task = client.task_states.get(name)?;
        let at = if task.restarts > 0 {
            task.last_restart
        } else {
            task.started_at
        };
        (!at.is_never()).then_some(at)
    };
    let leader = group.tasks.iter().find(|task| task.leader);
    if let Some(leader) = leader {
        return started(&leader.name);
    }
    group
        .tasks
        .iter()
        .filter_map(|task| started(&task.name))
        .min()
}

#[cfg(test)]
mod tests {
    use model::job::DisconnectStrategy;
    use model::{AllocClient, Job, TaskState};
    use test_kit::builders;

    use super::*;

    const ORIGINAL: u128 = 1;
    const REPLACEMENT: u128 = 2;

    fn job(reconcile: ReconcileChoice) -> Job {
        let mut job = builders::service("web", 1);
        job.task_groups[0].disconnect = Some(DisconnectStrategy {
            lost_after: None,
            stop_on_client_after: None,
            replace: true,
            reconcile,
        });
        let mut side = job.task_groups[0].tasks[0].clone();
        side.name = "side".into();
        job.task_groups[0].tasks.push(side);
        job
    }

    /// One that runs since `started`, with `score`.
    fn running(number: u128, score: i32, started: &[(&str, u64)]) -> AllocView {
        let job = job(ReconcileChoice::BestScore);
        let mut alloc = builders::allocation(number, &job, model::NodeId::default());
        let metric = model::AllocMetric {
            score_per_mille: score,
            ..model::AllocMetric::default()
        };
        alloc.metric = Some(metric.into());
        let tasks = started.iter().map(|(name, second)| {
            let state = TaskState {
                started_at: Timestamp::from_millis(second * 1_000),
                ..TaskState::default()
            };
            ((*name).to_owned(), state)
        });
        let client = AllocClient {
            status: ClientStatus::Running,
            task_states: tasks.collect(),
            ..AllocClient::default()
        };
        AllocView {
            alloc: alloc.into(),
            create_index: 1,
            alloc_modify_index: 1,
            client: Some(client.into()),
            client_modify_index: 1,
        }
    }

    fn with(mut view: AllocView, status: ClientStatus) -> AllocView {
        let mut client = AllocClient::clone(view.client.as_ref().unwrap());
        client.status = status;
        view.client = Some(client.into());
        view
    }

    fn keeps(reconcile: ReconcileChoice, batch: bool, one: &AllocView, other: &AllocView) -> bool {
        keeps_original(&job(reconcile).task_groups[0], batch, one, other)
    }

    #[test]
    fn the_newer_version_stays_whatever_was_chosen() {
        let original = running(ORIGINAL, 900, &[]);
        let mut replacement = running(REPLACEMENT, 100, &[]);
        assert!(keeps(
            ReconcileChoice::KeepOriginal,
            false,
            &original,
            &replacement
        ));
        let mut alloc = model::Allocation::clone(&replacement.alloc);
        alloc.job_version += 1;
        replacement.alloc = alloc.into();
        for status in [ClientStatus::Running, ClientStatus::Failed] {
            let replacement = with(replacement.clone(), status);
            assert!(!keeps(
                ReconcileChoice::KeepOriginal,
                false,
                &original,
                &replacement
            ));
        }
    }

    #[test]
    fn a_replacement_that_has_ended_loses_unless_the_work_is_done() {
        let original = running(ORIGINAL, 100, &[]);
        for (status, batch, keeps_original) in [
            (ClientStatus::Failed, false, true),
            (ClientStatus::Lost, true, true),
            (ClientStatus::Complete, false, true),
            (ClientStatus::Complete, true, false),
            (ClientStatus::Running, true, false),
        ] {
            let replacement = with(running(REPLACEMENT, 900, &[]), status);
            let choice = ReconcileChoice::KeepReplacement;
            let kept = keeps(choice, batch, &original, &replacement);
            assert_eq!(kept, keeps_original, "{status:?} batch={batch}");
        }
    }

    #[test]
    fn the_best_score_is_that_of_one_that_runs_and_the_original_wins_a_tie() {
        let original = running(ORIGINAL, 500, &[]);
        for (score, status, keeps_original) in [
            (499, ClientStatus::Running, true),
            (500, ClientStatus::Running, true),
            (501, ClientStatus::Running, false),
            (501, ClientStatus::Pending, true),
        ] {
            let replacement = with(running(REPLACEMENT, score, &[]), status);
            let kept = keeps(ReconcileChoice::BestScore, false, &original, &replacement);
            assert_eq!(kept, keeps_original, "{score} {status:?}");
        }
    }

    #[test]
    fn the_longest_running_follows_from_the_leader_or_else_the_first_task() {
        let choice = ReconcileChoice::LongestRunning;
        let (server, side) = ("server", "side");
        let later = running(ORIGINAL, 500, &[(server, 20), (side, 5)]);
        let sooner = running(REPLACEMENT, 500, &[(server, 10), (side, 8)]);
        assert!(
            keeps(choice, false, &later, &sooner),
            "its side task is older"
        );
        assert!(!keeps(choice, false, &sooner, &later));
        let mut led = job(choice);
        led.task_groups[0].tasks[0].leader = true;
        assert!(!keeps_original(&led.task_groups[0], false, &later, &sooner));
        // A restarted task runs since its restart.
        let mut restarted = AllocClient::clone(sooner.client.as_ref().unwrap());
        let task = restarted.task_states.get_mut(server).unwrap();
        (task.restarts, task.last_restart) = (1, Timestamp::from_millis(30_000));
        let restarted = AllocView {
            client: Some(restarted.into()),
            ..sooner.clone()
        };
        assert!(keeps_original(
            &led.task_groups[0],
            false,
            &later,
            &restarted
        ));
        // An allocation without a started task has not run.
        let waiting = running(REPLACEMENT, 900, &[]);
        assert!(keeps(choice, false, &later, &waiting));
        assert!(!keeps(choice, false, &waiting, &later));
    }
}
