//! Go templates of `-t`, over the objects of `-json`.
//!
//! The language is Go's text/template with its functions, without those that Nomad adds
//! (`sprig_…`). Objects are maps, so a missing field is `<no value>`, not an error.

use std::collections::HashMap;

use gtmpl_ng::{Context, Template, Value};
use serde::Serialize;

use crate::error::Error;

/// A valid template.
pub(crate) struct GoTemplate<'a> {
    text: &'a str,
    parsed: Template,
}

impl<'a> GoTemplate<'a> {
    /// # Errors
    /// The template is invalid.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Error> {
        let mut parsed = Template::default();
        parsed.parse(text).map_err(|error| wrong(text, &error))?;
        Ok(Self { text, parsed })
    }

    /// Renders the template, which may lack a final newline.
    ///
    /// # Errors
    /// The template cannot be applied to `object`.
    pub(crate) fn fill(&self, object: &impl Serialize) -> Result<String, Error> {
        let object = serde_json::to_value(object).expect("maps here have string keys");
        let filled = self.parsed.render(&Context::from(value(object)));
        let mut filled = filled.map_err(|error| wrong(self.text, &error))?;
        filled.push('\n');
        Ok(filled)
    }
}

fn wrong(text: &str, problem: &dyn std::fmt::Display) -> Error {
    Error::text(format!(
        "Error formatting the data: the template {text:?}: {problem}.\n\
         Write it as in -t '{{{{.JobModifyIndex}}}}'; -json-output shows what there is."
    ))
}

fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(flag) => flag.into(),
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(whole)) => whole.into(),
            (None, None) => number.as_f64().map_or(Value::Nil, Value::from),
        },
        serde_json::Value::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, it)| (key, value(it)));
            Value::Map(fields.collect::<HashMap<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        let object = serde_json::json!({
            "ID": "web", "Index": u64::MAX, "Less": -3, "Share": 0.5, "On": true, "None": null,
            "Groups": [{"Name": "app", "Count": 2}, {"Name": "db", "Count": 1}],
            "Updates": {"b": 1, "a": 2},
        });
        let parsed = GoTemplate::parse(text).map_err(|error| error.to_string())?;
        parsed.fill(&object).map_err(|error| error.to_string())
    }

    #[test]
    fn a_template_is_filled_in_as_go_does() {
        for (text, want) in [
            (
                "{{.ID}} {{.Index}} {{.Less}} {{.Share}} {{.On}}",
                "web 18446744073709551615 -3 0.5 true",
            ),
            (
                "{{range .Groups}}{{.Name}}={{.Count}} {{end}}",
                "app=2 db=1 ",
            ),
            ("{{range $k, $v := .Updates}}{{$k}}{{$v}}{{end}}", "a2b1"),
            (
                "{{if eq .ID \"web\"}}yes{{else}}no{{end}}{{if .None}}!{{end}}",
                "yes",
            ),
            (
                "{{len .Groups}} {{(index .Groups 1).Name}} {{printf \"%q\" .ID}}",
                "2 db \"web\"",
            ),
            ("{{.Nothing}}", "<no value>"),
        ] {
            assert_eq!(filled(text), Ok(format!("{want}\n")), "{text}");
        }
    }

    #[test]
    fn an_invalid_template_is_refused_with_the_problem() {
        for text in [
            "{{",
            "{{.",
            "{{range .Groups}}",
            "{{sprig_upper .ID}}",
            "{{index .Groups 9}}",
        ] {
            let error = filled(text).unwrap_err();
            assert!(error.contains(&format!("{text:?}: ")), "{error}");
            assert!(error.contains("-t '{{.JobModifyIndex}}'"), "{error}");
        }
    }
}
