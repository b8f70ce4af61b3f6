//! What a piece of a plan looks like while it is put aside: the keys and values that it is to write,
//! as they will stand in etcd, so that it can be read there, too.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use state::{PlanPiece, StagedOp};

use crate::codec::{self, Value};
use crate::keys::Keyspace;

#[derive(Serialize, Deserialize)]
struct Op {
    /// Below no prefix: it stands in a value, and is the same wherever that is.
    key: String,
    /// What the write is built on; 0: the key does not exist.
    #[serde(rename = "rev")]
    modify_index: u64,
    /// Missing: a compare alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
}

pub(crate) fn encode(piece: &PlanPiece) -> serde_json::Result<Vec<u8>> {
    let keyspace = bare();
    let ops = piece.ops.iter().map(|op| {
        let value = op.entity.as_ref().map(|entity| {
            let text = Value::from(entity).encode()?;
            serde_json::from_slice(&text)
        });
        Ok(Op {
            key: keyspace.encode(&op.key),
            modify_index: op.modify_index,
            value: value.transpose()?,
        })
    });
    let ops: Vec<Op> = ops.collect::<serde_json::Result<_>>()?;
    serde_json::to_vec(&ops)
}

/// # Errors
/// A key or value is none of ours.
pub(crate) fn decode(text: &[u8]) -> serde_json::Result<PlanPiece> {
    let keyspace = bare();
    let ops: Vec<Op> = serde_json::from_slice(text)?;
    let ops = ops.into_iter().map(|op| {
        let key = keyspace.decode(op.key.as_bytes());
        let key = key.map_err(<serde_json::Error as serde::de::Error>::custom)?;
        let entity = op.value.map(|value| {
            let text = serde_json::to_vec(&value)?;
            codec::decode(&key, &text)
        });
        Ok(StagedOp {
            entity: entity.transpose()?,
            modify_index: op.modify_index,
            key,
        })
    });
    let ops = ops.collect::<serde_json::Result<_>>()?;
    Ok(PlanPiece { ops })
}

fn bare() -> Keyspace {
    Keyspace::new("/")
}
