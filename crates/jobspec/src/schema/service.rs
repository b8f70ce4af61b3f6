//! Services.

use hcl::schema::{Ignored, refused_block};

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
            "remove it, services are registered without Consul",
        ),
        refused_block(
            "tagged_addresses",
            "TaggedAddresses",
            "write the address in address, or in a service of its own",
        ),
    ],
    ignored: &[
        Ignored {
            name: "weights",
            json: "Weights",
            warning: "weights in a service block has no effect without Consul: remove it",
        },
        Ignored {
            name: "canary_meta",
            json: "CanaryMeta",
            warning: "canary_meta in a service block has no effect without Consul: remove it",
        },
    ],
    ..Extra::of("Service")
};
