//! `kafila plugin …`

use proto::v1;

use super::page;
use crate::args::plugin::{Command, Status};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render};

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    let Command::Status(args) = command;
    match &args.id {
        Some(id) => show(context, id, args).await,
        None => list(context, args).await,
    }
}

async fn show(context: &Context, id: &str, args: &Status) -> Result<Exit, Error> {
    let plugin = context.connection.csi_plugin(id).await?;
    context.finish(&if args.json {
        pretty(&json::csi::CsiPlugin::from(&plugin))
    } else {
        render::csi::plugin(&plugin, &context.style(args.verbose))
    })
}

async fn list(context: &Context, args: &Status) -> Result<Exit, Error> {
    let connection = &context.connection;
    let message = v1::ListCsiPluginsRequest {
        options: Some(page::options(context, connection.namespace(), &args.page)),
    };
    let plugins = connection.csi_plugins(message).await?;
    page::show::<_, json::csi::CsiPlugin>(context, &plugins, args.json, |plugins| {
        if plugins.is_empty() {
            "No CSI plugins".to_owned()
        } else {
            render::csi::plugins(plugins).render()
        }
    })
}
