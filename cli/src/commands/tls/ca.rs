//! `kafila tls ca create`

use pki::AuthorityRequest;

use super::files::{Pair, quoted};
use super::moment::moment;
use super::problem::{Flags, text};
use crate::args::tls::{CA_FILE, CA_KEY_FILE, CaCreate};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) fn create(context: &Context, args: &CaCreate) -> Result<Exit, Error> {
    let pair = Pair::new(&args.output, CA_FILE, CA_KEY_FILE);
    pair.check()?;
    let request = AuthorityRequest {
        common_name: args.common_name.clone(),
        days: args.days,
        is_constrained: args.name_constraint,
        additional_domains: args.additional_domain.clone(),
    };
    let created = pki::create_authority(&request, moment(context));
    let created = created.map_err(|error| text(&error, &Flags::of_authority()))?;
    pair.write(&created)?;
    let (certificate, key) = (quoted(&pair.certificate), quoted(&pair.key));
    context.finish(&format!(
        "CA certificate written to {certificate}\n\
         CA key written to {key}\n\n\
         Copy {certificate} to every machine. Keep {key} secret and off the cluster: it creates\n\
         certificates for every role. Next, create certificates:\n  \
         kafila tls cert create -role=gateway -ca={certificate} -key={key}"
    ))
}
