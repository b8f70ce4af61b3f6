//! Types of variables, such as `string`, `list(number)` and `object({ name = string })`.

use std::ops::Range;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, FuncCall, ObjectKey};

use crate::language::functions::sets;
use crate::language::value::{Value, runtime_hint, to_bool, to_number, to_text, type_name};
use crate::source::Fault;
use suggest::hint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    String,
    Number,
    Bool,
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>),
    Object(Vec<(String, Type)>),
    Tuple(Vec<Type>),
}

const NAMES: [&str; 9] = [
    "string", "number", "bool", "any", "list", "set", "map", "object", "tuple",
];

/// Parses a type expression.
pub(crate) fn read(expression: &Expression) -> Result<Type, Fault> {
    match expression {
        Expression::Variable(name) => match name.as_str() {
            "string" => Ok(Type::String),
            "number" => Ok(Type::Number),
            "bool" => Ok(Type::Bool),
            "any" => Ok(Type::Any),
            "list" => Ok(Type::List(Box::new(Type::Any))),
            "set" => Ok(Type::Set(Box::new(Type::Any))),
            "map" => Ok(Type::Map(Box::new(Type::Any))),
            other => Err(unknown(expression, other)),
        },
        Expression::FuncCall(call) => collection(expression, call),
        Expression::Parenthesis(inner) => read(inner.inner()),
        Expression::String(text) => {
            let detail = format!("a type has no quotes: write type = {}", text.as_str());
            Err(fault(expression, detail))
        }
        _ => Err(fault(
            expression,
            "write, for instance, string or list(number)".to_owned(),
        )),
    }
}

fn collection(expression: &Expression, call: &FuncCall) -> Result<Type, Fault> {
    let name = call.name.name.as_str();
    let arguments: Vec<&Expression> = call.args.iter().collect();
    let [argument] = arguments[..] else {
        let detail = match name {
            "optional" => "optional attributes are not supported: use a map, or give every value",
            _ => "a type takes one other type in its brackets, as in list(string)",
        };
        return Err(fault(expression, detail.to_owned()));
    };
    match (name, argument) {
        ("list", inner) => Ok(Type::List(Box::new(read(inner)?))),
        ("set", inner) => Ok(Type::Set(Box::new(read(inner)?))),
        ("map", inner) => Ok(Type::Map(Box::new(read(inner)?))),
        ("tuple", Expression::Array(items)) => Ok(Type::Tuple(
            items.iter().map(read).collect::<Result<_, _>>()?,
        )),
        ("tuple", _) => Err(fault(
            expression,
            "write the types in a list, tuple([string])".into(),
        )),
        ("object", Expression::Object(object)) => {
            let mut attributes = Vec::new();
            for (key, value) in object.iter() {
                let ObjectKey::Ident(key) = key else {
                    let detail = "the names of an object type have no quotes";
                    return Err(fault(expression, detail.to_owned()));
                };
                attributes.push((key.to_string(), read(value.expr())?));
            }
            Ok(Type::Object(attributes))
        }
        ("object", _) => Err(fault(
            expression,
            "write the attributes, object({ name = string })".into(),
        )),
        ("optional", _) => {
            let detail = "optional attributes are not supported: use a map, or give every value";
            Err(fault(expression, detail.to_owned()))
        }
        (other, _) => Err(unknown(expression, other)),
    }
}

fn unknown(expression: &Expression, name: &str) -> Fault {
    let detail = format!(
        "there is no type {name:?}.{} The types are string, number, bool, any, list(…), set(…), \
         map(…), object({{…}}) and tuple([…])",
        hint(name, NAMES),
    );
    fault(expression, detail)
}

fn fault(expression: &Expression, detail: String) -> Fault {
    let range: Range<usize> = expression.span().unwrap_or(0..0);
    Fault::new(range, "Invalid type specification", detail)
}

impl Type {
    /// Tells whether a text value is plain; others are HCL expressions.
    pub(crate) fn is_plain_text(&self) -> bool {
        matches!(self, Self::Any | Self::String | Self::Number)
    }

    /// Infers the type of a default.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Any,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List(Box::new(Self::Any)),
            Value::Object(_) => Self::Map(Box::new(Self::Any)),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Bool => "a bool",
            Self::List(_) => "a list",
            Self::Set(_) => "a set",
            Self::Map(_) => "a map",
            Self::Object(_) => "an object",
            Self::Tuple(_) => "a tuple",
        }
    }
}

/// Converts `value` to `wanted`, or returns an error message. Null belongs to every type.
///
/// The recursion is as deep as the type, which the parser bounds.
pub(crate) fn convert(value: Value, wanted: &Type) -> Result<Value, String> {
    if value.is_null() {
        return Ok(value);
    }
    let mismatch = |value: &Value| {
        let article = wanted.name();
        Err(format!("{article} is required{}", runtime_hint(value)))
    };
    match (wanted, value) {
        (Type::Any, value) => Ok(value),
        (Type::String, value) => to_text(&value).map_or_else(|| mismatch(&value), |t| Ok(t.into())),
        (Type::Number, value) => {
            to_number(&value).map_or_else(|| mismatch(&value), |n| Ok(Value::Number(n)))
        }
        (Type::Bool, value) => to_bool(&value).map_or_else(|| mismatch(&value), |b| Ok(b.into())),
        (Type::List(inner), Value::Array(items)) => elements(items, inner).map(Value::Array),
        (Type::Set(inner), Value::Array(items)) => {
            elements(items, inner).map(|items| Value::Array(sets::set(items)))
        }
        (Type::Map(inner), Value::Object(entries)) => {
            let converted = entries.into_iter().map(|(key, value)| {
                let value = convert(value, inner).map_err(|problem| within(&key, problem))?;
                Ok((key, value))
            });
            converted.collect::<Result<_, String>>().map(Value::Object)
        }
        (Type::Object(attributes), Value::Object(mut entries)) => {
            let mut converted = serde_json::Map::new();
            for (name, inner) in attributes {
                let value = entries
                    .remove(name)
                    .ok_or_else(|| format!("the attribute {name:?} is required"))?;
                let value = convert(value, inner).map_err(|problem| within(name, problem))?;
                converted.insert(name.clone(), value);
            }
            Ok(Value::Object(converted))
        }
        (Type::Tuple(types), Value::Array(items)) => {
            if types.len() != items.len() {
                let (want, got) = (types.len(), items.len());
                return Err(format!("a tuple of {want} elements is required; got {got}"));
            }
            let converted =
                items
                    .into_iter()
                    .zip(types)
                    .enumerate()
                    .map(|(position, (item, t))| {
                        convert(item, t).map_err(|problem| within(&position.to_string(), problem))
                    });
            converted.collect::<Result<_, String>>().map(Value::Array)
        }
        (_, value) => mismatch(&value),
    }
}

fn elements(items: Vec<Value>, inner: &Type) -> Result<Vec<Value>, String> {
    let converted = items.into_iter().enumerate().map(|(position, item)| {
        if item.is_null() && *inner != Type::Any {
            return Err(format!(
                "element {position}: must not be {}",
                type_name(&item)
            ));
        }
        convert(item, inner).map_err(|problem| format!("element {position}: {problem}"))
    });
    converted.collect()
}

fn within(name: &str, problem: String) -> String {
    format!("attribute {name:?}: {problem}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Result<Type, String> {
        read(&text.parse().unwrap()).map_err(|fault| fault.detail)
    }

    #[test]
    fn values_convert_to_the_type_that_is_asked_for() {
        for (wanted, value, result) in [
            ("string", json!(5), json!("5")),
            ("number", json!("5"), json!(5)),
            ("bool", json!("true"), json!(true)),
            ("any", json!([1]), json!([1])),
            ("list(number)", json!(["1", 2]), json!([1, 2])),
            ("set(string)", json!(["b", "a", "b"]), json!(["a", "b"])),
            ("map(string)", json!({"a": 1}), json!({"a": "1"})),
            (
                "object({ a = number })",
                json!({"a": "1", "b": 2}),
                json!({"a": 1}),
            ),
            (
                "tuple([string, bool])",
                json!([1, "false"]),
                json!(["1", false]),
            ),
            ("list", json!([1, "a"]), json!([1, "a"])),
            (
                "list(object({ a = list(string) }))",
                json!([{"a": [1]}]),
                json!([{"a": ["1"]}]),
            ),
        ] {
            assert_eq!(
                convert(value, &parsed(wanted).unwrap()),
                Ok(result),
                "{wanted}"
            );
        }
    }

    #[test]
    fn a_failed_conversion_states_place_and_reason() {
        for (wanted, value, message) in [
            ("number", json!("x"), "a number is required; got a string"),
            (
                "list(number)",
                json!([1, "x"]),
                "element 1: a number is required",
            ),
            (
                "map(bool)",
                json!({"a": 1}),
                "attribute \"a\": a bool is required",
            ),
            (
                "object({ a = string })",
                json!({}),
                "the attribute \"a\" is required",
            ),
            (
                "tuple([string])",
                json!([]),
                "a tuple of 1 elements is required; got 0",
            ),
            (
                "list(string)",
                json!("a"),
                "a list is required; got a string",
            ),
        ] {
            let problem = convert(value, &parsed(wanted).unwrap()).unwrap_err();
            assert!(problem.contains(message), "{problem}");
        }
    }

    #[test]
    fn an_expression_that_is_no_type_is_refused() {
        for (text, message) in [
            ("strnig", "Did you mean \"string\"?"),
            ("\"string\"", "no quotes"),
            ("list(string, number)", "takes one other type"),
            (
                "object({ a = optional(string) })",
                "optional attributes are not supported",
            ),
            ("vector(string)", "there is no type \"vector\""),
            ("5", "for instance, string"),
        ] {
            let problem = parsed(text).unwrap_err();
            assert!(problem.contains(message), "{problem}");
        }
    }
}
