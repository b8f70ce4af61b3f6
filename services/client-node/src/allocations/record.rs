//! The record of an assignment in the local state.

use std::collections::BTreeMap;
use std::sync::Arc;

use lifecycle::Assignment;
use model::{AllocId, Allocation, Job};
use serde::{Deserialize, Serialize};

/// An [`Assignment`] in the local state.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    alloc_id: AllocId,
    alloc: Allocation,
    job: Job,
    modify_index: u64,
    trace_parent: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    volume_paths: BTreeMap<String, String>,
}

impl From<&Assignment> for Record {
    fn from(assignment: &Assignment) -> Self {
        Self {
            alloc_id: assignment.alloc.id,
            alloc: (*assignment.alloc).clone(),
            job: (*assignment.job).clone(),
            modify_index: assignment.modify_index,
            trace_parent: assignment.trace_parent.clone(),
            volume_paths: assignment.volume_paths.clone(),
        }
    }
}

impl From<Record> for Assignment {
    fn from(record: Record) -> Self {
        let alloc = Allocation {
            id: record.alloc_id,
            ..record.alloc
        };
        Self {
            alloc: Arc::new(alloc),
            job: Arc::new(record.job),
            modify_index: record.modify_index,
            trace_parent: record.trace_parent,
            volume_paths: record.volume_paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use model::NodeId;
    use test_kit::builders;

    use super::*;

    #[test]
    fn a_record_gives_back_the_assignment() {
        let job = builders::batch("sum", 1);
        let assignment = Assignment {
            alloc: Arc::new(builders::allocation(7, &job, NodeId::from_random(1))),
            job: Arc::new(job),
            modify_index: 5,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        };
        let text = serde_json::to_string(&Record::from(&assignment)).unwrap();
        let record: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(Assignment::from(record), assignment);
    }
}
