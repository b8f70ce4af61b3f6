//! What the monitor prints.

use crate::output::colour::Colour;
use crate::output::indented;

/// How far detail lines are moved to the right.
const MARGIN: usize = 4;

/// Something to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A step, as in `==> T: Monitoring evaluation "1a2b3c4d"`.
    Step(String),
    /// A detail, as in `    T: Allocation "…" created: …`.
    Detail(String),
    /// A line of a list below a detail, without a time.
    Item(String),
    /// How far a deployment is; replaces what was shown of it before.
    Progress(Progress),
}

/// A deployment on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// As in `Deployment "1a2b3c4d" in progress...`.
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

    /// Returns the headline with the sign of its ending.
    pub(crate) fn signed_headline(&self, colour: Colour) -> String {
        match self.ending {
            Ending::Open => self.headline.clone(),
            Ending::Well => format!("{} {}", colour.green("✓"), self.headline),
            Ending::Badly => format!("{} {}", colour.red("!"), self.headline),
        }
    }
}
