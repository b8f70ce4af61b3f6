//! `kafila job init`

use std::path::PathBuf;

use crate::args::job::Init;
use crate::commands::example;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

const EXAMPLE: &str = include_str!("../../../../examples/web.hcl");

pub(crate) fn run(context: &Context, args: &Init) -> Result<Exit, Error> {
    let default = || PathBuf::from("example.nomad.hcl");
    let path = args.path.clone().unwrap_or_else(default);
    let text = if args.short {
        without_comments(EXAMPLE)
    } else {
        // The comments name the file that the user has.
        EXAMPLE.replace("web.hcl", &path.display().to_string())
    };
    example::write(context, &path, ("job", &text), args.quiet)
}

/// Returns the lines that are no comments, with no empty line after a comment.
fn without_comments(text: &str) -> String {
    let mut short = String::new();
    let mut follows_comment = true;
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with('#');
        if is_comment || (follows_comment && line.is_empty()) {
            follows_comment = true;
            continue;
        }
        follows_comment = false;
        short.push_str(line);
        short.push('\n');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_example_is_the_same_job() {
        let short = without_comments(EXAMPLE);
        assert!(short.starts_with("job \"web\" {\n"), "{short}");
        assert!(
            !short.contains("\n\n\n") && !short.contains("# "),
            "{short}"
        );
        let job = |text: &str| {
            let inputs = jobspec::Inputs::default();
            jobspec::parse("example.nomad.hcl", text, &inputs)
                .unwrap()
                .job
        };
        assert_eq!(job(&short), job(EXAMPLE));
    }
}
