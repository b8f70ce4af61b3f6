//! Output of a monitor: steps, details and progress.

use crate::output::colour::Colour;
use crate::output::indented;

/// Indentation of details.
const MARGIN: usize = 4;

/// One output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A step: `==> T: Monitoring evaluation "1a2b3c4d"`.
    Step(String),
    /// A detail: `    T: Allocation "…" created: …`.
    Detail(String),
    /// A line of a list below a detail, without a time.
    Item(String),
    /// Progress of a deployment; replaces the previous one.
    Progress(Progress),
}

/// Progress of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// For example `Deployment "1a2b3c4d" in progress...`.
    pub(crate) headline: String,
    /// The block below it, without the time.
    pub(crate) body: String,
    pub(crate) ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Not yet.
    Open,
    Well,
    Badly,
}

impl Output {
    /// Returns the text of a plain line, stamped with `now`; `None` for progress.
    pub(crate) fn line(&self, now: &str, colour: Colour) -> Option<String> {
        let margin = " ".repeat(MARGIN);
        match self {
            Self::Step(text) => Some(colour.bold(&format!("==> {now}: {text}"))),
            Self::Detail(text) => Some(format!("{margin}{now}: {text}")),
            Self::Item(text) => Some(format!("{margin}{text}")),
            Self::Progress(_) => None,
        }
    }
}

impl Progress {
    /// Returns the block below the headline, with the time on top.
    pub(crate) fn block(&self, now: &str) -> String {
        indented(&format!("\n{now}\n{}", self.body), MARGIN)
    }

    /// Returns the headline with the symbol of its ending.
    pub(crate) fn signed_headline(&self, colour: Colour) -> String {
        match self.ending {
            Ending::Open => self.headline.clone(),
            Ending::Well => format!("{} {}", colour.green("✓"), self.headline),
            Ending::Badly => format!("{} {}", colour.red("!"), self.headline),
        }
    }
}
