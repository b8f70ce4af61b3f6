//! Code blocks of the repository's documents, for tests that run them as they stand.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Returns the text of the block of shell commands in a document that has a line beginning with `words`.
///
/// # Errors
/// The document cannot be read, or has no such block.
pub fn shell_block(document: &Path, words: &str) -> Result<String> {
    let text = fs::read_to_string(document);
    let text = text.with_context(|| format!("cannot read {}", document.display()))?;
    let found = shell_blocks(&text)
        .into_iter()
        .find(|block| block.lines().any(|line| line.starts_with(words)));
    found.with_context(|| format!("{} has no block with {words:?}", document.display()))
}

/// Returns all blocks of shell commands, in order, without the indentation of lists.
pub fn shell_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        open = match (open.take(), line.trim_start()) {
            (None, "```sh") => Some((indent, String::new())),
            (None, _) => None,
            (Some((_, block)), "```") => {
                blocks.push(block);
                None
            }
            (Some((indent, mut block)), _) => {
                block.push_str(line.get(indent..).unwrap_or_default());
                block.push('\n');
                Some((indent, block))
            }
        };
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_lists_lose_their_indentation_and_other_languages_are_left() {
        let text =
            "a\n```sh\none\n  two\n```\n```hcl\nno\n```\n1. b\n\n   ```sh\n   three\n\n   ```\n";
        assert_eq!(shell_blocks(text), ["one\n  two\n", "three\n\n"]);
    }
}
