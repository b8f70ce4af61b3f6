//! Tables: schema, block, and the value or the problem.

use serde_json::{Value, json};

use super::decode;
use crate::wire::hclspec::{
    Array, Attr, Block, BlockAttrs, BlockList, BlockMap, BlockSet, Default, Literal, Object, Spec,
    spec,
};

fn of(block: spec::Block) -> Spec {
    Spec { block: Some(block) }
}

fn attr(name: &str, kind: &str, required: bool) -> Spec {
    of(spec::Block::Attr(Attr {
        name: name.to_owned(),
        r#type: kind.to_owned(),
        required,
    }))
}

fn literal(value: &str) -> Spec {
    of(spec::Block::Literal(Literal {
        value: value.to_owned(),
    }))
}

fn object(attributes: impl IntoIterator<Item = (&'static str, Spec)>) -> Spec {
    let attributes = attributes.into_iter();
    of(spec::Block::Object(Object {
        attributes: attributes
            .map(|(name, spec)| (name.to_owned(), spec))
            .collect(),
    }))
}

fn default(primary: Spec, default: Spec) -> Spec {
    of(spec::Block::Default(Box::new(Default {
        primary: Some(Box::new(primary)),
        default: Some(Box::new(default)),
    })))
}

fn block(name: &str, required: bool, nested: Spec) -> Spec {
    of(spec::Block::BlockValue(Box::new(Block {
        name: name.to_owned(),
        required,
        nested: Some(Box::new(nested)),
    })))
}

fn list(name: &str, (min_items, max_items): (u64, u64), nested: Spec) -> Spec {
    of(spec::Block::BlockList(Box::new(BlockList {
        name: name.to_owned(),
        min_items,
        max_items,
        nested: Some(Box::new(nested)),
    })))
}

fn run(spec: &Spec, body: Value) -> Result<Value, String> {
    decode(spec, body.as_object().unwrap())
}

#[test]
fn attributes_are_converted_to_their_types() {
    for (kind, value, want) in [
        ("string", json!(5), json!("5")),
        ("string", json!(true), json!("true")),
        ("string", json!(null), json!(null)),
        ("number", json!("5"), json!(5)),
        ("number", json!("-0.5"), json!(-0.5)),
        ("bool", json!("true"), json!(true)),
        ("bool", json!("0"), json!(false)),
        ("any", json!({"a": [1]}), json!({"a": [1]})),
        ("list(string)", json!([1, "a"]), json!(["1", "a"])),
        ("set(number)", json!([1, "1", 2]), json!([1, 2])),
        ("map(number)", json!({"a": "1"}), json!({"a": 1})),
        (
            "map(string)",
            json!([{"a": 1}, {"b": 2}]),
            json!({"a": "1", "b": "2"}),
        ),
        ("list(map(string))", json!({"a": 1}), json!([{"a": "1"}])),
        ("list(map(string))", json!([{"a": 1}]), json!([{"a": "1"}])),
        ("tuple([string, number])", json!([1, "2"]), json!(["1", 2])),
        (
            "object({a = string, \"b\" = bool})",
            json!({"a": 1, "b": "true"}),
            json!({"a": "1", "b": true}),
        ),
    ] {
        let spec = object([("x", attr("", kind, true))]);
        let found = run(&spec, json!({"x": value}));
        let want = match want {
            // Null counts as absent.
            Value::Null => Err("x: missing: write a value".to_owned()),
            want => Ok(json!({"x": want})),
        };
        assert_eq!(found, want, "{kind} of {value}");
    }
}

#[test]
fn a_value_of_another_type_is_named() {
    for (kind, value, want) in [
        ("string", json!(["a"]), "x: want a string, got a list"),
        ("number", json!("five"), "x: want a number, got a string"),
        ("number", json!(true), "x: want a number, got a bool"),
        ("bool", json!("yes"), "x: want true or false, got a string"),
        ("bool", json!(1), "x: want true or false, got a number"),
        ("list(string)", json!("a"), "x: want a list, got a string"),
        (
            "list(string)",
            json!(["a", {}]),
            "x[1]: want a string, got a map",
        ),
        (
            "list(string)",
            json!({"a": "b"}),
            "x: want a list, got a map",
        ),
        (
            "map(number)",
            json!({"a": "b"}),
            "x.a: want a number, got a string",
        ),
        ("map(number)", json!(5), "x: want a map, got a number"),
        (
            "tuple([string])",
            json!([]),
            "x: want a list of 1 items, got a list",
        ),
        (
            "object({a = string})",
            json!({}),
            "x.a: missing: write a value",
        ),
        (
            "object({a = string})",
            json!({"a": "", "b": 1}),
            "x.b: unknown option: remove it",
        ),
        (
            "text",
            json!(1),
            "the plugin's schema has \"text\", which is no type",
        ),
        (
            "list()",
            json!(1),
            "the plugin's schema has \"list()\", which is no type",
        ),
        (
            "",
            json!(1),
            "the plugin's schema has \"\", which is no type",
        ),
    ] {
        let spec = object([("x", attr("", kind, false))]);
        let found = run(&spec, json!({"x": value}));
        assert_eq!(found, Err(want.to_owned()), "{kind} of {value}");
    }
}

#[test]
fn absent_and_unknown_options() {
    let spec = object([
        ("a", attr("", "string", false)),
        ("b", attr("other", "string", true)),
    ]);
    assert_eq!(
        run(&spec, json!({"other": "x"})),
        Ok(json!({"a": null, "b": "x"}))
    );
    assert_eq!(
        run(&spec, json!({"a": "x"})),
        Err("other: missing: write a value".to_owned())
    );
    assert_eq!(
        run(&spec, json!({"other": "x", "b": "y"})),
        Err("b: unknown option: remove it, or write one of: a, other".to_owned())
    );
}

#[test]
fn a_default_is_used_for_an_absent_value() {
    for (text, want) in [
        ("\"x\"", json!("x")),
        ("5", json!(5)),
        ("-5", json!(-5)),
        ("(-0.5)", json!(-0.5)),
        ("true", json!(true)),
        ("null", json!(null)),
        ("[1, \"a\"]", json!([1, "a"])),
        ("{ a = 1, \"b\" = [] }", json!({"a": 1, "b": []})),
    ] {
        let spec = object([("a", default(attr("a", "any", false), literal(text)))]);
        assert_eq!(run(&spec, json!({})), Ok(json!({"a": want})), "{text}");
        assert_eq!(run(&spec, json!({"a": 7})), Ok(json!({"a": 7})), "{text}");
    }
    for text in ["upper(\"a\")", "x", "${x}", ""] {
        let spec = object([("a", literal(text))]);
        let message = run(&spec, json!({})).unwrap_err();
        assert!(message.contains("which is no fixed value"), "{message}");
    }
}

#[test]
fn blocks_are_objects_or_lists_of_them() {
    let inner = object([("n", attr("", "number", true))]);
    let once = object([("b", block("", false, inner.clone()))]);
    for (body, want) in [
        (json!({}), Ok(json!({"b": null}))),
        (json!({"b": {"n": 1}}), Ok(json!({"b": {"n": 1}}))),
        (json!({"b": [{"n": 1}]}), Ok(json!({"b": {"n": 1}}))),
        (json!({"b": {}}), Err("b.n: missing: write a value")),
        (
            json!({"b": {"n": 1, "m": 2}}),
            Err("b.m: unknown option: remove it, or write one of: n"),
        ),
        (
            json!({"b": [{"n": 1}, {"n": 2}]}),
            Err("b: 2 blocks: write it once"),
        ),
        (json!({"b": 5}), Err("b: want a block: { name = value }")),
    ] {
        assert_eq!(
            run(&once, body.clone()),
            want.map_err(str::to_owned),
            "{body}"
        );
    }
    let required = object([("b", block("", true, inner.clone()))]);
    assert_eq!(
        run(&required, json!({})),
        Err("b: missing: write a block".to_owned())
    );
    let many = object([("b", list("", (1, 2), inner.clone()))]);
    for (body, want) in [
        (json!({"b": {"n": 1}}), Ok(json!({"b": [{"n": 1}]}))),
        (
            json!({"b": [{"n": 1}, {"n": 1}]}),
            Ok(json!({"b": [{"n": 1}, {"n": 1}]})),
        ),
        (
            json!({"b": [{"n": 1}, {"n": "x"}]}),
            Err("b[1].n: want a number, got a string"),
        ),
        (json!({}), Err("b: 0 blocks: want at least 1")),
        (
            json!({"b": [{}, {}, {}]}),
            Err("b: 3 blocks: want at most 2"),
        ),
    ] {
        assert_eq!(
            run(&many, body.clone()),
            want.map_err(str::to_owned),
            "{body}"
        );
    }
    let set = object([(
        "b",
        of(spec::Block::BlockSet(Box::new(BlockSet {
            nested: Some(Box::new(inner)),
            ..BlockSet::default()
        }))),
    )]);
    assert_eq!(
        run(&set, json!({"b": [{"n": 1}, {"n": "1"}, {"n": 2}]})),
        Ok(json!({"b": [{"n": 1}, {"n": 2}]}))
    );
}

#[test]
fn blocks_of_free_names_and_of_labels() {
    let attrs = object([(
        "vars",
        of(spec::Block::BlockAttrs(BlockAttrs {
            name: "variables".to_owned(),
            r#type: "number".to_owned(),
            required: false,
        })),
    )]);
    assert_eq!(run(&attrs, json!({})), Ok(json!({"vars": null})));
    assert_eq!(
        run(&attrs, json!({"variables": {"a": "1", "b": 2}})),
        Ok(json!({"vars": {"a": 1, "b": 2}}))
    );
    assert_eq!(
        run(&attrs, json!({"variables": {"a": "x"}})),
        Err("variables.a: want a number, got a string".to_owned())
    );
    let map = |labels: &[&str]| {
        object([(
            "log",
            of(spec::Block::BlockMap(Box::new(BlockMap {
                name: String::new(),
                labels: labels.iter().map(|label| (*label).to_owned()).collect(),
                nested: Some(Box::new(object([("n", attr("", "number", false))]))),
            }))),
        )])
    };
    assert_eq!(
        run(
            &map(&["file"]),
            json!({"log": [{"a": {"n": 1}}, {"b": [{"n": 2}]}]})
        ),
        Ok(json!({"log": {"a": {"n": 1}, "b": {"n": 2}}}))
    );
    assert_eq!(
        run(
            &map(&["file", "level"]),
            json!({"log": {"a": {"x": {"n": 1}}}})
        ),
        Ok(json!({"log": {"a": {"x": {"n": 1}}}}))
    );
    assert_eq!(
        run(&map(&["file"]), json!({"log": {"a": {"m": 1}}})),
        Err("log.a.m: unknown option: remove it, or write one of: n".to_owned())
    );
}

#[test]
fn a_schema_can_be_an_array_and_is_bounded() {
    let array = of(spec::Block::Array(Array {
        values: vec![attr("a", "string", true), literal("5")],
    }));
    assert_eq!(run(&array, json!({"a": "x"})), Ok(json!(["x", 5])));
    let mut deep = attr("a", "string", false);
    for _ in 0..40 {
        deep = default(deep, literal("1"));
    }
    let message = run(&deep, json!({})).unwrap_err();
    assert_eq!(message, "the plugin's schema has more than 32 levels");
    let empty = Spec { block: None };
    let message = run(&empty, json!({})).unwrap_err();
    assert_eq!(message, "the plugin's schema has an empty part");
}
