//! Output of a monitor: plain lines, and progress in place on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::line::{Ending, Output, Progress};
use crate::error::Error;
use crate::output::printer::Printer;
use crate::output::time::Times;

/// Frame time of the spinner: smooth, at a negligible cost.
const TICK: Duration = Duration::from_millis(100);

/// The output of one monitor.
#[derive(Debug)]
pub(crate) struct Screen {
    printer: Printer,
    /// Prefix of each line.
    label: Option<String>,
    /// Progress is redrawn in place: on a terminal, without concurrent monitors.
    in_place: bool,
    /// Progress on the screen.
    spinner: Option<ProgressBar>,
}

impl Screen {
    /// `label` is a prefix that distinguishes concurrent monitors.
    pub(crate) fn new(printer: Printer, label: Option<&str>) -> Self {
        Self {
            printer,
            label: label.map(str::to_owned),
            in_place: label.is_none() && printer.is_terminal,
            spinner: None,
        }
    }

    /// Shows `output` with the current time.
    ///
    /// # Errors
    /// Standard output is closed or full.
    pub(crate) fn show(&mut self, times: &Times, output: &Output) -> Result<(), Error> {
        let now = times.now();
        match output {
            Output::Progress(progress) if self.in_place => self.draw(&now, progress),
            Output::Progress(progress) => self.print(&now, progress),
            other => {
                let line = other.line(&now, self.printer.colour).unwrap_or_default();
                let line = labelled(self.label.as_deref(), &line);
                match &self.spinner {
                    Some(spinner) => {
                        spinner.suspend(|| self.printer.out(&line))?;
                    }
                    None => self.printer.out(&line)?,
                }
                Ok(())
            }
        }
    }

    /// Stops the spinner and leaves its last frame.
    pub(crate) fn leave(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.abandon();
        }
    }

    fn draw(&mut self, now: &str, progress: &Progress) -> Result<(), Error> {
        if progress.ending == Ending::Open {
            let spinner = self.spinner.get_or_insert_with(new_spinner);
            spinner.set_message(format!("{}{}", progress.headline, below(now, progress)));
            return Ok(());
        }
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
        let headline = progress.signed_headline(self.printer.colour);
        self.printer
            .out(&format!("  {headline}{}", below(now, progress)))
    }

    /// Prints the complete block each time, so that a log has every step.
    fn print(&self, now: &str, progress: &Progress) -> Result<(), Error> {
        let mut text = progress.block(now);
        if progress.ending != Ending::Open {
            let headline = progress.signed_headline(self.printer.colour);
            text.push_str(&format!("\n  {headline}\n"));
        }
        self.printer.out(&labelled(self.label.as_deref(), &text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Returns `text` with `label` before each line that is not empty.
pub(crate) fn labelled(label: Option<&str>, text: &str) -> String {
    let Some(label) = label else {
        return text.to_owned();
    };
    let line = |line: &str| match line {
        "" => String::new(),
        line => format!("{label}: {line}"),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn below(now: &str, progress: &Progress) -> String {
    format!("\n{}", progress.block(now).trim_end_matches('\n'))
}

fn new_spinner() -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
    let style = ProgressStyle::with_template("  {spinner} {msg}").expect("the template is one");
    spinner.set_style(style.tick_strings(&["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", " "]));
    spinner.enable_steady_tick(TICK);
    spinner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_label() {
        assert_eq!(labelled(None, "a\n\nb\n"), "a\n\nb\n");
        assert_eq!(labelled(Some("web"), "a\n\nb\n"), "web: a\n\nweb: b\n");
    }
}
