//! Files of variables: attributes and a block of items, or JSON of the HTTP API.

use hcl::schema::{Kind, Schema, named, plain, refused_block};
use hcl::settings::Layout;
use proto::v1;

use super::settings::{self, Described};
use crate::error::Error;
use crate::json::variable::Variable;
use crate::output::colour::Colour;
use std::path::Path;

static VARIABLE: Schema = Schema {
    refused: &[refused_block(
        "lock",
        "",
        "a variable file has no lock; run a command under one with 'kafila var lock PATH COMMAND'",
    )],
    ..plain(
        "variable",
        &[
            named("path", Kind::Text),
            named("namespace", Kind::Text),
            named("modify_index", Kind::Whole),
            named("items", Kind::TextMap),
        ],
    )
};

/// Reads the variable that a file describes, `-` for standard input; `json` refuses HCL.
///
/// # Errors
/// The file cannot be read, or its text describes no variable.
pub(crate) fn read(path: &Path, json: bool, colour: Colour) -> Result<v1::Variable, Error> {
    settings::read::<Variable>(path, json, colour)
}

impl Described for Variable {
    type Message = v1::Variable;

    const NOUN: &'static str = "variable";
    const SCHEMA: &'static Schema = &VARIABLE;
    const LAYOUT: Layout = Layout::Body;

    fn into_message(self) -> Result<v1::Variable, String> {
        Ok(self.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    #[test]
    fn both_forms_of_a_file_describe_the_same_variable() {
        let hcl = "path = \"app/db\"\nnamespace = \"prod\"\nmodify_index = 7\nitems = {\n  user = \
                   \"web\"\n  \"a b\" = \"${1 + 1}\"\n}\n";
        let json = r#"{"Path": "app/db", "Namespace": "prod", "ModifyIndex": 7, "CreateTime": 5,
                       "Items": {"user": "web", "a b": "2"}}"#;
        let read = settings::parse::<Variable>(hcl).unwrap();
        assert_eq!(read, settings::parse::<Variable>(json).unwrap());
        assert_eq!((read.path.as_str(), read.modify_index), ("app/db", 7));
        assert_eq!(read.items["a b"], "2");
    }

    #[test]
    fn the_shown_form_is_read_again() {
        let variable = v1::Variable {
            namespace: "prod".to_owned(),
            path: "app/db".to_owned(),
            items: [("k".to_owned(), "a\"${x}\\\n%{if}".to_owned())].into(),
            modify_index: 9,
            ..v1::Variable::default()
        };
        let text = render::variable::hcl(&variable);
        assert_eq!(settings::parse::<Variable>(&text).unwrap(), variable);
    }

    #[test]
    fn a_misspelt_attribute_and_a_lock_are_refused() {
        let error = settings::parse::<Variable>("pth = \"a\"").unwrap_err();
        assert!(error.contains("path"), "{error}");
        let error = settings::parse::<Variable>("lock {}").unwrap_err();
        assert!(error.contains("kafila var lock PATH COMMAND"), "{error}");
    }
}
