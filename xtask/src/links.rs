//! Links of the repository's Markdown files: the file and the heading that each names exist.
//!
//! Web addresses are left out, because the check needs no network. Anchors of headings follow the rule
//! of the web page that shows the repository: lower case, without punctuation, spaces as hyphens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Checks the links of all Markdown files that git knows below `root`.
///
/// # Errors
/// Lists the broken links, or says which file cannot be read.
pub(crate) fn check(root: &Path) -> Result<()> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ])
        .current_dir(root)
        .output()
        .context("cannot run git ls-files")?;
    ensure!(listed.status.success(), "git ls-files failed");
    let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let mut pages = BTreeMap::new();
    for name in names.split_terminator('\0') {
        let path = root.join(name);
        // git still lists a file that is deleted and not committed.
        if path.exists() {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {name}"))?;
            pages.insert(PathBuf::from(name), text);
        }
    }
    let broken = broken(&pages, &|path| root.join(path).exists());
    ensure!(
        broken.is_empty(),
        "links to files or headings that do not exist:\n  {}",
        broken.join("\n  ")
    );
    println!("links: {} Markdown files, none broken", pages.len());
    Ok(())
}

/// Returns `file: link` for each link without a target, by file and place.
fn broken(pages: &BTreeMap<PathBuf, String>, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&Path, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| (path.as_path(), anchors(text)))
        .collect();
    let mut broken = Vec::new();
    for (page, text) in pages {
        for link in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                Some(page.clone())
            } else {
                resolve(page.parent().unwrap_or(Path::new("")), file)
            };
            let is_found = target.is_some_and(|target| {
                let headings = anchors.get(target.as_path());
                exists(&target)
                    && (anchor.is_empty() || headings.is_none_or(|all| all.contains(anchor)))
            });
            if !is_found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    broken
}

/// Returns the targets of inline links, those to the web left out.
fn links(text: &str) -> impl Iterator<Item = &str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let slug = slug(line.trim_start_matches('#').trim());
            let count = counts.entry(slug.clone()).or_default();
            *count += 1;
            // The second heading with the same text is `text-1`.
            match *count {
                1 => slug,
                count => format!("{slug}-{}", count - 1),
            }
        })
        .collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter_map(|one| match one {
        ' ' => Some('-'),
        one if one.is_alphanumeric() || one == '-' || one == '_' => Some(one),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Returns the lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns `link` as seen from `folder`, without `..`; `None`: it leaves the repository.
fn resolve(folder: &Path, link: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop().then_some(())?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_in(pages: &[(&str, &str)]) -> Vec<String> {
        let pages = pages.iter();
        let pages: BTreeMap<PathBuf, String> = pages
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        let known = |path: &Path| pages.contains_key(path) || path == Path::new("docs/decisions");
        broken(&pages, &known)
    }

    #[test]
    fn files_and_headings_that_do_not_exist_are_named() {
        let page = "# One\n[a](two.md) [b](two.md#second-part) [c](#one) [d](../README.md) [e](decisions)\n\
                    [f](https://example.org/x.md#y)\n";
        let readme = ("README.md", "# Top\n");
        let two = ("docs/two.md", "## Second, part!\n");
        assert_eq!(broken_in(&[readme, two, ("docs/one.md", page)]), [""; 0]);
        let page = "[a](three.md) [b](two.md#third) [c](#two) [d](../../out.md) [e](/etc/passwd)";
        let expected = [
            "docs/one.md: three.md",
            "docs/one.md: two.md#third",
            "docs/one.md: #two",
            "docs/one.md: ../../out.md",
            "docs/one.md: /etc/passwd",
        ];
        assert_eq!(broken_in(&[readme, two, ("docs/one.md", page)]), expected);
    }

    #[test]
    fn code_blocks_have_neither_links_nor_headings() {
        let page = "```sh\n# not a heading\necho [a](b.md)\n```\n[c](#not-a-heading)\n";
        assert_eq!(broken_in(&[("a.md", page)]), ["a.md: #not-a-heading"]);
    }

    #[test]
    fn anchors_follow_the_rule_of_repository_pages() {
        let text = "# `kafila node drain ID`\n## The node's cache\n## Two\n## Two\n";
        let expected = ["kafila-node-drain-id", "the-nodes-cache", "two", "two-1"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }
}
