//! The jobs of the loads.

use integration_tests::load::{mock_batch, mock_service};
use prost_types::value::Kind as Wire;
use proto::v1;

use crate::args::{Fleet, Kind};

/// Returns a job of a fleet.
pub(crate) fn of(id: &str, fleet: &Fleet) -> v1::Job {
    let mut job = match fleet.r#type {
        Kind::Batch => mock_batch(id, fleet.count),
        Kind::Service => mock_service(id, fleet.count),
    };
    let run_for = prost_types::Value {
        kind: Some(Wire::StringValue(format!(
            "{}ms",
            fleet.run_for.as_millis()
        ))),
    };
    for task in job
        .task_groups
        .iter_mut()
        .flat_map(|group| &mut group.tasks)
    {
        let config = task.config.get_or_insert_default();
        config.fields.insert("run_for".to_owned(), run_for.clone());
    }
    if fleet.spread {
        job.spreads.push(v1::Spread {
            attribute: Some("${meta.rack}".to_owned()),
            weight: Some(100),
            targets: Vec::new(),
        });
    }
    if fleet.affinity {
        job.affinities.push(v1::Affinity {
            left: Some("${meta.tier}".to_owned()),
            operator: Some("=".to_owned()),
            right: Some("fast".to_owned()),
            weight: Some(50),
        });
    }
    job
}
