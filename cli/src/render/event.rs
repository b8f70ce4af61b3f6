//! Events, one line each: the object, the change and the new state.

use proto::v1;
use proto::v1::event::Payload;

use super::Style;
use crate::output::printable;

/// Returns the events of one index, each on a line of its own.
pub(crate) fn lines(batch: &v1::EventBatch, style: &Style) -> String {
    let line = |event: &v1::Event| {
        let (key, now) = match &event.payload {
            None => (event.key.clone(), "deleted".to_owned()),
            Some(payload) => (key(event, payload, style), now(payload, style)),
        };
        let text = format!(
            "{:<8} {:<30} {:<11} {key} {now}",
            event.index, event.r#type, event.topic
        );
        format!("{}\n", printable(text.trim_end()))
    };
    batch.events.iter().map(line).collect()
}

fn key(event: &v1::Event, payload: &Payload, style: &Style) -> String {
    match payload {
        Payload::Job(_) | Payload::NodePool(_) => event.key.clone(),
        _ => style.id(&event.key).to_owned(),
    }
}

fn now(payload: &Payload, style: &Style) -> String {
    match payload {
        Payload::Job(job) => format!("version {}, {}", job.version(), job.status()),
        Payload::Allocation(alloc) => format!(
            "{} desired {}, client status {}, on node {}",
            alloc.name,
            alloc.desired_status,
            alloc.client_status,
            style.id(&alloc.node_id)
        ),
        Payload::Evaluation(eval) => {
            format!(
                "job {}, {}, {}",
                eval.job_id, eval.triggered_by, eval.status
            )
        }
        Payload::Deployment(deployment) => {
            format!("job {}, {}", deployment.job_id, deployment.status)
        }
        Payload::Node(node) => format!("{}, {}, {}", node.name, node.status, node.eligibility),
        Payload::NodePool(_) => String::new(),
    }
}
