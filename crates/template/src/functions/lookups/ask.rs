//! One look-up of a template.

use crate::function::{Call, Failure};
use crate::source::{Answer, Lookup};

/// The answer, or none if it is missing; the rendering then waits for it.
pub(super) fn ask(call: &mut Call<'_>, lookup: Lookup) -> Result<Option<Answer>, Failure> {
    match call.interpreter.context().source.look_up(&lookup) {
        Answer::Missing | Answer::Absent => {
            call.interpreter.wait_for(lookup);
            Ok(None)
        }
        answer => Ok(Some(answer)),
    }
}
