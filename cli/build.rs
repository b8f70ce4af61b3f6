//! Finds the commit that the binary is built from, for `kafila version`.
//!
//! `KAFILA_COMMIT` names it where the sources have no `.git`, as in an image's build; else git does.
//! Without both the version has no commit.

use std::path::Path;
use std::process::Command;

/// The variable with the commit, both of the build and in the compiler's environment.
const VARIABLE: &str = "KAFILA_COMMIT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let given = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let commit = given.or_else(|| {
        watch_head();
        git(&["rev-parse", "HEAD"])
    });
    println!("cargo:rustc-env={VARIABLE}={}", commit.unwrap_or_default());
}

/// Builds anew when another commit is checked out or made, and after no other command of git.
fn watch_head() {
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    // A branch is a file of its own, or a line among the packed ones.
    let files = ["HEAD".to_owned(), "packed-refs".to_owned()];
    for name in files.into_iter().chain(branch) {
        let Some(path) = git(&["rev-parse", "--git-path", &name]) else {
            continue;
        };
        // Cargo would run this program each time if the file did not exist.
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

/// Returns the output of a git command; `None`: there is no git, or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
