//! Starts logs and traces for one process; `kafila dev` has many services in one, so the name of
//! the service is also a field of the spans that [`crate::server`] opens.

use std::io::IsTerminal as _;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::settings::{LogFormat, TelemetryConfig};

/// The time limit for the export of the last spans when the process ends: a collector on the
/// network answers in milliseconds, and one that does not answer must not hold up a shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The filter of exported spans, independent of the log level. The libraries below RPC are left
/// out: they would trace the export of traces.
const EXPORTED: &str = "info,h2=off,hyper=off,hyper_util=off,tonic=off,tower=off,opentelemetry=off";

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("telemetry.log {text:?} is not a filter such as info or info,store=debug")]
    BadFilter {
        text: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    #[error(
        "telemetry.log {text:?} names no level, so nothing would be logged: want error, warn, info, \
         debug, trace or off, as in info or info,store=debug"
    )]
    NoLevel { text: String },
    #[error("cannot export traces to telemetry.otlp_endpoint {endpoint:?}")]
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
    provider: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Starts logging to stderr and, when an endpoint is set, exporting spans in batches.
    ///
    /// Must be called within a tokio runtime when an endpoint is set. `service` becomes the
    /// resource attribute `service.name`.
    ///
    /// # Errors
    /// The filter or the endpoint makes no sense, or the process already has telemetry.
    pub fn start(service: &str, config: &TelemetryConfig) -> Result<Self, TelemetryError> {
        if !names_level(&config.log) {
            return Err(TelemetryError::NoLevel {
                text: config.log.clone(),
            });
        }
        let filter =
            EnvFilter::try_new(&config.log).map_err(|source| TelemetryError::BadFilter {
                text: config.log.clone(),
                source,
            })?;
        // Colours are for a terminal: in a file they are noise.
        let format = tracing_subscriber::fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let log = match config.log_format {
            LogFormat::Text => format.boxed(),
            LogFormat::Json => format.json().flatten_event(true).boxed(),
        };
        let provider = config
            .otlp_endpoint
            .as_deref()
            .map(|to| exporting(service, to))
            .transpose()?;
        let traces = provider.as_ref().map(|provider| {
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("kafila"))
                .with_filter(EnvFilter::new(EXPORTED))
        });
        tracing_subscriber::registry()
            .with(log.with_filter(filter))
            .with(traces)
            .try_init()
            .map_err(|_| TelemetryError::AlreadyStarted)?;
        Ok(Self { provider })
    }

    /// Sends what is left and stops exporting; takes at most two seconds.
    pub async fn shutdown(mut self) {
        if let Some(provider) = self.provider.take() {
            // The exporter needs the runtime while it is waited for.
            let flushed = blocking::spawn(move || flush(&provider)).await;
            if let Err(error) = flushed {
                tracing::warn!(%error, "the last spans may be missing");
            }
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = self.provider.take() {
            // On a thread of its own: the runtime must run for the exporter to get anywhere.
            let flusher = std::thread::spawn(move || flush(&provider));
            drop(flusher.join());
        }
    }
}

/// Tells whether a filter says of anything how much is logged. A word that is no level is taken for
/// the name of a module, all of whose messages are meant: the usual end of a misspelt level.
fn names_level(filter: &str) -> bool {
    filter.split(',').any(|directive| {
        let (_, level) = directive.rsplit_once('=').unwrap_or(("", directive));
        level.trim().parse::<LevelFilter>().is_ok()
    })
}

fn flush(provider: &SdkTracerProvider) {
    if let Err(error) = provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
        tracing::warn!(%error, "the last spans may be missing");
    }
}

fn exporting(service: &str, endpoint: &str) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|source| TelemetryError::Exporter {
            endpoint: endpoint.to_owned(),
            source,
        })?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(
            Resource::builder()
                .with_service_name(service.to_owned())
                .build(),
        )
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_without_a_level_is_a_misspelt_one() {
        for text in [
            "info",
            "INFO",
            "off",
            "info,store=debug",
            "store=trace",
            " warn ",
        ] {
            assert!(names_level(text), "{text}");
        }
        for text in ["loud", "inof", "store=loud"] {
            assert!(!names_level(text), "{text}");
            let config = TelemetryConfig {
                log: text.to_owned(),
                ..TelemetryConfig::default()
            };
            let error = Telemetry::start("x", &config).unwrap_err().to_string();
            assert!(error.contains("telemetry.log"), "{error}");
        }
    }
}
