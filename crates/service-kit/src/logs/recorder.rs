//! The tracing layer that makes records of events, for the recent lines or for monitors.

use std::sync::{Arc, Mutex, PoisonError};

use tracing::span::{Attributes, Id, Record as SpanValues};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::monitors::Monitors;
use super::recent::Recent;
use super::record::{Record, SpanRecord, Values};
use crate::clock::Clock;

/// Makes a record of each event that its filter lets through.
#[derive(Debug)]
pub(crate) struct Recorder {
    sink: Sink,
    clock: Clock,
}

#[derive(Debug)]
enum Sink {
    Recent(Arc<Mutex<Recent>>),
    Monitors(Monitors),
}

impl Recorder {
    pub(super) fn recent(recent: Arc<Mutex<Recent>>) -> Self {
        Self {
            sink: Sink::Recent(recent),
            clock: Clock::real(),
        }
    }

    pub(super) fn monitors(monitors: Monitors) -> Self {
        Self {
            sink: Sink::Monitors(monitors),
            clock: Clock::real(),
        }
    }
}

/// Nothing here logs: a line about a line would never end.
impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        // The other recorder of the process may have been first.
        if extensions.get_mut::<Arc<SpanRecord>>().is_some() {
            return;
        }
        let mut values = Values::default();
        attributes.record(&mut values);
        extensions.insert(Arc::new(SpanRecord {
            name: span.name(),
            fields: values.fields,
        }));
    }

    fn on_record(&self, id: &Id, recorded: &SpanValues<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(known) = extensions.get_mut::<Arc<SpanRecord>>() {
            let known = Arc::make_mut(known);
            let mut values = Values::of(std::mem::take(&mut known.fields));
            recorded.record(&mut values);
            known.fields = values.fields;
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let make = || {
            let scope = context.event_scope(event).into_iter();
            let spans = scope
                .flat_map(|scope| scope.from_root())
                .filter_map(|span| {
                    let extensions = span.extensions();
                    extensions.get::<Arc<SpanRecord>>().map(Arc::clone)
                });
            Arc::new(Record::new(event, self.clock.now(), spans.collect()))
        };
        match &self.sink {
            Sink::Recent(recent) => {
                let record = make();
                let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
                recent.push(record);
            }
            Sink::Monitors(monitors) => monitors.send(event.metadata(), make),
        }
    }
}
