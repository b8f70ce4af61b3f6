//! UUIDs: `uuidv4 uuidv5`.

use sha1::{Digest, Sha1};
use uuid::{Builder, Uuid};

use super::call::Call;
use super::function::Function;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "uuidv4",
        parameters: "",
        call: |_| {
            let id = Builder::from_random_bytes(rand::random()).into_uuid();
            Ok(Value::String(id.to_string()))
        },
    },
    Function {
        name: "uuidv5",
        parameters: "namespace, name",
        call: uuidv5,
    },
];

/// Namespaces with a name of their own. Source: RFC 9562, section 6.6.
const NAMESPACES: [(&str, Uuid); 4] = [
    ("dns", Uuid::NAMESPACE_DNS),
    ("url", Uuid::NAMESPACE_URL),
    ("oid", Uuid::NAMESPACE_OID),
    ("x500", Uuid::NAMESPACE_X500),
];

fn uuidv5(call: &Call<'_>) -> Result<Value, String> {
    let (space, name) = (call.text(0)?, call.text(1)?);
    let known = NAMESPACES.iter().find(|(known, _)| *known == space);
    let space = match known {
        Some((_, id)) => *id,
        None => Uuid::try_parse(&space).map_err(|_| {
            format!("{space:?} is not a valid namespace: want dns, url, oid, x500 or a UUID")
        })?,
    };
    let hash = Sha1::new()
        .chain_update(space.as_bytes())
        .chain_update(name.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Ok(Value::String(
        Builder::from_sha1_bytes(bytes).into_uuid().to_string(),
    ))
}
