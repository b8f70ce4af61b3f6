//! `kafila version`

use crate::args::Version;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) async fn run(context: &Context, args: &Version) -> Result<Exit, Error> {
    context
        .printer
        .out(concat!("Kafila v", env!("CARGO_PKG_VERSION")))?;
    if args.gateway {
        let version = context.connection.gateway_version().await?;
        let url = &context.connection.address().url;
        context
            .printer
            .out(&format!("Gateway v{version} at {url}"))?;
    }
    Ok(Exit::Success)
}
