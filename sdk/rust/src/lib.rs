//! Client of Kafila's gateways.
//!
//! ```no_run
//! use kafila_client::{Client, v1};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::from_env()?;
//! let request = v1::GetJobRequest { job_id: "web".to_owned(), ..Default::default() };
//! let answer = client.jobs().get(request).await?;
//! println!("{}", answer.job.unwrap_or_default().status());
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`Config`] names the gateways, [`Client`] makes the calls. Each service of
//! `kafila.v1` is a method of it, each RPC a method of the service ([`rpc`], generated from the protos),
//! which returns a [`Call`] or a [`StreamCall`]. A call is repeated, at another gateway if there is one, as
//! long as that is safe ([`RetryPolicy`]). [`Client::run_job`] and its siblings wait for outcomes;
//! [`Client::follow_events`] and [`Client::follow_logs`] are streams that go on after a break. An
//! [`Error`] tells whether a write may have taken effect.

pub mod address;
mod attempts;
mod call;
mod client;
mod config;
mod error;
mod follow;
mod method;
mod read;
pub mod rpc;
mod wait;

pub use call::{Call, DuplexCall, Opened, StreamCall};
pub use client::Client;
pub use config::{Config, ConfigError, MetadataSource, RetryPolicy, Tls};
pub use error::{Error, Kind};
pub use follow::{FollowEvents, FollowLogs};
/// Turns a JSON object into the options of a driver (`v1::Task::config`).
pub use job_fields::object;
pub use proto::v1;
pub use read::{Answer, List, Read};
pub use tls::Problem as TlsProblem;
pub use tonic::Code;
pub use wait::{JobRun, WaitError};
