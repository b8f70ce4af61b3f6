//! A service's process from start to end, so that a `main` is a few lines.

use std::fmt::Write as _;
use std::future::Future;
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::settings::TelemetryConfig;
use crate::telemetry::Telemetry;

/// The error that a service may end with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Runs one service: starts the runtime, logs and traces, then `body` with the token that a signal
/// cancels, and flushes the last logs and spans. The exit code says whether `body` failed.
pub fn run_service<Body, Running, Failure>(
    service: &str,
    telemetry: &TelemetryConfig,
    body: Body,
) -> ExitCode
where
    Body: FnOnce(CancellationToken) -> Running,
    Running: Future<Output = Result<(), Failure>>,
    Failure: Into<BoxError>,
{
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(service, &error),
    };
    runtime.block_on(async {
        let telemetry = match Telemetry::start(service, telemetry) {
            Ok(telemetry) => telemetry,
            Err(error) => return fail(service, &error),
        };
        let drain = match crate::drain::on_signals() {
            Ok(drain) => drain,
            Err(error) => return fail(service, &error),
        };
        info!(service, version = crate::version(), "starting");
        let result = body(drain).await;
        let code = match result {
            Ok(()) => {
                info!(service, "stopped");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                error!(service, error = chain(failure.into().as_ref()), "failed");
                ExitCode::FAILURE
            }
        };
        telemetry.shutdown().await;
        code
    })
}

fn fail(service: &str, error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("{service}: {}", chain(error));
    ExitCode::FAILURE
}

/// Returns an error with its causes: `a: b: c`.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let _ = write!(text, ": {source}");
        cause = source.source();
    }
    text
}
