//! `kafila operator root keyring …`

use clap::{Args, Subcommand};

use crate::args::values::id;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show and rotate the keys that sign identity tokens of tasks
    #[command(subcommand)]
    Keyring(Keyring),
}

#[derive(Debug, Subcommand)]
pub enum Keyring {
    /// List the keys that sign identity tokens
    List(List),
    /// Rotate the signing key
    Rotate(Rotate),
    /// Remove a key that does not sign any more
    Remove(Remove),
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Show full IDs and exact times
    #[arg(long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
The active key signs. A retired key stays published until the last token that it may have signed has
expired; the next key is published a day before it signs. Gateways rotate the keys every 30 days.

Examples:
  kafila operator root keyring list

Exit codes: 0 listed; 1 the gateway did not answer.";

#[derive(Debug, Args)]
#[command(after_help = ROTATE_EXAMPLES)]
pub struct Rotate {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const ROTATE_EXAMPLES: &str = "\
Tokens of the present key stay valid, and tasks get tokens of the new one with their next renewal. A
verifier that caches the published keys refuses tokens of the new one until it reads them again.

Examples:
  kafila operator root keyring rotate

Exit codes: 0 rotated; 1 the gateway has no keyring_key_file, there are 16 keys, or no answer.";

#[derive(Debug, Args)]
#[command(after_help = REMOVE_EXAMPLES)]
pub struct Remove {
    /// The key's ID, or a unique prefix of it
    #[arg(value_parser = id)]
    pub key_id: String,
}

const REMOVE_EXAMPLES: &str = "\
Tokens of the key become invalid once their verifiers have read the published keys again. Tasks get new
ones at their next renewal or restart: restart the tasks that cannot wait.

Examples:
  kafila operator root keyring rotate
  kafila operator root keyring remove 7c1e90aa

Exit codes: 0 removed; 1 the key is active, there is no such key, ambiguous, or no answer.";
