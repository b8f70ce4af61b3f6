//! `kafila tls cert create`

use identity::{Identity, InvalidIdentity, Role};
use model::NodeId;
use pki::{Authority, CertificateRequest};
use service_kit::IdSource;

use super::files::{Pair, quoted, read};
use super::moment::moment;
use super::problem::{Flags, text};
use crate::args::tls::CertCreate;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// The roles of the services, which Nomad's servers are together.
const SERVICES: [Role; 6] = [
    Role::Gateway,
    Role::Broker,
    Role::Worker,
    Role::Applier,
    Role::Watcher,
    Role::Controller,
];

pub(super) fn create(context: &Context, args: &CertCreate) -> Result<Exit, Error> {
    let identities = identities(args)?;
    let authority = authority(args)?;
    let mut issued = Vec::new();
    for identity in identities {
        let request = CertificateRequest {
            identity,
            days: args.days,
            dns_names: args.additional_dnsname.clone(),
            addresses: args.additional_ipaddress.clone(),
        };
        let certificate = authority.issue(&request, moment(context));
        let certificate =
            certificate.map_err(|error| text(&error, &Flags::of_certificate(args)))?;
        let stem = stem(&request.identity);
        let pair = Pair::new(
            &args.output,
            &format!("{stem}.pem"),
            &format!("{stem}-key.pem"),
        );
        pair.check()?;
        issued.push((request.identity, pair, certificate));
    }
    // All of them or none: every file was checked before the first is written.
    let mut out = String::new();
    for (identity, pair, certificate) in &issued {
        pair.write(certificate)?;
        out += &format!(
            "Certificate of {identity} written to {}\nKey written to {}\n",
            quoted(&pair.certificate),
            quoted(&pair.key)
        );
    }
    if let [(identity, pair, _)] = &issued[..] {
        out.push('\n');
        out += &advice(identity, pair, &quoted(&args.ca));
    } else {
        let ca = quoted(&args.ca);
        out += &format!(
            "\nCopy each pair with {ca} to the machines of its service, readable for its user only."
        );
    }
    context.finish(&out)
}

/// Returns the identities that the flags ask for.
fn identities(args: &CertCreate) -> Result<Vec<Identity>, Error> {
    let roles = roles(args)?;
    let mut identities = Vec::new();
    for role in roles {
        let name = name(args, role)?;
        let identity = Identity::new(role, &args.region, &name);
        identities.push(identity.map_err(|error| {
            let flag = match error {
                InvalidIdentity::Region(_) => "-region",
                _ => "-name",
            };
            Error::text(format!("Error: {flag}: {error}."))
        })?);
    }
    Ok(identities)
}

fn roles(args: &CertCreate) -> Result<Vec<Role>, Error> {
    if args.server {
        return Ok(SERVICES.to_vec());
    }
    let role = match args.role {
        Some(role) => role,
        None if args.client || (args.node.is_some() && !args.cli) => Role::Node,
        None if args.cli => Role::Operator,
        None => {
            let roles = Role::names();
            return Err(Error::text(format!(
                "Error: the role of the certificate is missing. Choose one with -role, of: {roles};\n\
                 or use -server (all services), -client (a node) or -cli (a person)."
            )));
        }
    };
    match (role, &args.node) {
        (Role::Node, _) | (_, None) => Ok(vec![role]),
        (role, Some(_)) => Err(Error::text(format!(
            "Error: -node is for role node, and the role is {role}. Leave out one of them."
        ))),
    }
}

fn name(args: &CertCreate, role: Role) -> Result<String, Error> {
    if role != Role::Node {
        return Ok(args.name.clone().unwrap_or_else(|| role.to_string()));
    }
    // The node takes the ID of its certificate at its first start.
    let Some(id) = &args.node else {
        return Ok(NodeId::from_random(IdSource::from_os().next_u128()).to_string());
    };
    match id.trim().parse::<NodeId>() {
        Ok(id) => Ok(id.to_string()),
        Err(error) => Err(Error::text(format!(
            "Error: -node: {error}. Pass the full ID, as in client/client-id in the node's data_dir."
        ))),
    }
}

fn authority(args: &CertCreate) -> Result<Authority, Error> {
    let missing = "Create a CA with 'kafila tls ca create', or name its files with -ca and -key.";
    let certificate = read(&args.ca, "-ca", missing)?;
    let key = read(&args.key, "-key", missing)?;
    Authority::read(&certificate, &key).map_err(|error| text(&error, &Flags::of_certificate(args)))
}

fn stem(identity: &Identity) -> String {
    let (region, role, name) = (identity.region(), identity.role(), identity.name());
    if name == role.as_str() {
        format!("{region}-{role}")
    } else {
        format!("{region}-{role}-{name}")
    }
}

/// Tells the use of the files.
fn advice(identity: &Identity, pair: &Pair, ca: &str) -> String {
    let (certificate, key) = (quoted(&pair.certificate), quoted(&pair.key));
    match identity.role() {
        Role::Operator | Role::Monitor => format!(
            "Give both files and {ca} to the person or program; 'kafila tls cert info {certificate}' \
             shows them."
        ),
        Role::Etcd => format!(
            "Start each member of etcd with these files and {ca}:\n  \
             --cert-file={certificate} --key-file={key} --client-cert-auth --trusted-ca-file={ca}\n  \
             --peer-cert-file={certificate} --peer-key-file={key} --peer-client-cert-auth \
             --peer-trusted-ca-file={ca}"
        ),
        Role::EtcdClient => {
            format!("Copy both files and {ca} to the machines of the services, which call etcd.")
        }
        Role::Node => format!(
            "Copy both files and {ca} to the node, readable for its agent only. No other node can \
             use them."
        ),
        _ => format!(
            "Copy both files and {ca} to the machines of the service, readable for its user only."
        ),
    }
}
