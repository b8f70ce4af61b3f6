//! `kafila operator …`

use crate::args::operator::Leaders;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json;
use crate::output::json::pretty;
use crate::render;

pub(super) async fn leaders(context: &Context, args: &Leaders) -> Result<Exit, Error> {
    let mut leaders = context.connection.leaders().await?;
    leaders.sort_by(|a, b| a.service.cmp(&b.service));
    let text = if args.json {
        let leaders: Vec<json::operator::Leader<'_>> = leaders.iter().map(Into::into).collect();
        pretty(&leaders)
    } else {
        render::operator::leaders(&leaders).render()
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}
