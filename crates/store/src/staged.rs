//! Stored form of a staged plan piece: a JSON list of keys and values as they will stand in etcd, so
//! that an operator can read it there.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use state::{Entity, Key, PlanPiece, Write};

use crate::keys::Keyspace;

/// One write as stored.
#[derive(Serialize, Deserialize)]
struct StoredWrite {
    /// Without the store's prefix.
    key: String,
    /// The expected mod revision; 0: the key must not exist.
    #[serde(rename = "rev")]
    modify_index: u64,
    /// The written object; missing for a compare alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
}

/// Returns the stored text of a piece, whose objects `encode_entity` encodes.
///
/// # Errors
/// An object cannot be encoded, or the piece has a deletion.
pub(crate) fn encode(
    piece: &PlanPiece,
    encode_entity: impl Fn(&Entity) -> serde_json::Result<Vec<u8>>,
) -> serde_json::Result<Vec<u8>> {
    let keyspace = bare();
    let ops = piece.ops.iter().map(|op| {
        if matches!(op, Write::Delete { .. }) {
            let text = "a plan piece cannot hold a deletion";
            return Err(<serde_json::Error as serde::ser::Error>::custom(text));
        }
        let value = op.entity().map(|entity| {
            let text = encode_entity(entity)?;
            serde_json::from_slice(&text)
        });
        Ok(StoredWrite {
            key: keyspace.encode(op.key()),
            modify_index: op.expected_index(),
            value: value.transpose()?,
        })
    });
    let ops: Vec<StoredWrite> = ops.collect::<serde_json::Result<_>>()?;
    serde_json::to_vec(&ops)
}

/// Returns the piece stored as `text`, whose objects `decode_entity` decodes.
///
/// # Errors
/// `text` is no list of writes, or a key or a value is malformed.
pub(crate) fn decode(
    text: &[u8],
    decode_entity: impl Fn(&Key, &[u8]) -> serde_json::Result<Entity>,
) -> serde_json::Result<PlanPiece> {
    let keyspace = bare();
    let ops: Vec<StoredWrite> = serde_json::from_slice(text)?;
    let ops = ops.into_iter().map(|op| {
        let key = keyspace.decode(op.key.as_bytes());
        let key = key.map_err(<serde_json::Error as serde::de::Error>::custom)?;
        let entity = op.value.map(|value| {
            let text = serde_json::to_vec(&value)?;
            decode_entity(&key, &text)
        });
        Ok(match entity.transpose()? {
            Some(entity) => Write::put(key, op.modify_index, entity),
            None => Write::require(key, op.modify_index),
        })
    });
    let ops = ops.collect::<serde_json::Result<_>>()?;
    Ok(PlanPiece { ops })
}

fn bare() -> Keyspace {
    Keyspace::new("/")
}

#[cfg(test)]
mod tests {
    use model::JobKey;

    use super::*;
    use crate::codec::{self, Value};

    fn encode_entity(entity: &Entity) -> serde_json::Result<Vec<u8>> {
        Value::from(entity).encode()
    }

    #[test]
    fn the_stored_text_of_each_kind_of_write() {
        let text = concat!(
            r#"[{"key":"/job/default/web","rev":12},"#,
            r#"{"key":"/job-stable/default/web/3","rev":0},"#,
            r#"{"key":"/job-stable/default/web/4","rev":0,"value":{}},"#,
            r#"{"key":"/job-stable/default/web/5","rev":7,"value":{}}]"#,
        );
        let piece = decode(text.as_bytes(), codec::decode).unwrap();
        let job = JobKey::new("default", "web");
        let marker = |version| Key::JobStable(job.clone(), version);
        let expected = [
            Write::RequireUnchanged {
                key: Key::Job(job.clone()),
                modify_index: 12,
            },
            Write::RequireAbsent { key: marker(3) },
            Write::Create {
                key: marker(4),
                entity: Entity::JobStable,
            },
            Write::Update {
                key: marker(5),
                modify_index: 7,
                entity: Entity::JobStable,
            },
        ];
        assert_eq!(piece.ops, expected);
        let encoded = encode(&piece, encode_entity).unwrap();
        assert_eq!(String::from_utf8(encoded).unwrap(), text);
    }

    #[test]
    fn a_deletion_is_refused() {
        let piece = PlanPiece {
            ops: vec![Write::Delete {
                key: Key::SchedulerConfig,
                modify_index: 3,
            }],
        };
        assert!(encode(&piece, encode_entity).is_err());
    }
}
