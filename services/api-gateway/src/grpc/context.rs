//! The context of a decision on a request: the id of its evaluation, the time and the trace.

use admission::jobs::RequestContext;
use model::{EvalId, FieldErrors};
use service_kit::current_trace_parent;

use super::query::Api;

impl Api {
    /// Returns the context of a request without an id of its caller's.
    pub(super) fn request_context(&self) -> RequestContext {
        let core = &self.gateway.core;
        RequestContext {
            eval_id: core.next_eval_id(),
            now: core.now(),
            trace_parent: current_trace_parent(),
        }
    }

    /// Returns the context of a request whose caller may have given it an id: `derive` makes the
    /// evaluation's id from it, so that a retry finds the first attempt.
    ///
    /// # Errors
    /// The id is too long.
    pub(super) fn request_context_of(
        &self,
        request_id: &str,
        derive: impl FnOnce(&str) -> Result<EvalId, FieldErrors>,
    ) -> Result<RequestContext, FieldErrors> {
        let context = self.request_context();
        if request_id.is_empty() {
            return Ok(context);
        }
        Ok(RequestContext {
            eval_id: derive(request_id)?,
            ..context
        })
    }
}
