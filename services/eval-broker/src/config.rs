//! The one config struct, read once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::config::duration;
use service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD;
use service_kit::{ConfigError, EtcdConfig, ListenConfig, TelemetryConfig};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub etcd: EtcdConfig,
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// How long RPCs in hand may go on once it is told to end.
    #[serde(with = "duration")]
    pub shutdown_grace_period: Duration,
    /// How long a worker may keep an evaluation without a word before another gets it. 60 s, as in
    /// Nomad (`eval_nack_timeout`): a worker extends it while it works.
    #[serde(with = "duration")]
    pub nack_timeout: Duration,
    /// Deliveries before an evaluation counts as failed. 3, as in Nomad (`eval_delivery_limit`).
    pub delivery_limit: u8,
    /// How long an evaluation that was given back once waits for its next delivery.
    #[serde(with = "duration")]
    pub initial_nack_delay: Duration,
    /// How long it waits after each further time, times the deliveries before the last.
    #[serde(with = "duration")]
    pub subsequent_nack_delay: Duration,
    /// The least wait of the follow-up of a failed evaluation.
    #[serde(with = "duration")]
    pub follow_up_delay: Duration,
    /// What is added to it at most, evenly drawn, so that a wave of failures is not a wave again.
    #[serde(with = "duration")]
    pub follow_up_spread: Duration,
    /// How long what a worker had may stay unanswered once its stream has broken.
    #[serde(with = "duration")]
    pub session_grace: Duration,
    /// How long etcd keeps a leader that has fallen silent.
    #[serde(with = "duration")]
    pub election_ttl: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let broker = broker::Config::default();
        Self {
            etcd: EtcdConfig::default(),
            listen: ListenConfig::default(),
            telemetry: TelemetryConfig::default(),
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
            nack_timeout: broker.nack_timeout,
            delivery_limit: broker.delivery_limit,
            initial_nack_delay: broker.initial_nack_delay,
            subsequent_nack_delay: broker.subsequent_nack_delay,
            follow_up_delay: broker.follow_up_delay,
            follow_up_spread: broker.follow_up_spread,
            session_grace: broker.session_grace,
            election_ttl: store::ElectionOptions::DEFAULT_TTL,
        }
    }
}

/// The shortest time in which somebody else's word gets through: some round trips to the store.
const SHORTEST: Duration = Duration::from_millis(100);

impl Config {
    /// Finds values with which no evaluation would ever get anywhere.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |problem: String| {
            Err(ConfigError::Invalid {
                service: crate::SERVICE.to_owned(),
                problem,
            })
        };
        if self.nack_timeout < SHORTEST {
            return wrong(format!(
                "`nack_timeout` is {}ms: want 100ms or more",
                self.nack_timeout.as_millis()
            ));
        }
        service_host::check_election_ttl(crate::SERVICE, self.election_ttl)?;
        if self.delivery_limit == 0 {
            let problem = "`delivery_limit` is 0, so nothing would be delivered: want 1 or more";
            return wrong(problem.to_owned());
        }
        Ok(())
    }

    /// Returns the part that the broker itself goes by.
    pub(crate) fn broker(&self) -> broker::Config {
        broker::Config {
            nack_timeout: self.nack_timeout,
            delivery_limit: self.delivery_limit,
            initial_nack_delay: self.initial_nack_delay,
            subsequent_nack_delay: self.subsequent_nack_delay,
            follow_up_delay: self.follow_up_delay,
            follow_up_spread: self.follow_up_spread,
            session_grace: self.session_grace,
            ..broker::Config::default()
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_stop_every_evaluation_is_refused_by_name() {
        assert!(Config::default().check().is_ok());
        type Change = fn(&mut Config);
        let table: [(&str, Change); 3] = [
            ("nack_timeout", |it| it.nack_timeout = Duration::ZERO),
            ("election_ttl", |it| it.election_ttl = Duration::ZERO),
            ("delivery_limit", |it| it.delivery_limit = 0),
        ];
        for (field, change) in table {
            let mut config = Config::default();
            change(&mut config);
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(&format!("`{field}` is ")), "{message}");
        }
    }
}
