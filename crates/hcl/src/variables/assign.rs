//! Values of variables by precedence.
//!
//! Lowest first: the default, the environment, the variable files, single variables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::declaration::Declaration;
use super::locals;
use crate::collector::Collector;
use crate::document::json::{self, Node};
use crate::document::{Content, Expr};
use crate::inputs::Inputs;
use crate::language::eval::Host;
use crate::language::types::{self, Type};
use crate::language::{Scope, syntax};
use crate::report::ParseError;
use crate::source::{Fault, Source};
use suggest::hint;

/// The later one wins.
const ENVIRONMENT_PREFIXES: [&str; 2] = ["NOMAD_VAR_", "KAFILA_VAR_"];

pub(super) fn values(
    declarations: &[Declaration<'_>],
    inputs: &Inputs,
    host: &Host,
    out: &mut Collector,
) -> Map<String, Value> {
    let positions = declarations.iter().enumerate();
    let mut assignment = Assignment {
        declarations,
        positions: positions
            .map(|(at, declaration)| (declaration.name.as_str(), at))
            .collect(),
        inputs,
        host,
        values: Map::new(),
    };
    for declaration in declarations {
        if let Some(default) = &declaration.default {
            assignment
                .values
                .insert(declaration.name.clone(), default.clone());
        }
    }
    assignment.environment(out);
    for (file, text) in &inputs.variable_files {
        assignment.file(file, text, out);
    }
    for (name, text) in &inputs.variables {
        assignment.given(name, text, out);
    }
    for declaration in declarations {
        if !assignment.values.contains_key(&declaration.name) {
            out.fault(unset(&declaration.name, declaration.range.clone()));
            // Avoids further errors in expressions that use it.
            assignment
                .values
                .insert(declaration.name.clone(), Value::Null);
        }
    }
    assignment.values
}

fn unset(name: &str, range: Range<usize>) -> Fault {
    let detail = format!(
        "A used variable must be set or have a default value: give it with -var {name}=…, in a \
         -var-file, or as NOMAD_VAR_{name}; or add default = … here",
    );
    Fault::new(range, format!("Unset variable {name:?}"), detail)
}

struct Assignment<'a> {
    declarations: &'a [Declaration<'a>],
    positions: BTreeMap<&'a str, usize>,
    inputs: &'a Inputs,
    host: &'a Host,
    values: Map<String, Value>,
}

impl Assignment<'_> {
    fn declaration(&self, name: &str) -> Option<&Declaration<'_>> {
        self.positions
            .get(name)
            .map(|position| &self.declarations[*position])
    }

    fn environment(&mut self, out: &mut Collector) {
        for prefix in ENVIRONMENT_PREFIXES {
            for declaration in self.declarations {
                let key = format!("{prefix}{}", declaration.name);
                let Some(text) = self.inputs.environment.get(&key) else {
                    continue;
                };
                let label = format!("environment variable {key}");
                self.text(&declaration.name, &label, text, out);
            }
        }
    }

    /// Assigns a variable of `-var name=text`.
    fn given(&mut self, name: &str, text: &str, out: &mut Collector) {
        if self.declaration(name).is_some() {
            self.text(name, &format!("value of variable {name:?}"), text, out);
            return;
        }
        let names = self
            .declarations
            .iter()
            .map(|declaration| declaration.name.as_str());
        let detail = format!(
            "A {name:?} variable was passed in the command line but was not found in known \
             variables.{} To declare variable {name:?}, place a block variable {name:?} {{ }} in \
             the job file",
            hint(name, names),
        );
        self.undeclared(
            "Undefined -var variable",
            detail,
            &command_line(name, text),
            out,
        );
    }

    /// Assigns a text, either plain or as an expression, depending on the type.
    fn text(&mut self, name: &str, label: &str, text: &str, out: &mut Collector) {
        let Some(wanted) = self.declaration(name).map(Declaration::value_type) else {
            return;
        };
        let source = Source::new(label, text);
        let value = if wanted.is_plain_text() {
            Ok(Value::String(text.to_owned()))
        } else {
            self.expression(text)
        };
        let value = value.and_then(|value| {
            typed(value, &wanted).map_err(|detail| {
                let summary = "Invalid argument value for -var variable";
                Fault::new(
                    0..text.len(),
                    summary,
                    format!("variable {name:?}: {detail}"),
                )
            })
        });
        match value {
            Ok(value) => drop(self.values.insert(name.to_owned(), value)),
            Err(fault) => {
                self.values.entry(name.to_owned()).or_insert(Value::Null);
                out.error(source.error(fault));
            }
        }
    }

    fn expression(&self, text: &str) -> Result<Value, Fault> {
        let expression = syntax::expression(text.trim())?;
        let expr = Expr::Hcl(&expression);
        no_references(&expr)?;
        let value = expr.eval(text.trim(), self.host, &Scope::default())?;
        locals::check_depth(&value, 0..text.len())?;
        Ok(value)
    }

    /// Reads a file of values: HCL attributes, or a JSON object.
    fn file(&mut self, file: &str, text: &str, out: &mut Collector) {
        let source = Arc::new(Source::new(file, text));
        let result = if text.trim_start().starts_with('{') {
            self.json_file(&source, out)
        } else {
            self.hcl_file(&source, out)
        };
        if let Err(fault) = result {
            out.error(source.error(fault));
        }
    }

    fn hcl_file(&mut self, source: &Source, out: &mut Collector) -> Result<(), Fault> {
        let body = syntax::body(&source.text)?;
        let items = Content::Hcl(&body).items(&|_| None)?;
        if let Some(block) = items.blocks.first() {
            let detail = "A variable file holds values only: write name = value";
            return Err(Fault::new(
                block.header.clone(),
                "Unsupported block type",
                detail,
            ));
        }
        for attribute in items.attributes {
            no_references(&attribute.expr)?;
            let value = attribute
                .expr
                .eval(&source.text, self.host, &Scope::default())?;
            locals::check_depth(&value, attribute.expr.range())?;
            let places = (attribute.name_range, attribute.expr.range());
            self.file_value(source, attribute.name, value, places, out);
        }
        Ok(())
    }

    fn json_file(&mut self, source: &Source, out: &mut Collector) -> Result<(), Fault> {
        let json = json::read(&source.text)?;
        let Node::Object(entries) = &json.node else {
            return Ok(());
        };
        for (key, value) in entries {
            let places = (key.range.clone(), value.range.clone());
            self.file_value(source, &key.name, json::plain(value), places, out);
        }
        Ok(())
    }

    fn file_value(
        &mut self,
        source: &Source,
        name: &str,
        value: Value,
        (name_range, value_range): (Range<usize>, Range<usize>),
        out: &mut Collector,
    ) {
        let Some(wanted) = self.declaration(name).map(Declaration::value_type) else {
            let names = self
                .declarations
                .iter()
                .map(|declaration| declaration.name.as_str());
            let detail = format!(
                "A {name:?} variable was set but was not found in known variables.{} To declare \
                 variable {name:?}, place a block variable {name:?} {{ }} in the job file",
                hint(name, names),
            );
            let fault = Fault::new(name_range, "Undefined variable", detail.clone());
            self.undeclared("Undefined variable", detail, &source.error(fault), out);
            return;
        };
        match typed(value, &wanted) {
            Ok(value) => drop(self.values.insert(name.to_owned(), value)),
            Err(detail) => {
                let detail = format!("variable {name:?}: {detail}");
                out.error(source.error(Fault::new(
                    value_range,
                    "Invalid value for variable",
                    detail,
                )));
            }
        }
    }

    fn undeclared(&self, summary: &str, detail: String, error: &ParseError, out: &mut Collector) {
        if self.inputs.allow_undeclared {
            out.warn(format!("{summary}; {detail}"));
        } else {
            out.error(ParseError {
                summary: summary.to_owned(),
                detail,
                ..error.clone()
            });
        }
    }
}

/// Returns an error that shows the command-line argument.
fn command_line(name: &str, text: &str) -> ParseError {
    let source = Source::new("-var", &format!("{name}={text}"));
    source.error(Fault::new(0..name.len(), "", ""))
}

fn typed(value: Value, wanted: &Type) -> Result<Value, String> {
    types::convert(value, wanted)
}

fn no_references(expr: &Expr<'_>) -> Result<(), Fault> {
    match expr
        .references()
        .into_iter()
        .find(|reference| reference.kind.is_name())
    {
        None => Ok(()),
        Some(reference) => {
            let detail = "Variables may not be used here: write the value itself";
            Err(Fault::new(reference.range, "Variables not allowed", detail))
        }
    }
}
