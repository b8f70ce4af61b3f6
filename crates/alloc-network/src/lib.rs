//! Networks of allocations: a network namespace for each, set up by CNI plugins, with ports of the host
//! mapped into it by nftables.
//!
//! In reading order: [`config`] holds the operator's settings; [`plan`] is the network that an
//! allocation asks for; `conflist` and `request` are the plugins' configuration, `answer` their result,
//! `plugins` runs them; `ruleset` is the text of nftables, `listing` its state, `nft` and `iptables` run
//! the programs (`program`); `netns` makes and pins namespaces; `dns` writes `hosts` and `resolv.conf`;
//! `records` on disk name every network before it exists; [`networks`] sets networks up, checks them
//! removes them and keeps them up; [`offer`] tells which networks the node can set up.
//!
//! All operations block: callers run them on threads for blocking work.
//!
//! **Invariant**: nothing of a network exists without a record, because the record is written first and
//! removed last. An agent that was killed removes the rest from the record.
//!
//! **Invariant**: the port mappings of an allocation change in one transaction of nftables. No lock is
//! held across allocations.

mod answer;
pub mod config;
mod conflist;
mod dns;
mod error;
mod iptables;
mod listing;
mod netns;
pub mod networks;
mod nft;
pub mod offer;
pub mod plan;
mod plugins;
mod program;
mod records;
mod request;
mod ruleset;

pub use config::NetworkConfig;
pub use error::Error;
pub use networks::{Network, Networks, Settings, Source};
pub use offer::Offer;
pub use plan::{Mode, Names, Plan, PortMapping};
