//! Look-ups of templates: a node asks for its own tasks, and a task reads the variables of its job and
//! the services of its namespace.

use std::collections::BTreeSet;

use model::refusal::{Kind, Refusal};
use model::variable::variable_paths;
use model::{AllocId, NodeId};
use state::Snapshot;

/// A request for data on behalf of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUp {
    pub alloc_id: AllocId,
    pub task: String,
    pub namespace: String,
    pub region: String,
}

/// The reason why a task gets no data. Final only in a fresh snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookUpRefusal {
    /// Also for an allocation that does not exist: a node learns nothing about others.
    #[error(
        "allocation {alloc_id} is not one of node {node_id}: a node looks data up for its own tasks"
    )]
    NotOwn { alloc_id: AllocId, node_id: NodeId },
    #[error("allocation {0} has ended: its tasks get no data")]
    Ended(AllocId),
    #[error("allocation {alloc_id} has no task {task:?}")]
    NoTask { alloc_id: AllocId, task: String },
    #[error("a task may only read its own namespace, {own:?}, not {asked:?}")]
    Namespace { own: String, asked: String },
    #[error("a task may only read its own region, {own:?}, not {asked:?}")]
    Region { own: String, asked: String },
    #[error(
        "task {task:?} does not read variable {path:?}: it reads nomad/jobs, {of_task}, and the paths \
         between them"
    )]
    Path {
        task: String,
        path: String,
        of_task: String,
    },
}

impl Refusal for LookUpRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::NotOwn { .. }
            | Self::Namespace { .. }
            | Self::Region { .. }
            | Self::Path { .. } => Kind::Denied,
            Self::Ended(_) | Self::NoTask { .. } => Kind::Precondition,
        }
    }
}

/// The data that a task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable {
    pub namespace: String,
    task: String,
    /// From the one of all jobs to the one of the task.
    paths: Vec<String>,
}

impl Readable {
    /// Tells whether the task reads the variable with this path.
    fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|known| known == path)
    }

    /// Returns the paths with this start of which the task reads the variables, in order.
    pub fn paths_from<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a str> {
        let paths = self.paths.iter().map(String::as_str);
        paths.filter(move |path| path.starts_with(start))
    }

    /// # Errors
    /// The task does not read the variable with this path.
    pub fn check_path(&self, path: &str) -> Result<(), LookUpRefusal> {
        if self.has_path(path) {
            return Ok(());
        }
        Err(LookUpRefusal::Path {
            task: self.task.clone(),
            path: path.to_owned(),
            of_task: self.paths.last().cloned().unwrap_or_default(),
        })
    }
}

/// Returns the namespaces whose services a node looks up for any of its processes, in lower case: those of its
/// allocations that have not ended.
pub fn namespaces(snapshot: &Snapshot, node_id: NodeId) -> BTreeSet<String> {
    let allocs = snapshot.allocs_by_node(node_id);
    let live = allocs.filter(|view| !view.is_client_terminal());
    live.map(|view| view.alloc.namespace.to_lowercase())
        .collect()
}

/// Decides on the data for a task of `node_id`, which is authenticated.
///
/// # Errors
/// See [`LookUpRefusal`].
pub fn readable(
    snapshot: &Snapshot,
    node_id: NodeId,
    request: &LookUp,
) -> Result<Readable, LookUpRefusal> {
    let alloc_id = request.alloc_id;
    let view = snapshot
        .alloc(alloc_id)
        .filter(|view| view.alloc.node_id == node_id)
        .ok_or(LookUpRefusal::NotOwn { alloc_id, node_id })?;
    if view.is_client_terminal() {
        return Err(LookUpRefusal::Ended(alloc_id));
    }
    let alloc = &view.alloc;
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
    let task = group.and_then(|group| group.task(&request.task));
    let (Some(job), Some(task)) = (job, task) else {
        let task = request.task.clone();
        return Err(LookUpRefusal::NoTask { alloc_id, task });
    };
    let job = &job.value;
    if request.namespace != job.namespace {
        return Err(LookUpRefusal::Namespace {
            own: job.namespace.clone(),
            asked: request.namespace.clone(),
        });
    }
    if !request.region.is_empty() && request.region != job.region {
        return Err(LookUpRefusal::Region {
            own: job.region.clone(),
            asked: request.region.clone(),
        });
    }
    Ok(Readable {
        namespace: job.namespace.clone(),
        task: task.name.clone(),
        paths: variable_paths(job, &alloc.task_group, &task.name).into(),
    })
}

#[cfg(test)]
mod tests {
    use model::{ClientStatus, Job};
    use test_kit::{Stored, builders};

    use super::*;

    fn fixture(edit: impl FnOnce(&mut Job)) -> (Stored, LookUp, NodeId) {
        let mut stored = Stored::default();
        let mut job = builders::service("web", 1);
        edit(&mut job);
        stored.put_job(&job);
        let node = builders::node(1);
        stored.put_node(&node);
        let alloc = builders::allocation(1, &job, node.id);
        stored.put_alloc(&alloc);
        let request = LookUp {
            alloc_id: alloc.id,
            task: job.task_groups[0].tasks[0].name.clone(),
            namespace: job.namespace.clone(),
            region: job.region,
        };
        (stored, request, node.id)
    }

    #[test]
    fn a_task_reads_the_variables_of_its_job_group_and_own() {
        let (stored, request, node_id) = fixture(|_| {});
        let readable = readable(&stored.snapshot(), node_id, &request).unwrap();
        let (group, task) = ("web", request.task.as_str());
        for path in ["nomad/jobs".to_owned(), "nomad/jobs/web".to_owned()]
            .into_iter()
            .chain([
                format!("nomad/jobs/web/{group}"),
                format!("nomad/jobs/web/{group}/{task}"),
            ])
        {
            assert_eq!(readable.check_path(&path), Ok(()), "{path}");
        }
        for path in [
            "app/db",
            "nomad/jobs/web2",
            "nomad/jobs/we",
            "nomad/jobs/web/other",
            "",
        ] {
            let refused = readable.check_path(path).unwrap_err();
            assert_eq!(refused.kind(), Kind::Denied, "{path}");
        }
    }

    #[test]
    fn a_child_reads_the_variables_of_its_parent() {
        let (stored, request, node_id) = fixture(|job| {
            job.id = "batch/dispatch-1-a".to_owned();
            job.parent_id = "batch".to_owned();
        });
        let readable = readable(&stored.snapshot(), node_id, &request).unwrap();
        assert!(readable.has_path("nomad/jobs/batch"));
        assert!(!readable.has_path("nomad/jobs/batch/dispatch-1-a"));
    }

    #[test]
    fn a_node_looks_services_up_in_the_namespaces_of_its_live_allocations() {
        let (mut stored, request, node_id) = fixture(|job| job.namespace = "Prod".to_owned());
        let of = |stored: &Stored, node_id| namespaces(&stored.snapshot(), node_id);
        assert_eq!(of(&stored, node_id), BTreeSet::from(["prod".to_owned()]));
        assert_eq!(of(&stored, NodeId::from_random(9)), BTreeSet::new());
        stored.put_status(request.alloc_id, ClientStatus::Complete);
        assert_eq!(of(&stored, node_id), BTreeSet::new());
    }

    #[test]
    fn others_get_nothing() {
        let (mut stored, request, node_id) = fixture(|_| {});
        let refused = |stored: &Stored, node_id, request: &LookUp| {
            readable(&stored.snapshot(), node_id, request).unwrap_err()
        };
        let other = NodeId::from_random(9);
        let alloc_id = request.alloc_id;
        assert_eq!(
            refused(&stored, other, &request),
            LookUpRefusal::NotOwn {
                alloc_id,
                node_id: other
            }
        );
        for (edit, part) in [
            (
                LookUp {
                    task: "x".to_owned(),
                    ..request.clone()
                },
                "no task",
            ),
            (
                LookUp {
                    namespace: "prod".to_owned(),
                    ..request.clone()
                },
                "only read its own namespace",
            ),
            (
                LookUp {
                    region: "mars".to_owned(),
                    ..request.clone()
                },
                "only read its own region",
            ),
        ] {
            let text = refused(&stored, node_id, &edit).to_string();
            assert!(text.contains(part), "{text}");
        }
        stored.put_status(alloc_id, ClientStatus::Complete);
        assert_eq!(
            refused(&stored, node_id, &request),
            LookUpRefusal::Ended(alloc_id)
        );
    }
}
