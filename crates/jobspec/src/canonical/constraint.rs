//! Constraints: two sides and an operator that suits both.

use model::{Constraint, Operator};

use super::validation::{Path, Validation};
use super::version;

/// A test as written, of a constraint or an affinity.
pub(super) struct Sides<'a> {
    pub(super) left: Option<&'a str>,
    pub(super) operator: Option<&'a str>,
    pub(super) right: Option<&'a str>,
}

/// The level that a list of constraints belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    JobOrGroup,
    Task,
    /// They ask a device, not its node.
    Device,
}

/// The facts of a node beside `${attr.…}` and `${meta.…}`.
const NODE_FACTS: [&str; 5] = [
    "${node.unique.id}",
    "${node.unique.name}",
    "${node.datacenter}",
    "${node.class}",
    "${node.pool}",
];
/// The prefixes of all other names; only the node knows if it has such a fact.
const PREFIXES: [&str; 4] = ["${attr.", "${meta.", "${unique.", "${device."];

/// Returns why the left side of a test names nothing, if so: the test would never hold.
pub(super) fn names_nothing(left: &str) -> Option<String> {
    let is_known = !left.starts_with('$')
        || NODE_FACTS.contains(&left)
        || left.ends_with('}') && PREFIXES.iter().any(|prefix| left.starts_with(prefix));
    (!is_known).then(|| {
        format!(
            "{left:?} names nothing of a node: use {}, ${{attr.…}} or ${{meta.…}}",
            NODE_FACTS.join(", "),
        )
    })
}

/// Returns the constraints; below the group those are refused that are about several allocations.
pub(super) fn constraints(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Constraint],
    level: Level,
) -> Vec<Constraint> {
    let mut constraints = Vec::new();
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("constraint", position);
        let sides = Sides {
            left: spec.left.as_deref(),
            operator: spec.operator.as_deref(),
            right: spec.right.as_deref(),
        };
        let constraint = test(check, &path, &sides);
        let distinct = matches!(
            constraint.operator,
            Operator::DistinctHosts | Operator::DistinctProperty
        );
        if level != Level::Device
            && let Some(problem) = names_nothing(&constraint.left)
        {
            check.error(path.field("attribute"), problem);
        }
        if level != Level::JobOrGroup && distinct {
            let message = format!(
                "Constraint {} has disallowed Operand at task level: {}: move it to the group",
                position + 1,
                constraint.operator.as_str(),
            );
            check.error(&path, message);
        }
        constraints.push(constraint);
    }
    constraints
}

/// Reads one test and checks that its sides suit its operator.
pub(super) fn test(check: &mut Validation, path: &Path, sides: &Sides<'_>) -> Constraint {
    let operator = operator(check, path, sides.operator);
    let test = Constraint {
        left: sides.left.unwrap_or_default().to_owned(),
        operator: operator.unwrap_or_default(),
        right: sides.right.unwrap_or_default().to_owned(),
    };
    if operator.is_some() {
        match test.operator {
            Operator::DistinctHosts => distinct_hosts(check, path, &test),
            Operator::DistinctProperty => distinct_property(check, path, &test),
            Operator::IsSet | Operator::IsNotSet => presence(check, path, &test),
            _ => comparison(check, path, &test),
        }
    }
    test
}

fn operator(check: &mut Validation, path: &Path, text: Option<&str>) -> Option<Operator> {
    let text = text.unwrap_or("=");
    if let Some(operator) = Operator::parse(text) {
        return Some(operator);
    }
    let message = if text.is_empty() {
        "Missing constraint operand: write, for instance, operator = \"=\"".to_owned()
    } else {
        let known = Operator::ALL.map(Operator::as_str);
        format!(
            "Unknown constraint type {text:?}: the operators are {}.{}",
            suggest::list(known, "and"),
            suggest::hint(text, known),
        )
    };
    check.error(path.field("operator"), message);
    None
}

fn comparison(check: &mut Validation, path: &Path, test: &Constraint) {
    need_left(check, path, test);
    let word = test.operator.as_str();
    if test.right.is_empty() {
        let message = format!("Operator {word:?} requires an RTarget: write value = \"…\"");
        check.error(path.field("value"), message);
        return;
    }
    if !test.left.contains("${") && !test.right.contains("${") && !test.left.is_empty() {
        check.warn(format!(
            "{path}: {:?} {word} {:?} compares two fixed texts: to look at the node write, for \
             instance, attribute = attr.kernel.name",
            test.left, test.right,
        ));
    }
    if test.right.contains("${") {
        return; // Known only once it is compared on a node.
    }
    let problem = match test.operator {
        Operator::Regexp if !check.may_compile(&path.field("value")) => None,
        Operator::Regexp => hcl::regexp::compile(&test.right).err().map(|error| {
            format!(
                "Regular expression failed to compile: {}",
                last_line(&error.to_string())
            )
        }),
        Operator::Version | Operator::Semver => version::problem(test.operator, &test.right)
            .map(|problem| format!("Version constraint is invalid: {problem}")),
        _ => None,
    };
    if let Some(problem) = problem {
        check.error(path.field("value"), problem);
    }
}

/// The regex crate draws a picture above its message; only the message fits into one line.
fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or(text);
    line.strip_prefix("error: ").unwrap_or(line)
}

fn presence(check: &mut Validation, path: &Path, test: &Constraint) {
    need_left(check, path, test);
    if !test.right.is_empty() {
        let message = format!(
            "Operator {:?} does not support an RTarget: remove the value",
            test.operator.as_str(),
        );
        check.error(path.field("value"), message);
    }
}

fn distinct_hosts(check: &mut Validation, path: &Path, test: &Constraint) {
    if !matches!(test.right.as_str(), "" | "true" | "false") {
        let message = format!(
            "distinct_hosts takes true or false; got {:?}: write distinct_hosts = true",
            test.right,
        );
        check.error(path.field("value"), message);
    }
}

fn distinct_property(check: &mut Validation, path: &Path, test: &Constraint) {
    if test.left.is_empty() {
        let message = "distinct_property needs an attribute: write, for instance, \
                       distinct_property = meta.rack";
        check.error(path.field("attribute"), message);
    }
    let count = test.right.parse::<u32>();
    if !test.right.is_empty() && !matches!(count, Ok(1..)) {
        let message = format!(
            "distinct_property takes how many allocations may share a value, 1 to {}; got {:?}",
            u32::MAX,
            test.right,
        );
        check.error(path.field("value"), message);
    }
}

fn need_left(check: &mut Validation, path: &Path, test: &Constraint) {
    if test.left.is_empty() {
        let message = format!(
            "Operator {:?} requires an LTarget: write, for instance, attribute = attr.kernel.name",
            test.operator.as_str(),
        );
        check.error(path.field("attribute"), message);
    }
}
