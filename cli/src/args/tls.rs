//! `kafila tls …`

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use identity::Role;

/// The files that `tls ca create` writes and `tls cert create` reads by default.
pub(crate) const CA_FILE: &str = "kafila-ca.pem";
pub(crate) const CA_KEY_FILE: &str = "kafila-ca-key.pem";
/// Those of `tls ca create -node-ca`.
pub(crate) const NODE_CA_FILE: &str = "kafila-node-ca.pem";
pub(crate) const NODE_CA_KEY_FILE: &str = "kafila-node-ca-key.pem";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a CA, or show its certificate
    #[command(subcommand)]
    Ca(Ca),
    /// Create certificates of a CA, or show the contents of one
    #[command(subcommand)]
    Cert(Cert),
}

#[derive(Debug, Subcommand)]
pub enum Ca {
    /// Create a CA: a certificate and its key
    Create(CaCreate),
    /// Show the contents of a CA's certificate
    Info(CaInfo),
}

#[derive(Debug, Subcommand)]
pub enum Cert {
    /// Create a certificate for a service, a node, a person or etcd
    Create(CertCreate),
    /// Show the contents of a certificate
    Info(CertInfo),
}

/// The directory and names of written files.
#[derive(Debug, Args)]
pub struct Output {
    /// Directory of the files to write
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out_dir: PathBuf,
    /// Replace files that exist
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = CA_CREATE_EXAMPLES)]
pub struct CaCreate {
    /// Validity in days
    #[arg(long, value_name = "DAYS", default_value_t = 1_825, value_parser = super::values::days)]
    pub days: u32,
    /// Common name of the CA, for people [default: Kafila CA, or Kafila node CA]
    #[arg(long, value_name = "NAME")]
    pub common_name: Option<String>,
    /// Restrict certificates to DNS names in "kafila", "localhost" and each -additional-domain
    #[arg(long)]
    pub name_constraint: bool,
    /// A further domain for certificates, with its subdomains; needs -name-constraint. May be repeated
    #[arg(long, value_name = "DOMAIN", requires = "name_constraint")]
    pub additional_domain: Vec<String>,
    /// Create the CA of nodes, with which gateways issue certificates to nodes that join with an
    /// introduction token. Its certificates count for nodes of one region, and for nothing else
    #[arg(long, conflicts_with_all = ["name_constraint", "additional_domain"])]
    pub node_ca: bool,
    /// Region of the nodes; needs -node-ca
    #[arg(long, value_name = "REGION", default_value = "global")]
    pub region: String,
    #[command(flatten)]
    pub output: Output,
}

const CA_CREATE_EXAMPLES: &str = "\
Examples:
  kafila tls ca create
  kafila tls ca create -node-ca
  kafila tls ca create -days=3650 -name-constraint -additional-domain=example.com
  kafila tls ca create -common-name='etcd CA' -out-dir=etcd

Writes kafila-ca.pem and kafila-ca-key.pem. Every machine gets the first; the second creates
certificates, so it stays off the cluster. etcd needs a CA of its own: it accepts every certificate
of its CA, also those of nodes.

With -node-ca, writes kafila-node-ca.pem and kafila-node-ca-key.pem, both for the gateways.

Exit codes: 0 written; 1 a file exists or cannot be written, or a flag is wrong.";

#[derive(Debug, Args)]
#[command(after_help = CA_INFO_EXAMPLES)]
pub struct CaInfo {
    /// The certificate of the CA
    #[arg(default_value = CA_FILE)]
    pub path: PathBuf,
}

const CA_INFO_EXAMPLES: &str = "\
Examples:
  kafila tls ca info
  kafila tls ca info /etc/kafila/kafila-ca.pem

Exit codes: 0 shown; 1 the file is missing or is not a certificate of a CA.";

#[derive(Debug, Args)]
#[command(after_help = CERT_CREATE_EXAMPLES)]
pub struct CertCreate {
    /// Role: gateway, broker, worker, applier, watcher, controller, node, operator, monitor, etcd or
    /// etcd-client
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["server", "client", "cli"])]
    pub role: Option<Role>,
    /// As Nomad's servers: one certificate for each service (gateway, broker, worker, applier,
    /// watcher, controller), which have roles of their own
    #[arg(long, conflicts_with_all = ["client", "cli", "node", "name"])]
    pub server: bool,
    /// As Nomad's clients: the same as -role=node
    #[arg(long, conflicts_with = "cli")]
    pub client: bool,
    /// As Nomad's command: the same as -role=operator
    #[arg(long)]
    pub cli: bool,
    /// ID of the node, which its certificate is bound to: a new one, which the node takes at its first
    /// start, or the content of client-id in its data_dir [default: a new one]
    #[arg(long, value_name = "ID")]
    pub node: Option<String>,
    /// Name within the role, for logs and messages [default: the role]
    #[arg(long, value_name = "NAME", conflicts_with = "node")]
    pub name: Option<String>,
    /// Region of the service, node or person
    #[arg(long, value_name = "REGION", default_value = "global")]
    pub region: String,
    /// Validity in days
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = super::values::days)]
    pub days: u32,
    /// Certificate of the CA
    #[arg(long, value_name = "FILE", default_value = CA_FILE)]
    pub ca: PathBuf,
    /// Key of the CA
    #[arg(long, value_name = "FILE", default_value = CA_KEY_FILE)]
    pub key: PathBuf,
    /// A further DNS name of the server. May be repeated
    #[arg(long, value_name = "NAME")]
    pub additional_dnsname: Vec<String>,
    /// An IP address of the server. May be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = super::values::ip_address)]
    pub additional_ipaddress: Vec<IpAddr>,
    #[command(flatten)]
    pub output: Output,
}

const CERT_CREATE_EXAMPLES: &str = "\
Examples:
  kafila tls cert create -role=gateway -additional-dnsname=kafila.example.com
  kafila tls cert create -server -additional-ipaddress=10.0.0.1
  kafila tls cert create -role=node
  kafila tls cert create -role=node -node=$(cat /var/lib/kafila/client/client-id)
  kafila tls cert create -role=operator -name=alice -days=30
  kafila tls cert create -role=etcd -ca=etcd/kafila-ca.pem -key=etcd/kafila-ca-key.pem \\
    -additional-ipaddress=10.0.0.1

Writes REGION-ROLE.pem and REGION-ROLE-key.pem, with the name or the node's ID behind the role if
one is given. Services are verified by the DNS name of their role, so they need no addresses in their
certificates; gateways need those that commands use, and etcd those of its members.

Exit codes: 0 written; 1 a file exists or cannot be written, or a flag is wrong.";

#[derive(Debug, Args)]
#[command(after_help = CERT_INFO_EXAMPLES)]
pub struct CertInfo {
    /// The certificate
    pub path: PathBuf,
}

const CERT_INFO_EXAMPLES: &str = "\
Examples:
  kafila tls cert info global-gateway.pem

Exit codes: 0 shown; 1 the file is missing or is not a certificate.";
