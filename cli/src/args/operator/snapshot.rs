//! `kafila operator snapshot …`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Save a snapshot of etcd into a file
    Save(Save),
    /// Verify a snapshot, and show its revision and the number of keys per table
    Inspect(Inspect),
    /// Create an etcd member's data directory from a snapshot; revisions do not go back
    Restore(Restore),
    /// Save a snapshot at an interval, and keep the newest
    Agent(Agent),
}

#[derive(Debug, Args)]
#[command(after_help = SAVE_EXAMPLES)]
pub struct Save {
    /// The file, or s3://BUCKET/KEY, which must not exist [default: kafila-TIME.db in the current
    /// directory; s3://BUCKET/PREFIX/ gets that name, too]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub s3: S3,
}

/// The way to a bucket. The environment variables are those of Amazon's command.
#[derive(Debug, Args)]
pub struct S3 {
    /// URL of a store that is compatible with S3 [default: $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL,
    /// or Amazon's of the region]
    #[arg(long, value_name = "URL")]
    pub s3_endpoint: Option<String>,
    /// Region of the bucket [default: $AWS_REGION, $AWS_DEFAULT_REGION, or us-east-1]
    #[arg(long, value_name = "REGION")]
    pub s3_region: Option<String>,
    /// File with the access key, in the section $AWS_PROFILE or default [default: $AWS_ACCESS_KEY_ID
    /// and $AWS_SECRET_ACCESS_KEY, or $AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials]
    #[arg(long, value_name = "FILE")]
    pub s3_credentials_file: Option<PathBuf>,
    /// Authorities of the endpoint's certificate [default: $AWS_CA_BUNDLE, or this machine's]
    #[arg(long, value_name = "FILE")]
    pub s3_ca_file: Option<PathBuf>,
    /// Accept an http endpoint beyond loopback: every machine on the way can read the snapshots
    #[arg(long)]
    pub s3_dangerously_allow_plaintext: bool,
}

const SAVE_EXAMPLES: &str = "\
Examples:
  kafila operator snapshot save
  kafila operator snapshot save /backup/kafila.db
  kafila operator snapshot save -s3-region eu-west-1 s3://backups/kafila/

The gateway streams the snapshot, so only it needs access to etcd. The file is verified before it gets
its name. It holds every secret of the cluster: only its owner may read it. On its way to S3 it is in
the directory for temporary files ($TMPDIR), which needs room for it.

Exit codes: 0 saved; 1 an error, and no file.";

#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct Inspect {
    /// The snapshot
    pub file: PathBuf,
    /// Prefix of the services' keys in etcd
    #[arg(long, value_name = "PREFIX", default_value = DEFAULT_PREFIX)]
    pub prefix: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The default of the services' setting `etcd.prefix`.
const DEFAULT_PREFIX: &str = "/kafila/v1/";

const INSPECT_EXAMPLES: &str = "\
Examples:
  kafila operator snapshot inspect /backup/kafila.db
  kafila operator snapshot inspect -json /backup/kafila.db | jq .Revision

Exit codes: 0 complete and shown; 1 incomplete, damaged, or no snapshot.";

#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct Restore {
    /// The snapshot
    pub file: PathBuf,
    /// The data directory to create, for a member of etcd that does not run
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// The number added to the snapshot's revision: more than all writes since it was saved, those
    /// after earlier restores included
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BUMP, value_parser = crate::args::values::whole::<u64>)]
    pub bump_revision: u64,
    /// Name of the member
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub name: String,
    /// All members, as NAME=PEER-URL, separated by commas [default: this member alone]
    #[arg(long, value_name = "MEMBERS", requires = "initial_cluster_token")]
    pub initial_cluster: Option<String>,
    /// Name of the restored cluster: the same for all members, and new at each restore [default with
    /// one member: a new one]
    #[arg(long, value_name = "TOKEN")]
    pub initial_cluster_token: Option<String>,
    /// Peer URL of the member
    #[arg(long, value_name = "URL", default_value = "http://localhost:2380")]
    pub initial_advertise_peer_urls: String,
    /// The program etcdutl, of the version of etcd
    #[arg(long, value_name = "PROGRAM", default_value = "etcdutl")]
    pub etcdutl: PathBuf,
}

/// More than any cluster writes between two backups.
const DEFAULT_BUMP: u64 = 1_000_000_000;

const RESTORE_EXAMPLES: &str = "\
Examples:
  kafila operator snapshot restore -data-dir /var/lib/etcd/restored /backup/kafila.db
  kafila operator snapshot restore -data-dir /var/lib/etcd/restored -name e1 \\
    -initial-cluster e1=http://10.0.0.1:2380,e2=http://10.0.0.2:2380,e3=http://10.0.0.3:2380 \\
    -initial-cluster-token restored-1 -initial-advertise-peer-urls http://10.0.0.1:2380 kafila.db

Runs etcdutl, without a gateway, once for each member with the same file. Stop all services and all
members first, then start every member with its new directory, then the services.

Exit codes: 0 created; 1 the snapshot is damaged, the directory is not empty, or etcdutl failed.";

#[derive(Debug, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub struct Agent {
    /// Directory of the snapshots
    #[arg(long, value_name = "DIR", required_unless_present = "s3")]
    pub dir: Option<PathBuf>,
    /// Bucket of the snapshots, instead of a directory
    #[arg(long, value_name = "s3://BUCKET/PREFIX", conflicts_with = "dir", value_parser = s3::Location::read)]
    pub s3: Option<s3::Location>,
    /// Time between two snapshots
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = interval)]
    pub interval: Duration,
    /// Snapshots to keep; older ones of this command are deleted
    #[arg(long, value_name = "N", default_value = "24", value_parser = retain)]
    pub retain: u32,
    #[command(flatten)]
    pub settings: S3,
}

const AGENT_EXAMPLES: &str = "\
Examples:
  kafila operator snapshot agent -dir /backup/kafila
  kafila operator snapshot agent -dir /backup/kafila -interval 6h -retain 28
  kafila operator snapshot agent -s3 s3://backups/kafila -s3-region eu-west-1
  kafila operator snapshot agent -s3 s3://backups/kafila -s3-endpoint https://minio.example:9000

Runs until SIGTERM or Ctrl-C. After a restart it continues the interval of the newest snapshot. A
snapshot that fails is tried again, with growing delays. Copy a directory to another machine. Only
complete uploads are in the bucket, and only objects of this command directly below the prefix are
counted and deleted. Parts of an upload that a crash ended are removed by a lifecycle rule of the bucket
(AbortIncompleteMultipartUpload).

Exit codes: 0 ended by a signal; 1 the directory or the bucket cannot be used at the start.";

/// Shortest interval: each snapshot reads the whole database.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = crate::args::values::duration(text)?;
    if interval < MIN_INTERVAL {
        return Err(format!("want at least {}s", MIN_INTERVAL.as_secs()));
    }
    Ok(interval)
}

fn retain(text: &str) -> Result<u32, String> {
    let count: Option<u32> = text.parse().ok();
    let count = count.filter(|count| *count > 0);
    count.ok_or_else(|| "want a whole number of 1 or more".to_owned())
}
