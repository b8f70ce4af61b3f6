//! A job file from the top: variables, locals, then the one job.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::collector::Collector;
use crate::document::{Block, Content, Expr, Items};
use crate::expand::Expander;
use crate::inputs::Inputs;
use crate::language::eval::Host;
use crate::language::references::{Kind, Reference};
use crate::language::{Scope, functions};
use crate::schema::JOB;
use crate::source::Fault;
use crate::suggest::{hint, list};
use crate::variables;
use crate::variables::locals::Locals;

/// The blocks that a job file has.
pub(super) const BLOCKS: [&str; 4] = ["job", "variable", "variables", "locals"];

/// How many declared names a message lists.
const MAX_NAMES_LISTED: usize = 12;

/// Returns the file's job with the API's keys; what is wrong goes to `out`.
pub(super) fn job(
    content: Content<'_>,
    inputs: &Inputs,
    out: &mut Collector,
) -> Map<String, Value> {
    let labels_of = |kind: &str| match kind {
        "job" | "variable" => Some(1),
        "variables" | "locals" => Some(0),
        _ => None,
    };
    let mut items = match content.items(&labels_of) {
        Ok(items) => items,
        Err(fault) => {
            out.fault(fault);
            return Map::new();
        }
    };
    report_strangers(&items, out);
    let blocks = std::mem::take(&mut items.blocks);
    let (jobs, blocks): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| block.kind == "job");
    let (local_blocks, mut variable_blocks): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| block.kind == "locals");
    variable_blocks.retain(|block| BLOCKS.contains(&block.kind));

    let host = Host {
        read_file: inputs.read_file.clone(),
        ..Host::default()
    };
    let variable_values = variables::values(&variable_blocks, inputs, &host, out);
    let locals = Locals::read(&local_blocks, out);
    let names = Names {
        variables: variable_values.keys().map(String::as_str).collect(),
        locals: locals.names().collect(),
    };
    for expr in locals.expressions() {
        names.check(&expr, out);
    }
    let job = only_job(&jobs, out);
    if let Some(job) = job {
        names.check_block(job.content, out);
    }
    // A wrong name would be reported again by every expression that uses it.
    if out.has_errors() {
        return Map::new();
    }
    let Some(job) = job else { return Map::new() };
    let var = Value::Object(variable_values);
    let local = Value::Object(locals.values(&var, &host, out));
    if out.has_errors() {
        return Map::new();
    }
    let text = out.source.text.clone();
    let expander = Expander {
        text: &text,
        host: &host,
    };
    let names = [("var", &var), ("local", &local)];
    expander.block(job, &JOB, "", &Scope::new(&names), out)
}

/// Reports what may not stand at the top of a file, and blocks of other languages.
fn report_strangers(items: &Items<'_>, out: &mut Collector) {
    for attribute in &items.attributes {
        let detail = format!(
            "An argument named {:?} is not expected here.{} Expected here: blocks of type {}.",
            attribute.name,
            hint(attribute.name, BLOCKS),
            list(BLOCKS, "and"),
        );
        out.fault(Fault::new(
            attribute.name_span.clone(),
            "Unsupported argument",
            detail,
        ));
    }
    for block in items
        .blocks
        .iter()
        .filter(|block| !BLOCKS.contains(&block.kind))
    {
        let home = match block.kind {
            "group" | "task" | "dynamic" => " It belongs in the job block.".to_owned(),
            other => hint(other, BLOCKS),
        };
        let detail = format!(
            "Blocks of type {:?} are not expected here.{home} Expected here: {}.",
            block.kind,
            list(BLOCKS, "and"),
        );
        out.fault(Fault::new(
            block.header.clone(),
            "Unsupported block type",
            detail,
        ));
    }
}

fn only_job<'b, 'a>(jobs: &'b [Block<'a>], out: &mut Collector) -> Option<&'b Block<'a>> {
    let Some(first) = jobs.first() else {
        let detail = "A job file holds one job block: write job \"name\" { … }";
        out.fault(Fault::new(0..0, "Missing job block", detail));
        return None;
    };
    for other in &jobs[1..] {
        let (line, column) = out.source.position(first.header.start);
        let (_, end) = out.source.position(first.header.end);
        let detail = format!(
            "Only one block of type \"job\" is allowed. Previous definition was at \
             {}:{line},{column}-{end}: write a file per job",
            out.source.file,
        );
        out.fault(Fault::new(
            other.header.clone(),
            "Duplicate job block",
            detail,
        ));
    }
    Some(first)
}

/// The names that expressions may use.
struct Names<'a> {
    variables: BTreeSet<&'a str>,
    locals: BTreeSet<&'a str>,
}

impl Names<'_> {
    fn check_block(&self, content: Content<'_>, out: &mut Collector) {
        // Everything within counts, so JSON needs no schema: blocks are values, too.
        let Ok(items) = content.items(&|_| None) else {
            return;
        };
        for attribute in &items.attributes {
            self.check(&attribute.expr, out);
        }
        for block in &items.blocks {
            self.check_block(block.content, out);
        }
    }

    fn check(&self, expr: &Expr<'_>, out: &mut Collector) {
        for reference in expr.references() {
            if let Some((summary, detail)) = self.problem(&reference) {
                out.fault(Fault::new(reference.span, summary, detail));
            }
        }
    }

    fn problem(&self, reference: &Reference) -> Option<(&'static str, String)> {
        let name = reference.name.as_str();
        match reference.kind {
            Kind::Function => functions::problem(name),
            Kind::Variable if !self.variables.contains(name) => {
                let detail = format!(
                    "There is no variable named {name:?}.{} Declare it with variable {name:?} {{ }}",
                    declared(name, &self.variables),
                );
                Some(("Unknown variable", detail))
            }
            Kind::Local if !self.locals.contains(name) => {
                let detail = format!(
                    "There is no local named {name:?}.{} Define it with locals {{ {name} = … }}",
                    declared(name, &self.locals),
                );
                Some(("Unknown local", detail))
            }
            Kind::Shadowing => {
                let detail = format!(
                    "A loop's name may not be {name:?}, it would hide the values of that name: rename it"
                );
                Some(("Reserved name", detail))
            }
            Kind::Variable | Kind::Local => None,
        }
    }
}

fn declared(wrong: &str, names: &BTreeSet<&str>) -> String {
    let hint = hint(wrong, names.iter().copied());
    if names.is_empty() || names.len() > MAX_NAMES_LISTED {
        return hint;
    }
    format!(
        "{hint} Declared here: {}.",
        list(names.iter().copied(), "and")
    )
}
