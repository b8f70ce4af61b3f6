//! Constraints, affinities and spreads, with the short forms that HCL has for their operators.

use serde_json::{Map, Value};

use super::{Kind, Label, Schema, attribute, many, plain};

pub(super) static CONSTRAINT: Schema = Schema {
    name: "constraint",
    label: None,
    attributes: &[
        attribute("attribute", "LTarget", Kind::Text),
        attribute("operator", "Operand", Kind::Text),
        attribute("value", "RTarget", Kind::Text),
        attribute("version", "hcl:version", Kind::Text),
        attribute("semver", "hcl:semver", Kind::Text),
        attribute("regexp", "hcl:regexp", Kind::Text),
        attribute("set_contains", "hcl:set_contains", Kind::Text),
        attribute("distinct_hosts", "hcl:distinct_hosts", Kind::Flag),
        attribute("distinct_property", "hcl:distinct_property", Kind::Text),
    ],
    blocks: &[],
    refused: &[],
    ignored: &[],
    finish: Some(expand_constraint),
};

pub(super) static AFFINITY: Schema = Schema {
    name: "affinity",
    label: None,
    attributes: &[
        attribute("attribute", "LTarget", Kind::Text),
        attribute("operator", "Operand", Kind::Text),
        attribute("value", "RTarget", Kind::Text),
        attribute("weight", "Weight", Kind::Whole),
        attribute("version", "hcl:version", Kind::Text),
        attribute("semver", "hcl:semver", Kind::Text),
        attribute("regexp", "hcl:regexp", Kind::Text),
        attribute("set_contains", "hcl:set_contains", Kind::Text),
        attribute("set_contains_all", "hcl:set_contains_all", Kind::Text),
        attribute("set_contains_any", "hcl:set_contains_any", Kind::Text),
    ],
    blocks: &[],
    refused: &[],
    ignored: &[],
    finish: Some(expand_comparison),
};

pub(super) static SPREAD: Schema = Schema {
    name: "spread",
    label: None,
    attributes: &[
        attribute("attribute", "Attribute", Kind::Text),
        attribute("weight", "Weight", Kind::Whole),
    ],
    blocks: &[many(&TARGET, "SpreadTarget")],
    refused: &[],
    ignored: &[],
    finish: None,
};

static TARGET: Schema = Schema {
    label: Some(Label {
        noun: "value",
        json: "Value",
    }),
    ..plain("target", &[attribute("percent", "Percent", Kind::Whole)])
};

/// The short forms that put a value to an operator: `version = ">= 1.2"`.
const COMPARISONS: [&str; 6] = [
    "version",
    "semver",
    "regexp",
    "set_contains",
    "set_contains_all",
    "set_contains_any",
];

fn expand_constraint(constraint: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(property) = constraint.remove("hcl:distinct_property") {
        only_form(constraint, "distinct_property", &["LTarget", "Operand"])?;
        constraint.insert("LTarget".to_owned(), property);
        constraint.insert("Operand".to_owned(), "distinct_property".into());
        return Ok(());
    }
    if let Some(distinct) = constraint.remove("hcl:distinct_hosts") {
        only_form(constraint, "distinct_hosts", &["Operand", "RTarget"])?;
        constraint.insert("Operand".to_owned(), "distinct_hosts".into());
        constraint.insert("RTarget".to_owned(), distinct.to_string().into());
        return Ok(());
    }
    expand_comparison(constraint)
}

fn expand_comparison(test: &mut Map<String, Value>) -> Result<(), String> {
    for operator in COMPARISONS {
        if let Some(value) = test.remove(&format!("hcl:{operator}")) {
            only_form(test, operator, &["Operand", "RTarget"])?;
            test.insert("Operand".to_owned(), operator.into());
            test.insert("RTarget".to_owned(), value);
            return Ok(());
        }
    }
    Ok(())
}

/// Refuses a short form beside another one, or beside what it stands for.
fn only_form(test: &Map<String, Value>, form: &str, excluded: &[&str]) -> Result<(), String> {
    for (key, name) in [
        ("LTarget", "attribute"),
        ("Operand", "operator"),
        ("RTarget", "value"),
    ] {
        if excluded.contains(&key) && test.contains_key(key) {
            return Err(format!(
                "{form} already says the {name}: remove {name}, or write attribute, operator and \
                 value instead of {form}",
            ));
        }
    }
    if let Some(other) = test.keys().find_map(|key| key.strip_prefix("hcl:")) {
        return Err(format!(
            "{form} and {other} cannot stand in one block: write a block for each",
        ));
    }
    Ok(())
}
