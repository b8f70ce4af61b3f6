//! Events: a line for each index, as the HTTP API's event stream has it.

use proto::v1;
use proto::v1::event::Payload;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{alloc, deployment, eval, node, node_pool};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Batch<'a> {
    index: u64,
    events: Vec<Event<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    topic: &'a str,
    r#type: &'a str,
    key: &'a str,
    namespace: &'a str,
    filter_keys: &'a [String],
    index: u64,
    payload: Value,
}

/// Returns one line of JSON.
pub fn line(batch: &v1::EventBatch) -> String {
    let events = batch.events.iter().map(|event| Event {
        topic: &event.topic,
        r#type: &event.r#type,
        key: &event.key,
        namespace: &event.namespace,
        filter_keys: &event.filter_keys,
        index: event.index,
        payload: event.payload.as_ref().map_or_else(|| json!({}), payload),
    });
    let batch = Batch {
        index: batch.index,
        events: events.collect(),
    };
    let mut line = serde_json::to_string(&batch).expect("maps here have string keys");
    line.push('\n');
    line
}

fn payload(payload: &Payload) -> Value {
    match payload {
        Payload::Job(job) => match serde_json::to_value(job) {
            Ok(job) => json!({ "Job": job }),
            // Stored jobs are valid; a newer gateway may have fields that this command does not know.
            Err(error) => json!({ "Job": { "ID": job.id(), "Error": error.to_string() } }),
        },
        Payload::Allocation(alloc) => json!({ "Allocation": alloc::Allocation::from(alloc) }),
        Payload::Evaluation(eval) => json!({ "Evaluation": eval::Evaluation::from(eval) }),
        Payload::Deployment(deployment) => {
            json!({ "Deployment": deployment::Deployment::from(deployment) })
        }
        Payload::Node(node) => json!({ "Node": node::Node::from(node) }),
        Payload::NodePool(pool) => json!({ "NodePool": node_pool::NodePool::from(pool) }),
    }
}
