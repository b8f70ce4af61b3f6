//! `kafila alloc checks`

use crate::args::alloc::Checks;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render, resolve};

pub(crate) async fn run(context: &Context, args: &Checks) -> Result<Exit, Error> {
    let style = context.style_err(args.verbose);
    let alloc = resolve::allocation(&context.connection, &args.id, &style).await?;
    let checks = context.connection.allocation_checks(&alloc.id).await?;
    context.finish(&if args.json {
        pretty(&json::service::checks(&checks))
    } else {
        render::service::checks(&checks, &context.style(args.verbose))
    })
}
