//! Records and levels as messages.

use proto::v1;
use service_kit::logs::level::Current;
use service_kit::logs::record::{Fields, Record};

pub(crate) fn line(record: &Record) -> v1::LogLine {
    let span = |name: &str, values: &Fields| v1::LogSpan {
        name: name.to_owned(),
        fields: fields(values),
    };
    let spans = record.spans.iter();
    v1::LogLine {
        time_ns: record.time_ns,
        level: record.level.as_str().to_owned(),
        target: record.target.to_owned(),
        message: record.message.clone(),
        fields: fields(&record.fields),
        spans: spans.map(|it| span(it.name, &it.fields)).collect(),
        file: record.file.unwrap_or_default().to_owned(),
        line: record.line.unwrap_or_default(),
    }
}

fn fields(fields: &Fields) -> Vec<v1::LogField> {
    let field = |(name, value): &(&str, String)| v1::LogField {
        name: (*name).to_owned(),
        value: value.clone(),
    };
    fields.iter().map(field).collect()
}

pub(crate) fn level(level: Current) -> v1::LogLevel {
    v1::LogLevel {
        filter: level.filter,
        configured: level.configured,
        expires_after: level.expires_after.map(proto::duration_to_wire),
    }
}
