//! Parsing of texts into syntax trees, and syntax errors.

use hcl_edit::expr::Expression;
use hcl_edit::parser::{self, Error};
use hcl_edit::structure::Body;
use hcl_edit::template::Template;

use super::scan;
use crate::source::Fault;

/// Reads a file of attributes and blocks.
pub(crate) fn body(text: &str) -> Result<Body, Fault> {
    // Replaces a byte order mark by blanks, which keeps positions.
    let without_mark = text
        .strip_prefix('\u{feff}')
        .map(|rest| format!("   {rest}"));
    let text = without_mark.as_deref().unwrap_or(text);
    if let Some(fault) = scan::excess(text) {
        return Err(fault);
    }
    parser::parse_body(text).map_err(|error| explain(text, &error))
}

/// Reads one expression.
pub(crate) fn expression(text: &str) -> Result<Expression, Fault> {
    if let Some(fault) = scan::excess(text) {
        return Err(fault);
    }
    parser::parse_expr(text).map_err(|error| explain(text, &error))
}

/// Parses a template without quotes, as in a JSON string.
pub(crate) fn template(text: &str) -> Result<Template, Fault> {
    if let Some(fault) = scan::template_excess(text) {
        return Err(fault);
    }
    parser::parse_template(text).map_err(|error| {
        let offset = error.location().offset();
        let detail = format!("{}: to write ${{ as text, double the $", error.message());
        Fault::new(offset..offset + 1, "Invalid template", detail)
    })
}

fn explain(text: &str, error: &Error) -> Fault {
    if let Some(fault) = scan::imbalance(text) {
        return fault;
    }
    // At the end of input, the parser reports the last byte.
    let offset = error.location().offset().min(text.len());
    let rest = text.get(offset..).unwrap_or_default();
    let (summary, detail) = describe(text, offset, rest, error.message());
    let word = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    // At the end of a line the caret follows the text.
    let width = match rest.chars().next() {
        Some(c) if c != '\n' => word.max(c.len_utf8()),
        _ => 0,
    };
    Fault::new(offset..offset + width, summary, detail)
}

fn describe(text: &str, offset: usize, rest: &str, message: &str) -> (&'static str, String) {
    let on_one_line =
        || scan::open_brace(text, offset).is_some_and(|brace| !text[brace..offset].contains('\n'));
    if message.starts_with("invalid attribute; expected unique") {
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let detail = format!("The argument {name:?} was already set in this block: remove one");
        return ("Attribute redefined", detail);
    }
    if (message.starts_with("invalid block body") || message.starts_with("invalid attribute"))
        && on_one_line()
    {
        let detail = "A block on one line may hold one attribute and no nested block: write each \
                      attribute and block on a line of its own";
        return ("Invalid single-line block definition", detail.to_owned());
    }
    if message.starts_with("invalid expression") {
        let hint = match rest.chars().next() {
            Some('\'') => "texts are in double quotes, \"…\"",
            Some('\n' | '\r') | None => {
                "a value is missing: write one, as in \"text\", 5, true, [ ]"
            }
            _ => "write a value, as in \"text\", 5, true, [ ], or a reference such as var.name",
        };
        return (
            "Invalid expression",
            format!("Expected the start of an expression: {hint}"),
        );
    }
    if message.starts_with("invalid escape sequence") {
        let detail = "The escapes within a text are \\n, \\r, \\t, \\\", \\\\ and \\u with four digits: \
                      write \\\\ for a backslash";
        return ("Invalid escape sequence", detail.to_owned());
    }
    if message.starts_with("expected newline or eof") {
        let hint = if rest.starts_with(',') {
            "remove the comma, attributes are separated by lines"
        } else {
            "put what follows on a line of its own"
        };
        return (
            "Missing newline after argument",
            format!("This line should end here: {hint}"),
        );
    }
    if message.starts_with("invalid structure") || message == "unexpected token" {
        let hint = match rest.chars().next() {
            Some(':') => "write = between name and value",
            Some('"') => {
                "names of attributes have no quotes here; for other names write a \
                          map, as in env = { \"a-b\" = 1 }"
            }
            _ => "write name = value, or name \"label\" { … }",
        };
        let detail = format!("An argument or block definition is required here: {hint}");
        return ("Argument or block definition required", detail);
    }
    if message.starts_with("expected `{`") {
        let detail = "A block's labels are followed by an opening brace: add {, or write = for an \
                      attribute, as in type = \"service\"";
        return ("Invalid block definition", detail.to_owned());
    }
    (
        "Invalid syntax",
        format!("{message}: correct the text here or just before"),
    )
}
