//! The settings that every service over the store has, declared once.
//!
//! [`config!`](crate::config!) declares the `Config` of a service from these and its own settings. It
//! is a macro because serde's `flatten` neither rejects unknown keys nor knows the line of a wrong
//! value. The comments below are printed by `-print-config`, so they are written for operators.

use std::ops::RangeInclusive;
use std::time::Duration;

use service_kit::{ConfigError, EtcdConfig, ListenConfig, TelemetryConfig, TlsConfig};

/// The source of the shared settings, for [`service_kit::print::Documented::SHARED`].
pub const SOURCE: &str = include_str!("config.rs");

/// The shared settings as [`crate::App`] reads them.
pub trait ServiceConfig {
    fn etcd(&self) -> &EtcdConfig;
    fn listen(&self) -> &ListenConfig;
    fn tls(&self) -> &TlsConfig;
    fn telemetry(&self) -> &TelemetryConfig;
    fn shutdown_grace_period(&self) -> Duration;
}

/// Declares `pub struct Config` of a service, in its `config.rs`. Own fields have a default, as in
/// `pub workers: u32 = 2,`. A service that elects a leader begins with `elected`; a service whose
/// default address is not a port of the system's choice begins with `listen = ADDRESSES;`.
#[macro_export]
macro_rules! config {
    (elected pub struct Config { $($own:tt)* }) => {
        $crate::config! {
            pub struct Config {
                /// The time for which etcd keeps the lease of a silent leader, 1s to 5m.
                #[serde(with = "service_kit::config::duration")]
                pub election_ttl: std::time::Duration = $crate::DEFAULT_ELECTION_TTL,
                $($own)*
            }
        }
    };
    (pub struct Config { $($own:tt)* }) => {
        $crate::config! {
            listen = service_kit::ListenConfig::default();
            pub struct Config { $($own)* }
        }
    };
    (listen = $listen:expr; pub struct Config {
        $( $(#[$attribute:meta])* pub $field:ident: $kind:ty = $default:expr, )*
    }) => {
        #[derive(Clone, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            pub etcd: service_kit::EtcdConfig,
            pub listen: service_kit::ListenConfig,
            pub tls: service_kit::TlsConfig,
            pub telemetry: service_kit::TelemetryConfig,
            /// The time that started work has to finish once the service has to end.
            #[serde(with = "service_kit::config::duration")]
            pub shutdown_grace_period: std::time::Duration,
            $( $(#[$attribute])* pub $field: $kind, )*
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    etcd: Default::default(),
                    listen: $listen,
                    tls: Default::default(),
                    telemetry: Default::default(),
                    shutdown_grace_period: service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD,
                    $( $field: $default, )*
                }
            }
        }

        impl $crate::ServiceConfig for Config {
            fn etcd(&self) -> &service_kit::EtcdConfig {
                &self.etcd
            }

            fn listen(&self) -> &service_kit::ListenConfig {
                &self.listen
            }

            fn tls(&self) -> &service_kit::TlsConfig {
                &self.tls
            }

            fn telemetry(&self) -> &service_kit::TelemetryConfig {
                &self.telemetry
            }

            fn shutdown_grace_period(&self) -> std::time::Duration {
                self.shutdown_grace_period
            }
        }

        impl service_kit::print::Documented for Config {
            const SOURCE: &'static str = include_str!("config.rs");
            const SHARED: &'static str = $crate::config::SOURCE;
        }
    };
}

/// The default of `election_ttl`.
pub const DEFAULT_ELECTION_TTL: Duration = store::ElectionOptions::DEFAULT_TTL;

/// The accepted range of `election_ttl`. Renewals take some round trips, which are slow under load,
/// so a lease below a second is lost to a hiccup. After the death of a leader its service has none
/// for as long as the lease lasts.
const ELECTION_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(300);

/// Checks that an `election_ttl` lets a leader be elected, and be replaced in time.
///
/// # Errors
/// It is too short or too long; the error names the key and the accepted range.
pub fn check_election_ttl(service: &str, ttl: Duration) -> Result<(), ConfigError> {
    if ELECTION_TTL.contains(&ttl) {
        return Ok(());
    }
    let ms = ttl.as_millis();
    Err(ConfigError::Invalid {
        service: service.to_owned(),
        problem: format!("`election_ttl` is {ms}ms: want 1s to 5m, as in 3s"),
    })
}
