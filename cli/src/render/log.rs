//! Lines of a log, as the process itself prints them.

use std::fmt::Write as _;

use proto::v1;

use crate::output::colour::Colour;
use crate::output::time::utc_millis;

/// Returns a line: time, level, spans, module, message, values.
pub(crate) fn line(line: &v1::LogLine, with_location: bool, colour: Colour) -> String {
    let level = format!("{:>5}", line.level);
    let level = match line.level.as_str() {
        "ERROR" => colour.red(&level),
        "WARN" => colour.yellow(&level),
        "INFO" => colour.green(&level),
        _ => colour.blue(&level),
    };
    let mut text = format!("{} {level} ", utc_millis(line.time_ns));
    for span in &line.spans {
        text.push_str(&span.name);
        if !span.fields.is_empty() {
            let _ = write!(text, "{{{}}}", fields(&span.fields));
        }
        text.push(':');
    }
    if !line.spans.is_empty() {
        text.push(' ');
    }
    let _ = write!(text, "{}:", line.target);
    if with_location && !line.file.is_empty() {
        let _ = write!(text, " {}:{}:", line.file, line.line);
    }
    // A message may have several lines, as a panic has.
    for part in [line.message.clone(), fields(&line.fields)] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(&part);
        }
    }
    text
}

fn fields(fields: &[v1::LogField]) -> String {
    let fields = fields.iter().map(|field| {
        let value = &field.value;
        let is_word = !value.is_empty() && !value.contains([' ', '"', '\n', '=']);
        if is_word {
            format!("{}={value}", field.name)
        } else {
            format!("{}={value:?}", field.name)
        }
    });
    fields.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_spans_and_values() {
        let field = |name: &str, value: &str| v1::LogField {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let shown = v1::LogLine {
            time_ns: 1_763_849_885_123_456_789,
            level: "INFO".to_owned(),
            target: "store::election".to_owned(),
            message: "elected".to_owned(),
            fields: vec![field("term", "12"), field("error", "no lease: \"gone\"")],
            spans: vec![v1::LogSpan {
                name: "rpc".to_owned(),
                fields: vec![field("service", "eval-broker")],
            }],
            file: "src/campaign.rs".to_owned(),
            line: 7,
        };
        let expected = "2025-11-22T22:18:05.123Z  INFO rpc{service=eval-broker}: store::election: \
                        elected term=12 error=\"no lease: \\\"gone\\\"\"";
        assert_eq!(line(&shown, false, Colour::Off), expected);
        let located = line(&shown, true, Colour::Off);
        assert!(
            located.contains("election: src/campaign.rs:7: elected"),
            "{located}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&crate::json::log::line(&shown, true)).unwrap();
        assert_eq!(json["term"], "12");
        assert_eq!(json["line_number"], 7);
        assert_eq!(json["spans"][0]["service"], "eval-broker");
    }
}
