//! `kafila tls ca create`

use pki::{AuthorityRequest, NodeAuthorityRequest};

use super::files::{Pair, quoted};
use super::moment::moment;
use super::problem::{Flags, text};
use crate::args::tls::{CA_FILE, CA_KEY_FILE, CaCreate, NODE_CA_FILE, NODE_CA_KEY_FILE};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) fn create(context: &Context, args: &CaCreate) -> Result<Exit, Error> {
    if args.node_ca {
        return create_for_nodes(context, args);
    }
    let pair = Pair::new(&args.output, CA_FILE, CA_KEY_FILE);
    pair.check()?;
    let request = AuthorityRequest {
        common_name: name(args, "Kafila CA"),
        days: args.days,
        is_constrained: args.name_constraint,
        additional_domains: args.additional_domain.clone(),
    };
    let created = pki::create_authority(&request, moment(context));
    let created = created.map_err(|error| text(&error, &Flags::of_authority()))?;
    pair.write(&created)?;
    let (certificate, key) = (quoted(&pair.certificate), quoted(&pair.key));
    let of_cluster = format!(
        "create certificates of services, nodes and people; each machine needs {certificate}, too:\n  \
         kafila tls cert create -role=gateway -ca={certificate} -key={key}"
    );
    let of_etcd = format!(
        "those of its members and of the\n\
         services as its clients; only their machines need {certificate}:\n  \
         kafila tls cert create -role=etcd -ca={certificate} -key={key}\n  \
         kafila tls cert create -role=etcd-client -ca={certificate} -key={key}"
    );
    let next = if is_of_etcd(args) {
        format!("Next, create certificates of etcd: {of_etcd}")
    } else {
        format!(
            "Next, {of_cluster}\n\
             Or, if this is the CA of etcd, which needs one of its own, {of_etcd}"
        )
    };
    context.finish(&format!(
        "CA certificate written to {certificate}\n\
         CA key written to {key}\n\n\
         Keep {key} secret and off the cluster: it creates certificates for every role.\n\
         {next}"
    ))
}

/// Tells whether the CA is named after etcd.
fn is_of_etcd(args: &CaCreate) -> bool {
    let name = args.common_name.as_deref().unwrap_or_default();
    name.to_ascii_lowercase().contains("etcd")
}

fn create_for_nodes(context: &Context, args: &CaCreate) -> Result<Exit, Error> {
    let pair = Pair::new(&args.output, NODE_CA_FILE, NODE_CA_KEY_FILE);
    pair.check()?;
    let request = NodeAuthorityRequest {
        common_name: name(args, "Kafila node CA"),
        days: args.days,
        region: args.region.clone(),
    };
    let created = pki::create_node_authority(&request, moment(context));
    let created = created.map_err(|error| text(&error, &Flags::of_authority()))?;
    pair.write(&created)?;
    let (certificate, key) = (quoted(&pair.certificate), quoted(&pair.key));
    context.finish(&format!(
        "Node CA certificate written to {certificate}\n\
         Node CA key written to {key}\n\n\
         Copy both files to every gateway, readable for its user only, and name them in\n\
         node_ca_cert_file and node_ca_key_file. Nothing else needs them. Next, restart the gateways\n\
         and create a token for a node:\n  \
         kafila node introduction create"
    ))
}

fn name(args: &CaCreate, default: &str) -> String {
    args.common_name
        .clone()
        .unwrap_or_else(|| default.to_owned())
}
