//! `kafila node introduction …`

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::args::page::Page;
use crate::args::values::{duration, id, whole};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a token with which a node joins
    Create(Create),
    /// List introduction tokens
    List(List),
    /// Delete an introduction token
    Delete(Delete),
    /// Revoke a node: gateways refuse its calls and issue no certificate for it
    Revoke(Revoke),
    /// End the revocation of a node
    Reinstate(Reinstate),
    /// List revoked nodes
    Revoked(Revoked),
}

#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct Create {
    /// Name that the node has to register with [default: any]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// Node pool that the nodes have to register with [default: any]
    #[arg(long, value_name = "POOL")]
    pub node_pool: Option<String>,
    /// ID of a node that has one already: the content of client-id in its data_dir [default: a new one]
    #[arg(long, value_name = "ID")]
    pub node: Option<String>,
    /// Validity of the token, for example 12h or 7d; at most 30d
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub ttl: Duration,
    /// Number of nodes that it introduces; 0: no limit until it expires
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>)]
    pub uses: u32,
    /// Print only the token
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const CREATE_EXAMPLES: &str = "\
Examples:
  kafila node introduction create
  kafila node introduction create -node-pool=gpu -ttl=30m
  kafila node introduction create -uses=20 -ttl=24h -quiet > token
  kafila node introduction create -node=$(cat /var/lib/kafila/client/client-id)

A node with the setting introduction.token or introduction.token_file makes a key, gets a certificate
for it from a gateway, and renews it. The token is shown once. Until it expires or is used up, it lets
each machine that has it join as a node: keep it secret.

Exit codes: 0 created; 1 the gateways have no CA of nodes, a flag is wrong, or no answer.";

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs and exact times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kafila node introduction list

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    /// The token's ID, or a unique prefix of it
    #[arg(value_parser = id)]
    pub id: String,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  kafila node introduction delete 7c1e90aa

The token introduces no further node. Nodes that have joined with it keep their certificates.

Exit codes: 0 deleted; 1 no such token, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = REVOKE_EXAMPLES)]
pub struct Revoke {
    /// The node's ID, or a unique prefix of the ID of a node that is registered or has joined
    #[arg(value_parser = id)]
    pub node_id: String,
    /// Reason for the list of revoked nodes, up to 256 bytes [default: none]
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

const REVOKE_EXAMPLES: &str = "\
Examples:
  kafila node introduction revoke 4d2ba53b
  kafila node introduction revoke -reason='disk sold' 4d2ba53b-6f0e-4c1b-8a52-9d7e3f0c1b2a

Gateways refuse the node's calls, end its open stream, and issue and renew no certificate for its ID,
whichever CA its present one is from. The node is down once its heartbeat TTL is over, and its
allocations are replaced. Its tasks run until the machine stops them: stop the agent and the tasks there.

A token that the machine still has lets it join as another node: delete the token.

Exit codes: 0 revoked, or revoked before; 1 no such node, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = REINSTATE_EXAMPLES)]
pub struct Reinstate {
    /// The ID of a revoked node, or a unique prefix of it
    #[arg(value_parser = id)]
    pub node_id: String,
}

const REINSTATE_EXAMPLES: &str = "\
Examples:
  kafila node introduction reinstate 4d2ba53b

A node whose agent runs and whose certificate is valid registers again within a minute.

Exit codes: 0 reinstated; 1 not revoked, ambiguous, or the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = REVOKED_EXAMPLES)]
pub struct Revoked {
    #[command(flatten)]
    pub page: Page,
    /// Show full IDs and exact times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const REVOKED_EXAMPLES: &str = "\
Examples:
  kafila node introduction revoked

Exit codes: 0 listed; 1 the gateway did not answer.";
