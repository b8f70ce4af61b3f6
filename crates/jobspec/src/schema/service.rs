//! Services.

use hcl::schema::refused_block;

use super::extra::Extra;

pub(super) const SERVICE: Extra = Extra {
    refused: &[
        refused_block(
            "connect",
            "Connect",
            "remove it, Consul Connect is not used: let the tasks reach each other by address and port",
        ),
        refused_block(
            "identity",
            "Identity",
            "remove it, services are registered in Consul with the token of the node (consul.token_file)",
        ),
    ],
    ..Extra::of("Service")
};
