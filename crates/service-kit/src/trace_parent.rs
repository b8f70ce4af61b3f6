//! Carries a trace across processes and through stored objects, as a W3C `traceparent`.
//!
//! Source: W3C Trace Context, version 00: `00-<trace id>-<parent id>-<flags>`, lowercase hex.

use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The name of the header, and of the gRPC metadata key.
pub const TRACE_PARENT: &str = "traceparent";

/// Returns the current span as a `traceparent`; empty when nothing is being traced.
pub fn current_trace_parent() -> String {
    trace_parent_of(&Span::current())
}

/// Returns `span` as a `traceparent`; empty when it is not being traced.
pub fn trace_parent_of(span: &Span) -> String {
    let context = span.context();
    let span_ref = context.span();
    let span_context = span_ref.span_context();
    if !span_context.is_valid() {
        return String::new();
    }
    format!(
        "00-{:032x}-{:016x}-{:02x}",
        span_context.trace_id(),
        span_context.span_id(),
        span_context.trace_flags()
    )
}

/// Makes a span the child of one in another process.
pub trait SpanParent {
    /// Continues the trace that `trace_parent` names; anything that is not one changes nothing.
    /// Has an effect only before the span is entered.
    fn set_parent_from(&self, trace_parent: &str);
}

impl SpanParent for Span {
    fn set_parent_from(&self, trace_parent: &str) {
        if let Some(parent) = parse(trace_parent) {
            let context = opentelemetry::Context::new().with_remote_span_context(parent);
            // It fails when the span is not traced at all, which is as good as no parent.
            let _ = self.set_parent(context);
        }
    }
}

/// Returns the span that `text` names. Later versions may carry more, which is ignored.
fn parse(text: &str) -> Option<SpanContext> {
    let mut fields = text.split('-');
    let (version, trace_id) = (fields.next()?, fields.next()?);
    let (span_id, flags) = (fields.next()?, fields.next()?);
    let shaped = version.len() == 2 && trace_id.len() == 32 && span_id.len() == 16;
    if !shaped || version == "ff" || flags.len() != 2 {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace_id).ok()?,
        SpanId::from_hex(span_id).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn traced<T>(body: impl FnOnce() -> T) -> T {
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, body)
    }

    #[test]
    fn a_span_continues_the_trace_it_is_given() {
        traced(|| {
            let span = tracing::info_span!("register");
            span.set_parent_from(PARENT);
            let _entered = span.enter();
            let own = current_trace_parent();
            assert_eq!(own[..36], PARENT[..36], "same trace");
            assert_ne!(own[36..52], PARENT[36..52], "another span");
            assert_eq!(own.len(), PARENT.len());
        });
    }

    #[test]
    fn a_parent_that_makes_no_sense_starts_a_trace_of_its_own() {
        traced(|| {
            for bad in [
                "",
                "x",
                &PARENT[..54],
                "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            ] {
                let span = tracing::info_span!("register");
                span.set_parent_from(bad);
                assert_ne!(trace_parent_of(&span)[3..35], PARENT[3..35], "{bad:?}");
            }
        });
    }

    #[test]
    fn without_tracing_there_is_no_parent() {
        assert_eq!(current_trace_parent(), "");
    }
}
