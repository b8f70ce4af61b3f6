//! Introduction tokens, and revoked nodes.

use proto::v1;

use super::Style;
use crate::output::fields::Fields;
use crate::output::table::Table;

pub(crate) fn table(tokens: &[v1::IntroductionToken], style: &Style) -> Table {
    let mut table = Table::new(["ID", "Uses", "Expires", "Node ID", "Node Name", "Node Pool"]);
    for token in tokens {
        table.row([
            style.id(&token.id),
            uses(token),
            style.time(token.expires_at_ns),
            style.id(&token.node_id),
            token.node_name.clone(),
            token.node_pool.clone(),
        ]);
    }
    table
}

/// A new token, with the text that a node needs.
pub(crate) fn created(text: &str, token: &v1::IntroductionToken, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("ID", token.id.as_str())
        .add("Expires", style.time(token.expires_at_ns))
        .add("Uses", uses(token))
        .add_some("Node ID", token.node_id.as_str())
        .add_some("Node Name", token.node_name.as_str())
        .add_some("Node Pool", token.node_pool.as_str())
        .add("Token", text);
    let held = [("node_pool", &token.node_pool), ("name", &token.node_name)];
    let held = held.iter().filter(|(_, value)| !value.is_empty());
    let held: String = held
        .map(|(key, value)| format!(" -set {key}={value}"))
        .collect();
    format!(
        "{}\n\nStart the node with this token and the certificate of the cluster's CA; the token is not \
         shown again:\n  \
         KAFILA_CLIENT_NODE__INTRODUCTION__TOKEN=… kafila client-node -set tls.ca_file=kafila-ca.pem \
         -set data_dir=/var/lib/kafila -set gateways=… -set listen.grpc=…{held}",
        fields.render()
    )
}

fn uses(token: &v1::IntroductionToken) -> String {
    match token.uses_max {
        0 => "no limit".to_owned(),
        max => format!("{} of {max}", token.uses),
    }
}

/// A revocation, with the token that is left to the machine.
pub(crate) fn revoked(answer: &v1::RevokeNodeResponse) -> String {
    let name = match answer.node_name.as_str() {
        "" => "not registered",
        name => name,
    };
    let text = format!("Revoked node \"{}\" ({name})", answer.node_id);
    match answer.usable_token_id.as_str() {
        "" => text,
        token => format!(
            "{text}\n\nThe token that it has joined with introduces further nodes, this machine as well. To \
             delete it:\n  kafila node introduction delete {token}"
        ),
    }
}

pub(crate) fn revocations(revoked: &[v1::NodeRevocation], style: &Style) -> Table {
    let mut table = Table::new(["Node ID", "Node Name", "Revoked", "Reason"]);
    for revocation in revoked {
        table.row([
            style.id(&revocation.node_id),
            revocation.node_name.clone(),
            style.time(revocation.revoked_at_ns),
            revocation.reason.clone(),
        ]);
    }
    table
}
