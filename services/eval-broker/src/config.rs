//! The settings of the eval-broker.

use std::time::Duration;

use service_kit::ConfigError;

service_host::config! {
    elected
    pub struct Config {
        /// The time for which a worker may hold an evaluation without extending it; then it is
        /// delivered to another one. 60 s, as in Nomad (`eval_nack_timeout`).
        #[serde(with = "service_kit::config::duration")]
        pub nack_timeout: Duration = broker::Config::default().nack_timeout,
        /// Deliveries until an evaluation counts as failed. 3, as in Nomad (`eval_delivery_limit`).
        pub delivery_limit: u8 = broker::Config::default().delivery_limit,
        /// The redelivery delay of an evaluation after its first delivery has failed: the worker nacked it, or
        /// did not answer in time.
        #[serde(with = "service_kit::config::duration")]
        pub initial_nack_delay: Duration = broker::Config::default().initial_nack_delay,
        /// The unit of later redelivery delays: after the n-th delivery has failed, from the second on, the
        /// broker waits n - 1 times this delay.
        #[serde(with = "service_kit::config::duration")]
        pub subsequent_nack_delay: Duration = broker::Config::default().subsequent_nack_delay,
        /// The minimum delay of the follow-up of a failed evaluation.
        #[serde(with = "service_kit::config::duration")]
        pub follow_up_delay: Duration = broker::Config::default().follow_up_delay,
        /// The maximum random addition to it, uniformly distributed, which spreads the follow-ups of
        /// a wave of failures.
        #[serde(with = "service_kit::config::duration")]
        pub follow_up_spread: Duration = broker::Config::default().follow_up_spread,
        /// The time in which a worker must answer for its evaluations once its stream has broken.
        #[serde(with = "service_kit::config::duration")]
        pub session_grace: Duration = broker::Config::default().session_grace,
    }
}

/// The shortest useful timeout: some round trips to the store.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);

impl Config {
    /// Rejects settings with which no evaluation would ever be completed.
    ///
    /// # Errors
    /// The first wrong setting.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |problem: String| {
            Err(ConfigError::Invalid {
                service: crate::SERVICE.to_owned(),
                problem,
            })
        };
        if self.nack_timeout < TIMEOUT_MIN {
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

    /// Returns the settings of the broker itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_stop_every_evaluation_are_rejected_by_name() {
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
