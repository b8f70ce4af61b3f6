//! `kafila node meta …`

use std::collections::HashMap;

use proto::v1;

use crate::args::node::meta::{Apply, Command, Read};
use crate::commands::local_node::chosen;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render};

pub(crate) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Apply(args) => apply(context, args).await,
        Command::Read(args) => read(context, args).await,
    }
}

async fn apply(context: &Context, args: &Apply) -> Result<Exit, Error> {
    let set = args.words.iter().map(|word| pair(word));
    let set = set.collect::<Result<HashMap<_, _>, _>>()?;
    let node = chosen(context, args.node_id.as_deref()).await?;
    let request = v1::ApplyNodeMetaRequest {
        node_id: node.id.clone(),
        set,
        unset: args.unset.clone(),
    };
    context.connection.apply_node_meta(request).await?;
    context.finish(&format!(
        "Applied metadata of node {} ({})",
        context.style(false).id(&node.id),
        node.name
    ))
}

async fn read(context: &Context, args: &Read) -> Result<Exit, Error> {
    let node = chosen(context, args.node_id.as_deref()).await?;
    let meta = context.connection.node_meta(&node.id).await?;
    context.finish(&if args.json {
        pretty(&json::node::Meta::from(&meta))
    } else {
        render::node_meta::sections(&meta, &context.style(false))
    })
}

fn pair(word: &str) -> Result<(String, String), Error> {
    let (name, value) = word.split_once('=').ok_or_else(|| {
        Error::text(format!(
            "{word:?} is no pair: want NAME=VALUE, as in rack=r1"
        ))
    })?;
    Ok((name.to_owned(), value.to_owned()))
}
