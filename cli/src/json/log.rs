//! Lines of a log as JSON, with the keys of a process whose `telemetry.log_format` is `json`; and its level.

use proto::v1;
use serde_json::{Map, Value, json};

use crate::output::time::utc_millis;

/// Returns one object in one line. Values are texts.
pub(crate) fn line(line: &v1::LogLine, with_location: bool) -> String {
    let mut object = fields(&line.fields);
    // After the values, so that none of them replaces what every line has.
    object.insert("timestamp".to_owned(), json!(utc_millis(line.time_ns)));
    object.insert("level".to_owned(), json!(line.level));
    object.insert("message".to_owned(), json!(line.message));
    object.insert("target".to_owned(), json!(line.target));
    if with_location && !line.file.is_empty() {
        object.insert("filename".to_owned(), json!(line.file));
        object.insert("line_number".to_owned(), json!(line.line));
    }
    if !line.spans.is_empty() {
        let spans = line.spans.iter().map(|span| {
            let mut object = fields(&span.fields);
            object.insert("name".to_owned(), json!(span.name));
            Value::Object(object)
        });
        object.insert("spans".to_owned(), spans.collect());
    }
    Value::Object(object).to_string()
}

fn fields(fields: &[v1::LogField]) -> Map<String, Value> {
    let fields = fields.iter();
    fields
        .map(|field| (field.name.clone(), json!(field.value)))
        .collect()
}

/// Returns the level; `ExpiresIn` is in nanoseconds, as durations of Nomad are.
pub(crate) fn level(level: &v1::LogLevel) -> Value {
    let expires_in = level.expires_after.as_ref().map(|after| {
        let nanos = i64::from(after.nanos);
        after
            .seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanos)
    });
    json!({
        "Filter": level.filter,
        "Configured": level.configured,
        "ExpiresIn": expires_in,
    })
}
