//! Functions of other HCL tools that are not available, with alternatives.

/// The result of a file must be reproducible.
const NOT_REPEATABLE: &str =
    "a job file has to give the same job every time it is read; pass the value as a variable";

const NOT_HERE: &str = "this version of Kafila does not have it; compute the value beforehand and \
                        pass it as a variable";

const TABLE: [(&str, &str); 10] = [
    ("bcrypt", NOT_REPEATABLE),
    (
        "env",
        "pass the value as a variable, NOMAD_VAR_name=value sets var.name",
    ),
    ("regex", "use regex_replace"),
    ("rsadecrypt", NOT_HERE),
    ("sum", "add the numbers up with +"),
    ("templatefile", "write the template as a heredoc"),
    ("timestamp", NOT_REPEATABLE),
    ("toset", "use convert(value, set(string)), or distinct"),
    ("tostring", "use convert(value, string)"),
    ("uuid", "use uuidv4"),
];

/// Returns the alternative to `name`; `None` for an unknown name.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    TABLE
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, instead)| *instead)
}
