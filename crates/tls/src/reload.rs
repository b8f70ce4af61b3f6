//! Reloads of changed files, and warnings before certificates expire.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::credentials::{Credentials, Reload};
use crate::error::Error;
use crate::files::now;
use crate::metrics::Metrics;

/// Interval of looks at the files: they are small, and a new certificate is rarely urgent.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Remaining validity in seconds below which the log warns: two weeks leave time to renew by hand.
const WARN_BEFORE: i64 = 14 * 24 * 3600;
/// The part of a short validity that is left when the log warns: certificates that are renewed after
/// two thirds of their validity are late then.
const WARN_PART: i64 = 5;
/// Interval of the warnings, which are for people.
const WARN_INTERVAL: Duration = Duration::from_secs(6 * 3600);

impl Credentials {
    /// Reloads changed files until `stop`: at an interval and on SIGHUP. Open connections keep the
    /// certificates of their handshake.
    pub async fn keep_fresh(self, metrics: Metrics, stop: CancellationToken) {
        let mut hangups = signal(SignalKind::hangup()).ok();
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch = Watch::default();
        loop {
            let hangup = async {
                match &mut hangups {
                    Some(hangups) => hangups.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                _ = hangup => {}
            }
            let credentials = self.clone();
            // File systems may block.
            let looked = tokio::task::spawn_blocking(move || credentials.reload());
            if let Ok(result) = looked.await {
                watch.note(&self, &metrics, result);
            }
        }
    }
}

/// Problems that were already logged.
#[derive(Default)]
struct Watch {
    failure: Option<String>,
    warned: Option<Instant>,
}

impl Watch {
    fn note(
        &mut self,
        credentials: &Credentials,
        metrics: &Metrics,
        result: Result<Reload, Error>,
    ) {
        let usage = credentials.shared.usage;
        match result {
            Ok(Reload::Unchanged) => {
                if self.failure.take().is_some() {
                    info!(usage, "the certificate files can be read again, unchanged");
                }
            }
            Ok(Reload::Loaded) => {
                info!(usage, "certificates reloaded: new connections use them");
                metrics.count_reload(usage, true);
                self.failure = None;
                self.warned = None;
            }
            Err(problem) => {
                let text = chain(&problem);
                // A missing file fails at each look.
                if self.failure.as_ref() != Some(&text) {
                    error!(
                        usage,
                        error = text,
                        "cannot reload certificates: the previous ones stay in use"
                    );
                    metrics.count_reload(usage, false);
                    self.failure = Some(text);
                }
            }
        }
        let expiry = credentials.expiry();
        metrics.show_expiry(usage, expiry);
        let ends = [
            ("certificate", expiry.certificate),
            ("authority", expiry.authority),
        ];
        let is_due = self
            .warned
            .is_none_or(|last| last.elapsed() >= WARN_INTERVAL);
        for (kind, end) in ends {
            let Some(left) = end.map(|end| end - now()) else {
                continue;
            };
            let validity = expiry.validity.filter(|_| kind == "certificate");
            if is_due && left < warn_before(validity) {
                warn!(
                    usage,
                    kind,
                    days_left = left / 86_400,
                    files = ?credentials.shared.files,
                    "a certificate expires soon: replace its file, which is then reloaded"
                );
                self.warned = Some(Instant::now());
            }
        }
    }
}

/// Returns the remaining validity below which the log warns, in seconds.
fn warn_before(validity: Option<i64>) -> i64 {
    validity.map_or(WARN_BEFORE, |validity| {
        WARN_BEFORE.min(validity / WARN_PART)
    })
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_certificate_warns_late_and_a_long_one_two_weeks_before() {
        const DAY: i64 = 24 * 3600;
        for (validity, warns) in [
            (Some(365 * DAY), 14 * DAY),
            (Some(30 * DAY), 6 * DAY),
            (Some(3600), 720),
            // An authority.
            (None, 14 * DAY),
        ] {
            assert_eq!(warn_before(validity), warns, "{validity:?}");
        }
    }

    #[test]
    fn files_that_can_be_read_again_end_a_failure() {
        let credentials = Credentials::load("services", crate::Files::default()).unwrap();
        let mut watch = Watch::default();
        let mut note = |result| {
            watch.note(&credentials, &Metrics::default(), result);
            watch.failure.is_some()
        };
        let missing = || Error::Read {
            path: "/etc/kafila/key.pem".into(),
            source: std::io::ErrorKind::NotFound.into(),
        };
        assert!(note(Err(missing())));
        assert!(!note(Ok(Reload::Unchanged)), "the file is back as it was");
        assert!(note(Err(missing())), "a second failure is logged, too");
        assert!(!note(Ok(Reload::Loaded)));
    }
}
