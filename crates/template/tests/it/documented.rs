//! The examples of docs/templates.md.

use template::Rendered;

use crate::support;

const PAGE: &str = include_str!("../../../../docs/templates.md");

/// Functions without an example that renders here: look-ups in Consul and Vault, which a server answers, and
/// `call`, which has no function to call. The page names them in sentences.
const WITHOUT_EXAMPLE: [&str; 23] = [
    "key",
    "keyExists",
    "keyOrDefault",
    "ls",
    "safeLs",
    "tree",
    "safeTree",
    "service",
    "services",
    "node",
    "nodes",
    "datacenters",
    "connect",
    "caRoots",
    "caLeaf",
    "partitions",
    "peerings",
    "exportedServices",
    "importedServices",
    "secret",
    "secrets",
    "pkiCert",
    "call",
];

/// Template and output, with line breaks as `\n`.
fn examples() -> Vec<(&'static str, &'static str)> {
    PAGE.lines()
        .filter(|line| line.starts_with("{{"))
        .filter_map(|line| line.split_once("  → "))
        .collect()
}

#[test]
fn each_example_renders_what_the_page_shows() {
    let examples = examples();
    assert!(examples.len() > 90, "{}", examples.len());
    for (source, want) in examples {
        match support::render(source.trim_end()) {
            Ok(Rendered::Text(text)) => assert_eq!(text.replace('\n', "\\n"), want, "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn each_function_has_an_example() {
    let words: Vec<&str> = examples()
        .iter()
        .flat_map(|(source, _)| {
            source.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        })
        .collect();
    for name in template::function_names() {
        let named = PAGE.contains(&format!("`{name}`"));
        assert!(
            if WITHOUT_EXAMPLE.contains(&name) {
                named
            } else {
                words.contains(&name)
            },
            "docs/templates.md has no example of {name}"
        );
    }
}
