//! The expressions of dashboards and alerts.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::yaml;

/// An expression that has to return a series in a stack at work.
#[derive(Debug)]
pub struct Expression {
    /// The panel or alert, for messages.
    pub place: String,
    pub text: String,
    /// The labels that the panel's legend shows.
    pub labels: Vec<String>,
}

/// Returns the expressions of every panel of the dashboards in `folder`.
///
/// # Errors
/// A file is no dashboard.
pub fn of_dashboards(folder: &Path) -> Result<Vec<Expression>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let dashboard: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        for panel in list(&dashboard, "/panels")? {
            for target in list(panel, "/targets")? {
                found.push(Expression {
                    place: format!("panel {} of {}", panel["title"], path.display()),
                    text: text(target, "/expr")?.to_owned(),
                    labels: labels(text(target, "/legendFormat")?),
                });
            }
        }
    }
    Ok(found)
}

/// An alert's expression in a form that returns series while the alert does not fire.
pub fn of_alert(name: &str, condition: &str) -> Expression {
    Expression {
        place: format!("alert {name}"),
        text: without_filters(condition),
        labels: Vec::new(),
    }
}

/// Returns the groups of rules in a golden render of the chart, as Prometheus reads them from a file.
///
/// # Errors
/// There is no PrometheusRule.
pub fn rules_of_the_chart(golden: &str) -> Result<Value> {
    // Each template's part begins with its name. The first one is the notes for the user, which are no YAML.
    let mut parts = golden.split("# kafila/templates/");
    let rules = parts.find_map(|part| part.strip_prefix("prometheusrule.yaml\n"));
    let rules = yaml::document(rules.context("no PrometheusRule")?)?;
    Ok(rules["spec"].clone())
}

/// Returns the expressions of [`rules_of_the_chart`], without the namespace, which only Kubernetes has.
///
/// # Errors
/// A rule is no alert.
pub fn of_chart(rules: &Value) -> Result<Vec<Expression>> {
    let mut found = Vec::new();
    for group in list(rules, "/groups")? {
        for rule in list(group, "/rules")? {
            let condition = without_namespace(text(rule, "/expr")?);
            found.push(of_alert(text(rule, "/alert")?, &condition?));
        }
    }
    Ok(found)
}

/// A comparison with `bool` returns 0 or 1 and leaves no series out.
fn without_filters(condition: &str) -> String {
    let words = condition.split_whitespace().map(|word| match word {
        "<" | ">" | "==" | "!=" | "<=" | ">=" => format!("{word} bool"),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn without_namespace(condition: &str) -> Result<String> {
    let mut parts = condition.split("{namespace=\"");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, after) = part.split_once('"').context("no end of the namespace")?;
        let alone = after.strip_prefix('}').map(str::to_owned);
        let others = || after.strip_prefix(',').map(|others| format!("{{{others}"));
        rest.push_str(&alone.or_else(others).context("no end of the matchers")?);
    }
    ensure!(rest != condition, "{condition} is not of one namespace");
    Ok(rest)
}

/// Returns the labels in `{{…}}` of a legend.
fn labels(legend: &str) -> Vec<String> {
    let parts = legend.split("{{").skip(1);
    let names = parts.filter_map(|part| part.split_once("}}"));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

fn list<'a>(value: &'a Value, pointer: &str) -> Result<&'a Vec<Value>> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.with_context(|| format!("no list {pointer} in {value}"))
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.with_context(|| format!("no text {pointer} in {value}"))
}

#[cfg(test)]
mod tests {
    use super::super::command::repository;
    use super::*;

    #[test]
    fn an_alert_returns_its_series_whether_it_fires_or_not() {
        let alert = of_alert("A", "(sum(a) or vector(0)) < 1\nor b{c=\"d\"} >= 2");
        let expected = "(sum(a) or vector(0)) < bool 1 or b{c=\"d\"} >= bool 2";
        assert_eq!(alert.text, expected);
    }

    #[test]
    fn the_chart_matches_its_namespace_everywhere() {
        let text = r#"max(a{namespace="x"}) / min(b{namespace="x"})"#;
        assert_eq!(without_namespace(text).unwrap(), "max(a) / min(b)");
        assert!(without_namespace("max(a)").is_err());
        let text = r#"{namespace="x",__name__=~"a.*"} > a{namespace="x"}"#;
        let expected = r#"{__name__=~"a.*"} > a"#;
        assert_eq!(without_namespace(text).unwrap(), expected);
        assert!(without_namespace(r#"a{namespace="x"#).is_err());

        let golden = repository().join("helm/tests/golden/everything.yaml");
        let rules = rules_of_the_chart(&fs::read_to_string(golden).unwrap()).unwrap();
        let chart = of_chart(&rules).unwrap();
        assert!(chart.len() > 10, "{chart:?}");
    }

    #[test]
    fn a_legend_names_its_labels() {
        assert_eq!(labels("{{service}} of {{ job }}"), ["service", "job"]);
        assert!(labels("all").is_empty());
    }
}
