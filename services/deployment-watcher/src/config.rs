//! The settings of the deployment-watcher.

use std::time::Duration;

service_host::config! {
    elected
    pub struct Config {
        /// The time for which health reports are batched before the scheduler is asked for an
        /// evaluation: allocations that start together become healthy together.
        #[serde(with = "service_kit::config::duration")]
        pub health_window: Duration = rollout::Config::default().health_window,
    }
}

#[cfg(test)]
mod tests {
    use service_kit::print;

    use super::Config;

    #[test]
    fn shared_and_own_settings_are_printed_with_their_comments() {
        let config = Config::default();
        assert_eq!(print::undocumented(&config), [] as [&str; 0]);
        let text = print::toml(&config);
        for setting in [
            "# The time for which etcd keeps the lease of a silent leader, 1s to 5m.\n\
             election_ttl = \"3s\"\n",
            "shutdown_grace_period = \"10s\"\n",
            "health_window = \"250ms\"\n",
            "\n[etcd]\n",
            "\nendpoints = [\"http://127.0.0.1:2379\"]\n",
        ] {
            assert!(text.contains(setting), "{setting} is missing in:\n{text}");
        }
        assert_eq!(text.matches("election_ttl").count(), 1);
    }
}
