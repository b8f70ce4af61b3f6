//! One line of OpenMetrics with a value.

use super::kind::{Kind, Labels};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    /// Name and value, the latter unescaped.
    labels: Vec<(String, String)>,
    value: String,
}

impl Sample {
    /// Parses a line of `prometheus-client`, which writes neither timestamps nor, for our metrics,
    /// exemplars. `None`: the line is none of them.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let name_end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at(name_end);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => parse_labels(rest)?,
            None => (Vec::new(), rest),
        };
        Some(Self {
            name: name.to_owned(),
            labels,
            value: value.trim().to_owned(),
        })
    }

    /// Returns `template` with the labels that it names, which the sample then lacks; `None`: the sample
    /// has no such label, or a value that cannot be in a name.
    pub(super) fn take_into(&mut self, template: &str) -> Option<String> {
        let mut name = String::new();
        let mut rest = template;
        while let Some((before, label_and_rest)) = rest.split_once('{') {
            let (label, after) = label_and_rest.split_once('}')?;
            let position = self.labels.iter().position(|(known, _)| known == label)?;
            let (_, value) = self.labels.remove(position);
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !value.chars().all(is_word) {
                return None;
            }
            name.push_str(before);
            name.push_str(&value);
            rest = after;
        }
        name.push_str(rest);
        Some(name)
    }

    /// Returns the line after the family's name, with `labels` first.
    pub(super) fn line(&self, suffix: &str, kind: Kind, labels: &Labels) -> String {
        let added = labels.iter().map(|(name, value)| (*name, value));
        let own = self
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value));
        let labels: Vec<String> = added
            .chain(own)
            .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        let factor = match kind {
            Kind::Scaled(factor) => factor,
            Kind::Milliseconds if suffix == "_sum" => 1_000.0,
            _ => 1.0,
        };
        let value = match self.value.parse::<f64>() {
            Ok(value) if value.is_finite() => (value * factor).to_string(),
            _ => self.value.clone(),
        };
        format!("{suffix}{labels} {value}")
    }
}

/// Parses the labels after the brace that opens them, and returns them with the text after the brace
/// that closes them.
fn parse_labels(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &quoted[end + 1..];
    }
}

fn escape(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
