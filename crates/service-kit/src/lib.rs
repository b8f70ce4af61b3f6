//! The base of every service's `main`; nothing here knows of jobs.
//!
//! In reading order: [`run`] is a process from start to drain; [`config`] loads one struct from a
//! file, the environment and flags, [`mod@print`] prints it with comments, [`settings`] has the
//! sections that services share, and [`address`] parses addresses;
//! [`telemetry`] starts logs and traces, [`logs`] serves logs to remote readers, [`trace_parent`] carries a
//! trace across processes; [`metrics`] is the registry and its HTTP server, `documents` are further answers
//! of that, [`nomad_names`] the names that operators of Nomad know; [`server`] assembles a gRPC server with
//! [`rpc`] and [`access`] around every call and [`abortable`] around every connection; [`incoming`] accepts
//! connections; [`channel`] reaches other services, with [`Backoff`] between attempts, and [`dial`] opens a
//! connection for one; [`transport`] secures both with TLS; [`drain`] is the stop signal of a process;
//! [`version()`] is what it reports of itself; [`clock`] and [`ids`] are the only sources of time and
//! randomness.

mod abortable;
mod access;
pub mod address;
pub mod channel;
pub mod clock;
pub mod config;
pub mod dial;
mod documents;
pub mod drain;
pub mod ids;
pub mod incoming;
pub mod logs;
pub mod metrics;
pub mod nomad_names;
pub mod print;
mod process;
mod rpc;
pub mod run;
pub mod server;
pub mod settings;
pub mod telemetry;
pub mod trace_parent;
pub mod transport;
mod version;

pub use backoff::Backoff;
pub use channel::{TraceInterceptor, TracedChannel, connect_lazy, request};
pub use clock::{Clock, SteadyClock};
pub use config::{ConfigError, load};
pub use ids::IdSource;
pub use incoming::{Incoming, Opened};
pub use logs::Logs;
pub use metrics::Metrics;
pub use run::run_service;
pub use settings::{EtcdConfig, ListenConfig, LogFormat, TelemetryConfig, TlsConfig};
pub use telemetry::{Telemetry, TelemetryError};
pub use tokio_util::sync::CancellationToken;
pub use trace_parent::{SpanParent, current_trace_parent};
pub use transport::Transport;
pub use version::version;
