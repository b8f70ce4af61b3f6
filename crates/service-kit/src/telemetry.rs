//! Starts logs and traces for one process; `kafila dev` has many services in one, so the name of
//! the service is also a field of the spans that [`crate::server`] opens.

use std::io::IsTerminal as _;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::logs::Logs;
use crate::logs::level::BadFilter;
use crate::logs::monitors::is_carrier;
use crate::settings::{LogFormat, TelemetryConfig};

/// The time limit for the export of the last spans when the process ends: a collector on the
/// network answers in milliseconds, and one that does not answer must not hold up a shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The filter of exported spans, independent of the log level. The libraries below RPC are left
/// out: they would trace the export of traces.
const EXPORTED: &str = "info,h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,opentelemetry=off";

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("`telemetry.log` cannot be used")]
    BadFilter(#[source] BadFilter),
    #[error("cannot export traces and logs to telemetry.otlp_endpoint {endpoint:?}")]
    Exporter {
        endpoint: String,
        #[source]
        source: opentelemetry_otlp::ExporterBuildError,
    },
    #[error("telemetry was started twice in this process")]
    AlreadyStarted,
}

/// Logs and traces of this process, until it is shut down or dropped.
#[must_use = "dropping it ends the export of traces"]
#[derive(Debug)]
pub struct Telemetry {
    exports: Option<Exports>,
}

/// Exports of this process.
#[derive(Debug)]
struct Exports {
    traces: SdkTracerProvider,
    logs: Option<SdkLoggerProvider>,
}

impl Telemetry {
    /// Starts logging to stderr and, when an endpoint is set, exporting spans in batches, and log lines if
    /// the configuration says so.
    ///
    /// Must be called within a tokio runtime when an endpoint is set. `service` becomes the
    /// resource attribute `service.name`.
    ///
    /// # Errors
    /// The filter or the endpoint is invalid, or the process already has telemetry.
    pub fn start(service: &str, config: &TelemetryConfig) -> Result<Self, TelemetryError> {
        let (logs, filter) = Logs::new(&config.log).map_err(TelemetryError::BadFilter)?;
        // Colours are for a terminal: in a file they are noise.
        let format = tracing_subscriber::fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let log = match config.log_format {
            LogFormat::Text => format.boxed(),
            LogFormat::Json => format.json().flatten_event(true).boxed(),
        };
        let exports = config
            .otlp_endpoint
            .as_deref()
            .map(|to| Exports::start(service, to, config.otlp_logs))
            .transpose()?;
        let traces = exports.as_ref().map(|exports| {
            tracing_opentelemetry::layer()
                .with_tracer(exports.traces.tracer("kafila"))
                .with_filter(EnvFilter::new(EXPORTED))
        });
        let exported = exports.as_ref().and_then(|exports| exports.logs.as_ref());
        let log = match exported {
            Some(exported) => log.and_then(ExportedLines::to(exported)).boxed(),
            None => log,
        };
        subscriber(&logs, filter, log)
            .with(traces)
            .try_init()
            .map_err(|_| TelemetryError::AlreadyStarted)?;
        logs.become_process();
        if let Some(endpoint) = config.exposed_endpoint() {
            tracing::warn!(
                endpoint,
                "traces are sent to another machine in plaintext: keep telemetry.otlp_endpoint on this machine or on \
                 a trusted network"
            );
        }
        Ok(Self { exports })
    }

    /// Sends the last spans and stops exporting; takes at most two seconds.
    pub async fn shutdown(mut self) {
        if let Some(exports) = self.exports.take() {
            // The exporter needs the runtime while it is waited for.
            let flushed = blocking::spawn(move || exports.flush()).await;
            if let Err(error) = flushed {
                tracing::warn!(%error, "the last spans and lines may be missing");
            }
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(exports) = self.exports.take() {
            // On a thread of its own: the runtime must run for the exporter to get anywhere.
            let flusher = std::thread::spawn(move || exports.flush());
            drop(flusher.join());
        }
    }
}

/// Returns the subscriber that prints lines with `format`, keeps the last ones and serves monitors.
pub(crate) fn subscriber(
    logs: &Logs,
    filter: reload::Layer<EnvFilter, Registry>,
    format: Box<dyn Layer<Registry> + Send + Sync>,
) -> impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync + 'static {
    let printed = format.and_then(logs.recent_layer()).with_filter(filter);
    let (monitors, wanted) = logs.monitor_layer();
    tracing_subscriber::registry()
        .with(printed)
        .with(monitors.with_filter(wanted))
}

/// The layer that exports printed lines, except those of the libraries below: they would export lines
/// about the export of lines.
struct ExportedLines(OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger>);

impl ExportedLines {
    fn to(provider: &SdkLoggerProvider) -> Self {
        Self(OpenTelemetryTracingBridge::new(provider))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ExportedLines {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !is_carrier(event.metadata().target()) {
            self.0.on_event(event, context);
        }
    }
}

impl Exports {
    fn start(service: &str, endpoint: &str, with_logs: bool) -> Result<Self, TelemetryError> {
        let failed = |source| TelemetryError::Exporter {
            endpoint: endpoint.to_owned(),
            source,
        };
        let resource = Resource::builder()
            .with_service_name(service.to_owned())
            .build();
        let spans = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .build()
            .map_err(failed)?;
        let traces = SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            .with_resource(resource.clone())
            .build();
        if !with_logs {
            return Ok(Self { traces, logs: None });
        }
        let lines = LogExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .build()
            .map_err(failed)?;
        let logs = SdkLoggerProvider::builder()
            .with_batch_exporter(lines)
            .with_resource(resource)
            .build();
        Ok(Self {
            traces,
            logs: Some(logs),
        })
    }

    /// Sends what is left of both within the timeout.
    fn flush(&self) {
        let logs = self.logs.as_ref();
        let flushed = std::thread::scope(|scope| {
            let lines = scope.spawn(move || {
                logs.map_or(Ok(()), |logs| logs.shutdown_with_timeout(FLUSH_TIMEOUT))
            });
            let spans = self.traces.shutdown_with_timeout(FLUSH_TIMEOUT);
            spans.and(lines.join().unwrap_or(Ok(())))
        });
        if let Err(error) = flushed {
            tracing::warn!(%error, "the last spans and lines may be missing");
        }
    }
}
