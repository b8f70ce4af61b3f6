//! Renewal of a node's certificate before it expires, with the present one.

use std::time::Duration;

use gateway_calls::Gateways;
use local_state::{CertificateFiles, Error};
use proto::internal::v1::RenewCertificateRequest;
use proto::internal::v1::node_introductions_client::NodeIntroductionsClient;
use rand::rngs::StdRng;
use service_kit::{Backoff, CancellationToken, Clock, request};
use tokio::time::sleep;
use tonic::Status;
use tracing::{error, info, warn};

use crate::metrics::Metrics;
use crate::status::{CALL_TIMEOUT, describe};

/// Interval of looks at the certificate: the wall clock may step, and an operator may replace the file.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);
/// Shortest and longest pause after a failure: a third of the validity is left for retries.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(300));
/// The shortest pause after a renewal: a bound on the calls of a node whose certificates are due at once.
const MIN_PAUSE: Duration = Duration::from_secs(2);

/// Renewals of one node's certificate.
pub struct Renewal<'a> {
    pub gateways: &'a Gateways,
    /// `None`: operators renew the certificate, or the node has none.
    pub files: Option<CertificateFiles>,
    pub metrics: &'a Metrics,
    pub clock: Clock,
    /// Spreads retries.
    pub rng: StdRng,
}

impl Renewal<'_> {
    /// Renews the certificate until `ended`. New connections use a new certificate as soon as the files
    /// are looked at again.
    pub async fn run(self, ended: CancellationToken) {
        let Self {
            gateways,
            files: Some(files),
            metrics,
            clock,
            mut rng,
        } = self
        else {
            return;
        };
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        loop {
            let pause = match look(&files, &clock).await {
                Ok(Some(wait)) => wait.clamp(MIN_PAUSE, LOOK_INTERVAL),
                Ok(None) => match renew(gateways, &files).await {
                    Ok(()) => {
                        metrics.renewals.inc();
                        backoff.reset();
                        MIN_PAUSE
                    }
                    Err(problem) => {
                        metrics.renewal_failures.inc();
                        warn!(problem, "cannot renew the node's certificate; retrying");
                        backoff.next(&mut rng)
                    }
                },
                Err(problem) => {
                    let problem = service_kit::run::chain(&problem);
                    error!(problem, "cannot read the node's certificate");
                    backoff.next(&mut rng)
                }
            };
            tokio::select! {
                () = ended.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }
}

/// Returns the time until the renewal; `None`: it is due.
async fn look(files: &CertificateFiles, clock: &Clock) -> Result<Option<Duration>, Error> {
    let files = files.clone();
    let read = blocking::spawn(move || files.description()).await;
    let description = read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    let now = i64::try_from(clock.now() / 1_000_000_000).unwrap_or(i64::MAX);
    // A file that was removed is due: the agent still has its certificate.
    Ok(description.and_then(|it| pki::time_to_renewal(now, it.not_before, it.not_after)))
}

/// Gets a certificate from the current gateway. The problem is for the log.
async fn renew(gateways: &Gateways, files: &CertificateFiles) -> Result<(), String> {
    let (address, channel) = gateways.current_channel().map_err(|it| describe(&it))?;
    let of_file = |error: Error| service_kit::run::chain(&error);
    let message = RenewCertificateRequest {
        signing_request: on_disk(files, CertificateFiles::signing_request)
            .await
            .map_err(of_file)?,
    };
    let mut client = NodeIntroductionsClient::new(channel);
    let answer = client.renew(request(message, CALL_TIMEOUT)).await;
    let certificate = match answer {
        Ok(answer) => answer.into_inner().certificate,
        Err(status) => return Err(refused(gateways, &address, &status)),
    };
    gateways.answered();
    on_disk(files, move |files| files.store(&certificate))
        .await
        .map_err(of_file)?;
    info!(gateway = address, "the node's certificate is renewed");
    Ok(())
}

fn refused(gateways: &Gateways, address: &str, status: &Status) -> String {
    gateways.refused(address, status);
    format!("gateway {address}: {}", describe(status))
}

/// File systems may block.
async fn on_disk<T: Send + 'static>(
    files: &CertificateFiles,
    act: impl FnOnce(&CertificateFiles) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let files = files.clone();
    let acted = blocking::spawn(move || act(&files)).await;
    acted.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
