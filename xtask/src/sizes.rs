//! Upper bounds of the lines of services, and of the crates for I/O that the api-gateway mounts: what grows
//! beyond belongs into a crate that decides.
//!
//! Counts every line of the sources, comments and blank ones too, except for tests: items below
//! `#[cfg(test)]`, and files named `tests`. Reads the layout of rustfmt.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::orphans::rust_files;

/// Folder of sources and its largest number of lines.
///
/// The api-gateway's handlers translate, commit and stream; the client-node wires a node's parts. Both had
/// decisions and conversions in them before they were above 6,000 and 4,500. The crates that the api-gateway
/// mounts have limits too, so that its lines do not move there: each has room for a handler or two more.
const LIMITS: [(&str, usize); 9] = [
    ("services/api-gateway/src", 6_000),
    ("services/client-node/src", 4_500),
    ("crates/gateway-core/src", 1_500),
    ("crates/node-gateway/src", 3_500),
    ("crates/node-calls/src", 1_000),
    ("crates/node-connections/src", 1_000),
    ("crates/keyring/src", 1_000),
    ("crates/variable-locks/src", 500),
    ("crates/csi-volumes/src", 750),
];

/// # Errors
/// Every service that has more lines than its limit.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut counts = Vec::new();
    let mut wrong = Vec::new();
    for (folder, limit) in LIMITS {
        let mut count = 0;
        for file in rust_files(&root.join(folder))? {
            if is_test(&file) {
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            count += lines_without_tests(&text);
        }
        if count > limit {
            wrong.push(format!(
                "{folder} has {count} lines, at most {limit}: move decisions and conversions into a pure crate"
            ));
        }
        counts.push(format!("{folder} has {count} of {limit} lines"));
    }
    if !wrong.is_empty() {
        bail!("sources are too large:\n  {}", wrong.join("\n  "));
    }
    println!("sizes: {}", counts.join(", "));
    Ok(())
}

/// Tells whether `file` is `tests.rs` or in a folder `tests`.
fn is_test(file: &Path) -> bool {
    let mut parts = file.components().rev();
    let name = parts.next().map(|part| part.as_os_str());
    name.is_some_and(|name| name == "tests.rs") || parts.any(|part| part.as_os_str() == "tests")
}

fn lines_without_tests(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            count += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        // The item ends on its first line, or with a bracket as far left as its attribute.
        let ends = |line: &str| {
            line.strip_prefix(indent)
                .is_some_and(|rest| rest.starts_with('}') || is_whole_item(rest))
        };
        for line in lines.by_ref() {
            if ends(line) {
                break;
            }
        }
    }
    count
}

fn is_whole_item(line: &str) -> bool {
    !line.starts_with(' ') && (line.ends_with(';') || line.ends_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_counted() {
        let text = "\
//! A file.

#[cfg(test)]
mod tests;

fn one() {
    #[cfg(test)]
    let seen = {
        1
    };
    #[cfg(test)]
    two();
    three();
}

#[cfg(test)]
#[path = \"more.rs\"]
mod more {
    fn four() {
        five();
    }
}
";
        // Of the 22 lines, these belong to tests: 2 of `tests`, 4 and 2 in `one`, 7 of `more`.
        assert_eq!(lines_without_tests(text), 7);
    }

    #[test]
    fn files_of_tests_are_known_by_their_name() {
        for (file, expected) in [
            ("src/tests.rs", true),
            ("src/tests/http.rs", true),
            ("src/grpc/jobs.rs", false),
        ] {
            assert_eq!(is_test(Path::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn a_service_above_its_limit_is_refused() {
        let root = std::env::temp_dir().join(format!("kafila-sizes-{}", std::process::id()));
        for (folder, _) in LIMITS {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let file = root.join(LIMITS[0].0).join("lib.rs");
        fs::write(&file, "\n".repeat(LIMITS[0].1)).unwrap();
        check(&root).unwrap();
        fs::write(&file, "\n".repeat(LIMITS[0].1 + 1)).unwrap();
        let error = check(&root).unwrap_err().to_string();
        fs::remove_dir_all(&root).unwrap();
        assert!(error.contains("services/api-gateway/src has 6001 lines, at most 6000"));
    }
}
