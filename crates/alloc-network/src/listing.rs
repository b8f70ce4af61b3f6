//! Elements of the table as `nft -j list table` prints them. No I/O.

use serde_json::Value;

use crate::ruleset::Element;

/// Returns the elements of all maps and sets; those that cannot be read are left out.
pub(crate) fn read(text: &str) -> Vec<Element> {
    let listing: Value = serde_json::from_str(text).unwrap_or_default();
    let objects = listing.get("nftables").and_then(Value::as_array);
    let mut elements = Vec::new();
    for object in objects.into_iter().flatten() {
        let Some(set) = object.get("map").or_else(|| object.get("set")) else {
            continue;
        };
        let name = set.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_map = object.get("map").is_some();
        let found = set.get("elem").and_then(Value::as_array);
        for element in found.into_iter().flatten() {
            elements.extend(self::element(name, element, is_map));
        }
    }
    elements
}

fn element(set: &str, element: &Value, is_map: bool) -> Option<Element> {
    let (key, value) = match element.as_array() {
        Some(pair) if is_map => (pair.first()?, Some(text(pair.get(1)?)?)),
        _ => (element, None),
    };
    let (key, comment) = match key.get("elem") {
        Some(inner) => (
            inner.get("val")?,
            inner.get("comment").and_then(Value::as_str),
        ),
        None => (key, None),
    };
    Some(Element {
        set: set.to_owned(),
        key: text(key)?,
        value,
        comment: comment.unwrap_or_default().to_owned(),
    })
}

/// Returns a key or value in the syntax of rules.
fn text(value: &Value) -> Option<String> {
    if let Some(parts) = value.get("concat").and_then(Value::as_array) {
        let parts: Option<Vec<String>> = parts.iter().map(text).collect();
        return Some(parts?.join(" . "));
    }
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from nft 1.0.6.
    const LISTING: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
        {"map": {"family": "inet", "name": "any4", "table": "kafila", "elem":
            [[{"elem": {"val": {"concat": ["tcp", 8080]}, "comment": "a1"}}, {"concat": ["172.26.64.2", 80]}]]}},
        {"set": {"family": "inet", "name": "allocs4", "table": "kafila", "elem":
            [{"elem": {"val": "172.26.64.2", "comment": "a1"}}]}},
        {"set": {"family": "inet", "name": "bridges", "table": "kafila", "elem": ["kafila"]}}]}"#;

    #[test]
    fn elements_are_read_in_the_form_in_which_they_are_written() {
        let of = |set: &str, key: &str, value: Option<&str>, comment: &str| Element {
            set: set.to_owned(),
            key: key.to_owned(),
            value: value.map(str::to_owned),
            comment: comment.to_owned(),
        };
        assert_eq!(
            read(LISTING),
            [
                of("any4", "tcp . 8080", Some("172.26.64.2 . 80"), "a1"),
                of("allocs4", "172.26.64.2", None, "a1"),
                of("bridges", "kafila", None, ""),
            ]
        );
        assert_eq!(read("nonsense"), []);
    }
}
