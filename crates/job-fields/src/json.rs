//! JSON of fields whose Rust type serde would write otherwise.

/// Durations as integer nanoseconds.
pub(crate) mod duration {
    use prost_types::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let nanoseconds = value.as_ref().map(crate::nanoseconds).transpose();
        nanoseconds
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let nanoseconds = Option::<i64>::deserialize(deserializer)?;
        Ok(nanoseconds.map(crate::duration))
    }
}

/// Free-form objects.
pub(crate) mod object {
    use prost_types::Struct;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Map, Value};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Struct>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let object = value.as_ref().map(crate::read_object).transpose();
        object
            .map_err(|errors| serde::ser::Error::custom(errors.to_string()))?
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Struct>, D::Error> {
        let object = Option::<Map<String, Value>>::deserialize(deserializer)?;
        let object = object.map(|object| crate::object(&object)).transpose();
        object.map_err(serde::de::Error::custom)
    }
}

/// Bytes as base64.
pub(crate) mod base64 {
    use model::Payload;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = value.clone().map(|bytes| Payload(bytes).to_base64());
        text.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else {
            return Ok(None);
        };
        match Payload::from_base64(&text) {
            Some(payload) => Ok(Some(payload.0)),
            None => Err(serde::de::Error::custom("not base64: leave it out")),
        }
    }
}

/// Lists, in which empty and absent are one: `null`.
pub(crate) mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let some = (!value.is_empty()).then_some(value);
        some.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }
}

/// Maps, in which empty and absent are one: `null`.
pub(crate) mod map {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &BTreeMap<String, T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let some = (!value.is_empty()).then_some(value);
        some.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, T>, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }
}
