//! TOML of a map: values first, then tables, keys sorted, tables indented by two spaces.

use crate::value::Value;

/// The map as TOML, without the last newline.
///
/// # Errors
/// The value is not a map, or holds a value that TOML can't express.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    if value.as_map().is_none() {
        return Err(format!(
            "a TOML document is a map, not a value of type {}",
            value.type_name()
        ));
    }
    let mut out = String::new();
    put_table(&mut out, value, &mut Vec::new())?;
    Ok(out.trim_matches('\n').to_owned())
}

fn put_table(out: &mut String, table: &Value, path: &mut Vec<String>) -> Result<(), String> {
    let Some(map) = table.as_map() else {
        return Ok(());
    };
    let indent = "  ".repeat(path.len());
    for (key, value) in map
        .iter()
        .filter(|(_, value)| !is_table(value) && !is_tables(value))
    {
        if value.is_nil() {
            continue;
        }
        out.push_str(&format!(
            "{indent}{} = {}\n",
            quote_key(key),
            inline(value)?
        ));
    }
    for (key, value) in map
        .iter()
        .filter(|(_, value)| is_table(value) || is_tables(value))
    {
        path.push(quote_key(key));
        let indent = "  ".repeat(path.len() - 1);
        match value {
            Value::List(list) => {
                for item in &list.items {
                    out.push_str(&format!("\n{indent}[[{}]]\n", path.join(".")));
                    put_table(out, item, path)?;
                }
            }
            _ => {
                out.push_str(&format!("\n{indent}[{}]\n", path.join(".")));
                put_table(out, value, path)?;
            }
        }
        path.pop();
    }
    Ok(())
}

fn is_table(value: &Value) -> bool {
    value.as_text().is_none() && value.as_map().is_some()
}

fn is_tables(value: &Value) -> bool {
    matches!(value, Value::List(list) if !list.items.is_empty() && list.items.iter().all(is_table))
}

fn inline(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => "nan".to_owned(),
        Value::Float(value) if value.is_infinite() => {
            if *value > 0.0 { "inf" } else { "-inf" }.to_owned()
        }
        Value::Float(value) => {
            let digits = value.to_string();
            if digits.contains('.') {
                digits
            } else {
                format!("{digits}.0")
            }
        }
        Value::List(list) => format!(
            "[{}]",
            list.items
                .iter()
                .map(inline)
                .collect::<Result<Vec<_>, _>>()?
                .join(", ")
        ),
        _ => match value.as_text() {
            Some(text) => quoted(text),
            None => {
                return Err(format!(
                    "a value of type {} has no TOML in this place",
                    value.type_name()
                ));
            }
        },
    })
}

fn quote_key(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
    if bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    super::quoted(text, |code| format!("\\u{code:04x}"))
}
