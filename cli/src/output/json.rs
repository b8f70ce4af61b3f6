//! JSON as Nomad prints it: indented by four spaces.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

/// Returns `value` as JSON text that ends with a newline.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(b"    ");
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    value
        .serialize(&mut serializer)
        .expect("maps here have string keys, and a Vec takes every byte");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_spaces_and_a_newline() {
        let value = serde_json::json!({"ID": "web"});
        assert_eq!(pretty(&value), "{\n    \"ID\": \"web\"\n}\n");
    }
}
