//! `kafila system …`

use crate::args::system::Gc;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::render;

pub(super) async fn gc(context: &Context, args: &Gc) -> Result<Exit, Error> {
    let collected = context.connection.collect_garbage().await?;
    if args.verbose {
        context
            .printer
            .out(&render::operator::collected(&collected))?;
    }
    Ok(Exit::Success)
}
