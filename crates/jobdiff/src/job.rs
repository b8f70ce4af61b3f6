//! Jobs, compared.

use model::{Job, TaskGroup};

use crate::compare::{Differences, diff_type, paired};
use crate::launches::{parameterized, periodic};
use crate::policies::{affinity, constraint, spread};
use crate::shape::{Shape, words};
use crate::tree::{DiffType, JobDiff};
use crate::{group, tree};

/// Returns what differs between two versions of a job; `None` stands for no job.
///
/// With `contextual`, groups and tasks that are the same are listed as well, and blocks in which
/// anything differs show what is the same in them too.
///
/// Versions and times of submission do not count, nor does the order of what has none: groups,
/// tasks, datacenters, constraints, affinities, spreads.
/// Source: Nomad's names of fields and objects, and which of them it leaves out.
pub fn diff(old: Option<&Job>, new: Option<&Job>, contextual: bool) -> JobDiff {
    let (old_shape, new_shape) = (old.map(shape), new.map(shape));
    let own = Differences::of(old_shape.as_ref(), new_shape.as_ref(), contextual);
    let pairs = paired(groups(old), groups(new), |group| group.name.as_str());
    let mut task_groups: Vec<tree::TaskGroupDiff> = pairs
        .into_values()
        .map(|(old, new)| group::diff(old, new, contextual))
        .collect();
    let is_same = |group: &tree::TaskGroupDiff| group.diff_type == DiffType::None;
    let all_same = own.is_empty() && task_groups.iter().all(is_same);
    if !contextual {
        task_groups.retain(|group| !is_same(group));
    }
    JobDiff {
        id: new.or(old).map_or(String::new(), |job| job.id.clone()),
        diff_type: diff_type(old, new, all_same),
        fields: own.fields,
        objects: own.objects,
        task_groups,
    }
}

fn groups(job: Option<&Job>) -> &[TaskGroup] {
    job.map_or(&[], |job| &job.task_groups)
}

fn shape(job: &Job) -> Shape {
    let Job {
        namespace,
        // The same on both sides, or it would be another job.
        id: _,
        name,
        region,
        job_type,
        priority,
        all_at_once,
        datacenters,
        node_pool,
        constraints,
        affinities,
        spreads,
        // They have a place of their own in the tree.
        task_groups: _,
        meta,
        periodic: launched,
        parameterized: told,
        parent_id,
        dispatched,
        payload,
        dispatch_token,
        stop,
        // What the store says about the job, not the user.
        version: _,
        submit_time: _,
    } = job;
    Shape::new("Job")
        .field("Namespace", namespace)
        .field("Name", name)
        .field("Region", region)
        .field("Type", job_type.as_str())
        .field("Priority", priority)
        .field("AllAtOnce", all_at_once)
        .field("NodePool", node_pool)
        .field("Stop", stop)
        .field("ParentID", parent_id)
        .field("Dispatched", dispatched)
        // What it says is for the task alone.
        .optional(
            "Payload",
            (!payload.is_empty()).then(|| format!("{} bytes", payload.0.len())),
        )
        .field("DispatchIdempotencyToken", dispatch_token)
        .map("Meta", meta)
        .object(words("Datacenters", datacenters))
        .object(launched.as_ref().map(periodic))
        .object(told.as_ref().map(parameterized))
        .set(constraints.iter().map(constraint))
        .set(affinities.iter().map(affinity))
        .set(spreads.iter().map(spread))
}
