//! Affinities and spreads: the preferences of a job.

use std::collections::BTreeSet;

use model::job::JobType;
use model::{Affinity, Operator, Spread, SpreadTarget};

use super::constraint;
use super::validation::{Path, Validation};

/// Source: Nomad's default weight of an affinity and of a spread.
const DEFAULT_WEIGHT: i64 = 50;

/// The presence of affinities and spreads, for the rule that system jobs have none.
pub(super) struct Ranks {
    affinities: bool,
    spreads: bool,
}

impl Ranks {
    pub(super) fn of(affinities: &[job_fields::Affinity], spreads: &[job_fields::Spread]) -> Self {
        Self {
            affinities: !affinities.is_empty(),
            spreads: !spreads.is_empty(),
        }
    }

    pub(super) fn refuse_for_system(&self, check: &mut Validation, path: &Path, job_type: JobType) {
        if job_type != JobType::System {
            return;
        }
        let why = "remove it, a system job runs on every node that fits";
        if self.affinities {
            let message = format!("System jobs may not have an affinity block: {why}");
            check.error(path.at("affinity", 0), message);
        }
        if self.spreads {
            let message = format!("System jobs may not have a spread block: {why}");
            check.error(path.at("spread", 0), message);
        }
    }
}

pub(super) fn affinities(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Affinity],
) -> Vec<Affinity> {
    let mut affinities = Vec::new();
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("affinity", position);
        let sides = constraint::Sides {
            left: spec.left.as_deref(),
            operator: spec.operator.as_deref(),
            right: spec.right.as_deref(),
        };
        let test = constraint::test(check, &path, &sides);
        if let Some(problem) = constraint::names_nothing(&test.left) {
            check.warn(format!("{path}: {problem}"));
        }
        let taken = !matches!(
            test.operator,
            Operator::DistinctHosts
                | Operator::DistinctProperty
                | Operator::IsSet
                | Operator::IsNotSet
        );
        if !taken {
            let message = format!(
                "Unknown affinity operator {:?}: affinities compare a value, use a constraint",
                test.operator.as_str(),
            );
            check.error(path.field("operator"), message);
        }
        affinities.push(Affinity {
            left: test.left,
            operator: test.operator,
            right: test.right,
            weight: affinity_weight(check, &path, spec.weight),
        });
    }
    affinities
}

fn affinity_weight(check: &mut Validation, path: &Path, weight: Option<i64>) -> i8 {
    let weight = weight.unwrap_or(DEFAULT_WEIGHT);
    let field = path.field("weight");
    match i8::try_from(weight) {
        Ok(0) => {
            check.error(
                field,
                "Affinity weight cannot be zero: use −100 to 100, or remove it",
            );
            0
        }
        Ok(weight @ -100..=100) => weight,
        _ => {
            let message =
                format!("Affinity weight must be within the range [-100,100]; got {weight}");
            check.error(field, message);
            0
        }
    }
}

pub(super) fn spreads(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Spread],
) -> Vec<Spread> {
    let mut spreads = Vec::new();
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("spread", position);
        let attribute = spec.attribute.clone().unwrap_or_default();
        if attribute.is_empty() {
            let message =
                "Missing spread attribute: write, for instance, attribute = node.datacenter";
            check.error(path.field("attribute"), message);
        }
        let weight = spec.weight.unwrap_or(DEFAULT_WEIGHT);
        let weight = percentage(check, path.field("weight"), "Spread weight", 1, weight);
        if let Some(problem) = constraint::names_nothing(&attribute) {
            check.warn(format!("{path}: {problem}"));
        }
        spreads.push(Spread {
            attribute,
            weight,
            targets: targets(check, &path, spec),
        });
    }
    spreads
}

fn targets(check: &mut Validation, path: &Path, spec: &job_fields::Spread) -> Vec<SpreadTarget> {
    let mut targets = Vec::new();
    let mut seen = BTreeSet::new();
    for (position, target) in spec.targets.iter().enumerate() {
        let path = path.labelled("target", target.value.as_deref(), position);
        let value = target.value.clone().unwrap_or_default();
        if value.is_empty() {
            check.error(
                &path,
                "Missing spread target value: write it as in target \"dc1\" { … }",
            );
        }
        if !seen.insert(value.clone()) {
            check.error(
                &path,
                format!("Spread target value {value:?} already defined: remove it"),
            );
        }
        let percent = target.percent.unwrap_or(0);
        let percent = percentage(
            check,
            path.field("percent"),
            "Spread target percentage",
            0,
            percent,
        );
        targets.push(SpreadTarget { value, percent });
    }
    let sum: u32 = targets.iter().map(|target| u32::from(target.percent)).sum();
    if sum > 100 {
        let message =
            format!("Sum of spread target percentages must not be greater than 100%; got {sum}%");
        check.error(path, message);
    }
    targets
}

fn percentage(check: &mut Validation, field: String, noun: &str, least: u8, value: i64) -> u8 {
    match u8::try_from(value) {
        Ok(value) if (least..=100).contains(&value) => value,
        _ => {
            check.error(
                field,
                format!("{noun} must be within the range [{least},100]; got {value}"),
            );
            0
        }
    }
}
