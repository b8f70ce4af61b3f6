//! Functions that people know from elsewhere and cannot call here, with what to do instead.

/// What a job file says has to be the same each time it is read.
const NOT_REPEATABLE: &str =
    "a job file has to give the same job every time it is read; pass the value as a variable";

const NOT_HERE: &str = "this version of Kafila does not have it; compute the value beforehand and \
                        pass it as a variable";

const TABLE: [(&str, &str); 23] = [
    (
        "abspath",
        "a path stays as it is written; write an absolute one",
    ),
    ("bcrypt", NOT_REPEATABLE),
    (
        "env",
        "pass the value as a variable, NOMAD_VAR_name=value sets var.name",
    ),
    ("fileset", "name the files one by one"),
    ("formatdate", NOT_HERE),
    ("md5", NOT_HERE),
    ("pathexpand", "write the path without ~"),
    ("regex", "use regex_replace"),
    ("rsadecrypt", NOT_HERE),
    ("sha1", NOT_HERE),
    ("sha256", NOT_HERE),
    ("sha512", NOT_HERE),
    ("sum", "add the numbers up with +"),
    ("templatefile", "write the template as a heredoc"),
    ("timeadd", NOT_HERE),
    ("timestamp", NOT_REPEATABLE),
    ("toset", "use convert(value, set(string)), or distinct"),
    ("tostring", "use convert(value, string)"),
    ("uuid", NOT_REPEATABLE),
    ("uuidv4", NOT_REPEATABLE),
    ("uuidv5", NOT_HERE),
    ("yamldecode", "use jsondecode, or an HCL expression"),
    ("yamlencode", "use jsonencode, whose text is YAML too"),
];

/// Returns what to do instead of calling `name`; `None` for a name that means nothing here.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    TABLE
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, instead)| *instead)
}
