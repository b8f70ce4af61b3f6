//! Keys and values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};

/// A key with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KvPair {
    /// The whole path.
    pub key: String,
    /// UTF-8; other bytes are replaced.
    #[serde(deserialize_with = "from_base64")]
    pub value: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub lock_index: u64,
    pub flags: u64,
    pub session: String,
}

fn from_base64<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    // Null: the value is empty.
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_base64_or_null() {
        let of = |value: &str| {
            let text = format!(r#"{{"Key":"a/b","Value":{value},"ModifyIndex":7}}"#);
            serde_json::from_str::<KvPair>(&text).map(|pair| pair.value)
        };
        assert_eq!(of(r#""YQ==""#).unwrap(), "a");
        assert_eq!(of("null").unwrap(), "");
        assert!(of(r#""!""#).is_err());
    }
}
