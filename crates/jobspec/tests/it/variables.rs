//! Sources of variables' values, and errors about them.

use std::collections::BTreeMap;

use jobspec::{Inputs, parse};
use serde_json::json;

use crate::support::{file, value_with};

const DECLARED: &str = "variable \"x\" {\n  type    = string\n  default = \"default\"\n}\n";

fn inputs() -> Inputs {
    Inputs::default()
}

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn the_later_source_wins() {
    let mut inputs = inputs();
    let value = |inputs: &Inputs| value_with("var.x", DECLARED, inputs);
    assert_eq!(value(&inputs), Ok(json!("default")));
    inputs.environment = environment(&[("NOMAD_VAR_x", "nomad"), ("HOME", "/"), ("x", "no")]);
    assert_eq!(value(&inputs), Ok(json!("nomad")));
    inputs
        .environment
        .insert("KAFILA_VAR_x".to_owned(), "kafila".to_owned());
    assert_eq!(value(&inputs), Ok(json!("kafila")));
    inputs.variable_files = given(&[("a.vars", "x = \"file a\"\n")]);
    assert_eq!(value(&inputs), Ok(json!("file a")));
    inputs
        .variable_files
        .push(("b.json".to_owned(), "{\"x\": \"file b\"}".to_owned()));
    assert_eq!(value(&inputs), Ok(json!("file b")));
    inputs.variables = given(&[("x", "first"), ("x", "second")]);
    assert_eq!(value(&inputs), Ok(json!("second")));
}

#[test]
fn a_text_is_taken_as_it_is_or_read_as_an_expression_by_the_type() {
    for (wanted, text, value) in [
        ("string", "[1,2]", json!("[1,2]")),
        ("string", "", json!("")),
        ("number", "5", json!(5)),
        ("any", "[1,2]", json!("[1,2]")),
        ("bool", "true", json!(true)),
        ("list(number)", "[1,2]", json!([1, 2])),
        ("list(string)", " [\"a\", upper(\"b\")] ", json!(["a", "B"])),
        ("map(string)", "{a = 1}", json!({"a": "1"})),
        ("object({ a = number })", "{ a = \"1\" }", json!({"a": 1})),
        ("set(string)", "[\"b\", \"a\", \"b\"]", json!(["a", "b"])),
        ("tuple([string, bool])", "[1, true]", json!(["1", true])),
    ] {
        let before = format!("variable \"x\" {{\n  type = {wanted}\n}}\n");
        let inputs = Inputs {
            variables: given(&[("x", text)]),
            ..inputs()
        };
        assert_eq!(
            value_with("var.x", &before, &inputs),
            Ok(value),
            "{wanted} {text}"
        );
    }
}

#[test]
fn the_short_form_takes_its_types_from_the_defaults() {
    let before = "variables {\n  list = [1]\n  text = \"a\"\n  flag = false\n}\n";
    let inputs = Inputs {
        variables: given(&[("list", "[2, 3]"), ("text", "[b]"), ("flag", "true")]),
        ..inputs()
    };
    let value = value_with("[var.list, var.text, var.flag]", before, &inputs);
    assert_eq!(value, Ok(json!([[2, 3], "[b]", true])));
}

#[test]
fn an_undeclared_variable_is_an_error_or_a_warning() {
    let inputs = Inputs {
        variables: given(&[("y", "1")]),
        variable_files: given(&[("f.vars", "\nz = 1\n")]),
        ..inputs()
    };
    let text = format!("{DECLARED}{}", file("", "", ""));
    let errors = parse("f.hcl", &text, &inputs).unwrap_err();
    let lines = errors.one_line_each();
    assert!(
        lines.contains("f.vars:2,1-2: Undefined variable; A \"z\" variable was set"),
        "{lines}"
    );
    assert!(
        lines.contains("-var:1,1-2: Undefined -var variable; A \"y\" variable was"),
        "{lines}"
    );
    let lenient = Inputs {
        allow_undeclared: true,
        ..inputs
    };
    let warnings = parse("f.hcl", &text, &lenient).unwrap().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    // The environment is everybody's, so it may hold other jobs' variables.
    let environment = environment(&[("NOMAD_VAR_other", "1")]);
    parse(
        "f.hcl",
        &text,
        &Inputs {
            environment,
            ..Inputs::default()
        },
    )
    .unwrap();
}

#[test]
fn a_value_of_the_wrong_type_is_shown_where_it_was_given() {
    let before = "variable \"x\" {\n  type    = number\n  default = 1\n}\n\
                  variable \"l\" {\n  type    = list(string)\n  default = []\n}\n";
    let environment = environment(&[("NOMAD_VAR_x", "many")]);
    for (inputs, message) in [
        (
            Inputs {
                variables: given(&[("x", "many")]),
                ..inputs()
            },
            "value of variable \"x\":1,1-5: Invalid argument value for -var variable; variable \"x\": a number",
        ),
        (
            Inputs {
                variables: given(&[("l", "[a")]),
                ..inputs()
            },
            "value of variable \"l\":1,1-2: Unclosed bracket",
        ),
        (
            Inputs {
                variables: given(&[("l", "[var.x]")]),
                ..inputs()
            },
            "Variables may not be used here",
        ),
        (
            Inputs {
                variable_files: given(&[("f", "x = []\n")]),
                ..inputs()
            },
            "f:1,5-7: Invalid value for variable; variable \"x\": a number is required",
        ),
        (
            Inputs {
                variable_files: given(&[("f", "x = \n")]),
                ..inputs()
            },
            "f:1,5-5: Invalid expression",
        ),
        (
            Inputs {
                variable_files: given(&[("f.json", "{\"x\" 1}")]),
                ..inputs()
            },
            "f.json:1,6-7: Invalid JSON",
        ),
        (
            Inputs {
                environment,
                ..inputs()
            },
            "environment variable NOMAD_VAR_x:1,1-5",
        ),
    ] {
        let error = value_with("var.x", before, &inputs).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn conditions_of_validations_may_look_at_their_own_variable_only() {
    let block = |condition: &str| {
        format!(
            "variable \"n\" {{\n  default = 5\n  validation {{\n    condition     = {condition}\n    \
             error_message = \"n is ${{var.n}}\"\n  }}\n}}\nlocals {{\n  m = 1\n}}\n"
        )
    };
    assert_eq!(
        value_with("var.n", &block("var.n > 0"), &inputs()),
        Ok(json!(5))
    );
    for (condition, message) in [
        (
            "var.n > 9",
            "Invalid value for variable; n is 5 (variable \"n\")",
        ),
        ("local.m > 0", "Invalid reference in variable validation"),
        ("var.other > 0", "Invalid reference in variable validation"),
        ("5", "Invalid variable validation result"),
    ] {
        let error = value_with("var.n", &block(condition), &inputs()).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn locals_stand_in_any_order_and_in_several_blocks() {
    let before = "locals {\n  a = local.b + 1\n}\nlocals {\n  b = local.c * 2\n  c = var.n\n}\n\
                  variables {\n  n = 5\n}\n";
    assert_eq!(value_with("local.a", before, &inputs()), Ok(json!(11)));
}

#[test]
fn a_long_chain_of_locals_is_no_problem_and_a_deep_value_is_refused() {
    let chain = |link: fn(usize) -> String| {
        let links: String = (1..5_000)
            .map(|n| format!("  a{n} = {}\n", link(n - 1)))
            .collect();
        format!("locals {{\n  a0 = 0\n{links}}}\n")
    };
    let sum = chain(|n| format!("local.a{n} + 1"));
    assert_eq!(value_with("local.a4999", &sum, &inputs()), Ok(json!(4_999)));
    let nested = chain(|n| format!("[local.a{n}]"));
    let error = value_with("local.a4999", &nested, &inputs()).unwrap_err();
    assert!(error.contains("nest more than"), "{}", &error[..200]);
}

#[test]
fn wrong_declarations_are_refused_at_their_place() {
    for (before, message) in [
        ("variable {\n}\n", "Missing name for variable"),
        (
            "variable \"x\" {\n  typ = string\n}\n",
            "Did you mean \"type\"?",
        ),
        (
            "variable \"x\" {\n  default = var.y\n}\n",
            "Variables may not be used here",
        ),
        (
            "variable \"x\" {\n  default = 1\n}\nvariables {\n  x = 2\n}\n",
            "already declared on line 1",
        ),
        ("variables \"x\" {\n}\n", "No labels are expected"),
        ("variables {\n  x {\n  }\n}\n", "holds defaults only"),
        (
            "variable \"x\" {\n  default = 1\n  validation {\n  }\n}\n",
            "\"condition\" is required",
        ),
        (
            "variable \"x\" {\n  default = 1\n  valid {\n  }\n}\n",
            "Expected here: validation",
        ),
        (
            "locals {\n  a = 1\n}\nlocals {\n  a = 2\n}\n",
            "already defined on line 2",
        ),
        ("locals {\n  a = local.a\n}\n", "local.a → local.a"),
        ("region = \"x\"\n", "Expected here: blocks of type job"),
        ("vairable \"x\" {\n}\n", "Did you mean \"variable\"?"),
    ] {
        let error = value_with("1", before, &inputs()).expect_err(before);
        assert!(error.contains(message), "{before}: {error}");
    }
}
