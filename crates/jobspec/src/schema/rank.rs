//! Constraints, affinities and spreads, with HCL's short forms of their operators.

use hcl::schema::{Attribute, Kind, attribute};
use serde_json::{Map, Value};

use super::extra::{Extra, default};

/// A short form that gives a value to an operator.
const fn short(name: &'static str, json: &'static str) -> Attribute {
    attribute(name, json, Kind::Text)
}

pub(super) const CONSTRAINT: Extra = Extra {
    attributes: &[
        short("version", "hcl:version"),
        short("semver", "hcl:semver"),
        short("regexp", "hcl:regexp"),
        short("set_contains", "hcl:set_contains"),
        attribute("distinct_hosts", "hcl:distinct_hosts", Kind::Flag),
        short("distinct_property", "hcl:distinct_property"),
    ],
    finish: Some(expand_constraint),
    ..Extra::of("Constraint")
};

pub(super) const AFFINITY: Extra = Extra {
    attributes: &[
        short("version", "hcl:version"),
        short("semver", "hcl:semver"),
        short("regexp", "hcl:regexp"),
        short("set_contains", "hcl:set_contains"),
        short("set_contains_all", "hcl:set_contains_all"),
        short("set_contains_any", "hcl:set_contains_any"),
    ],
    finish: Some(expand_comparison),
    ..Extra::of("Affinity")
};

pub(super) const SPREAD_TARGET: Extra = Extra::labelled("SpreadTarget", "value", "Value");

/// The short forms of operators with a value, as in `version = ">= 1.2"`.
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
    default(test, "Operand", "=");
    Ok(())
}

/// Refuses a short form beside another one, or beside the attributes that it sets.
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
            "{form} and {other} cannot be in one block: write a block for each",
        ));
    }
    Ok(())
}
