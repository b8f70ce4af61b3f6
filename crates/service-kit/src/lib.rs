//! What every service's `main` needs, and nothing that knows what a job is.
//!
//! In reading order: [`run`] is a process from start to drain; [`config`] loads one struct from a
//! file, the environment and flags, [`mod@print`] shows it with what it means, [`settings`] has the
//! sections that services share, and [`address`] reads where others are;
//! [`telemetry`] starts logs and traces, [`trace_parent`] carries a trace across processes;
//! [`metrics`] is the registry and its HTTP server; [`server`] assembles a gRPC server with
//! [`rpc`] around every call and [`cut`] around every connection; [`channel`] reaches other
//! services, with [`backoff`] between attempts; [`drain`] is how a process is told to stop;
//! [`clock`] and [`ids`] are the only sources of time and randomness.

pub mod address;
pub mod backoff;
pub mod channel;
pub mod clock;
pub mod config;
mod cut;
pub mod drain;
pub mod ids;
pub mod metrics;
pub mod print;
mod process;
mod rpc;
pub mod run;
pub mod server;
pub mod settings;
pub mod telemetry;
pub mod trace_parent;

pub use backoff::Backoff;
pub use channel::{TraceInterceptor, TracedChannel, connect_lazy, request};
pub use clock::{Clock, SteadyClock};
pub use config::{ConfigError, load};
pub use ids::IdSource;
pub use metrics::Metrics;
pub use run::run_service;
pub use settings::{EtcdConfig, ListenConfig, LogFormat, TelemetryConfig};
pub use telemetry::Telemetry;
pub use tokio_util::sync::CancellationToken;
pub use trace_parent::{SpanParent, current_trace_parent};
