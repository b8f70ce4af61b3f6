//! Confirmation prompts.

use std::io::Write as _;

use proto::v1;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// The answer to a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Neither; the user has been told.
    Unclear,
}

/// Asks before a job is changed that was named by a prefix of its ID; `verb` is the change, such as
/// "stop". Returns the command's end; `None`: it goes on.
///
/// # Errors
/// Standard input has ended.
pub(super) fn job(
    context: &Context,
    (job, typed): (&v1::JobStub, &str),
    yes: bool,
    verb: &str,
) -> Result<Option<Exit>, Error> {
    if job.id == typed || yes {
        return Ok(None);
    }
    let question = format!("Are you sure you want to {verb} job {:?}?", job.id);
    let unanswered = format!("Error: to {verb} job {:?} needs a confirmation", job.id);
    match ask(context, &question, &unanswered)? {
        Answer::Yes => Ok(None),
        Answer::No => context.finish(&format!("Cancelling job {verb}")).map(Some),
        Answer::Unclear => Ok(Some(Exit::Failure)),
    }
}

/// Asks a question that an exact `y` confirms.
///
/// # Errors
/// Standard input has ended, as in a script: the error begins with `unanswered`.
pub(super) fn ask(context: &Context, question: &str, unanswered: &str) -> Result<Answer, Error> {
    let prompt = format!("{question} [y/N] ");
    context.printer.out_bytes(prompt.as_bytes())?;
    let _ = std::io::stdout().flush();
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(Error::Input)?;
    if !line.ends_with('\n') {
        // Ends the line of the prompt.
        context.printer.out("")?;
    }
    let answer = read(&line).ok_or_else(|| {
        Error::text(format!(
            "{unanswered}, and standard input has ended.\nPass the full ID, or add -yes."
        ))
    })?;
    if answer == Answer::Unclear {
        let problem = "For confirmation, an exact 'y' is required.";
        context.printer.err(problem);
    }
    Ok(answer)
}

/// Returns `None` at the end of input.
fn read(line: &str) -> Option<Answer> {
    if line.is_empty() {
        return None;
    }
    Some(match line.trim() {
        "y" => Answer::Yes,
        "" | "n" | "N" | "no" | "No" => Answer::No,
        _ => Answer::Unclear,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_y_means_yes() {
        assert_eq!(read("y\n"), Some(Answer::Yes));
        assert_eq!(read(""), None);
        for line in ["\n", "n\n", "N", "no\n"] {
            assert_eq!(read(line), Some(Answer::No), "{line:?}");
        }
        for line in ["Y\n", "yes\n", "sure\n"] {
            assert_eq!(read(line), Some(Answer::Unclear), "{line:?}");
        }
    }
}
