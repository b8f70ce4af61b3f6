//! `kafila node introduction …`

use proto::v1;

use crate::args::node::introduction::{Command, Create, Delete, List, Reinstate, Revoke, Revoked};
use crate::commands::page;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json::introduction::{CreatedToken, IntroductionToken};
use crate::json::revocation::NodeRevocation;
use crate::output::json::pretty;
use crate::render;

pub(crate) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Create(args) => create(context, args).await,
        Command::List(args) => list(context, args).await,
        Command::Delete(args) => delete(context, args).await,
        Command::Revoke(args) => revoke(context, args).await,
        Command::Reinstate(args) => reinstate(context, args).await,
        Command::Revoked(args) => revoked(context, args).await,
    }
}

async fn create(context: &Context, args: &Create) -> Result<Exit, Error> {
    let message = v1::CreateIntroductionTokenRequest {
        ttl: Some(proto::duration_to_wire(args.ttl)),
        uses: Some(args.uses),
        node_id: args.node.as_deref().unwrap_or_default().trim().to_owned(),
        node_name: args.node_name.clone().unwrap_or_default(),
        node_pool: args.node_pool.clone().unwrap_or_default(),
    };
    let (text, token) = context
        .connection
        .create_introduction_token(message)
        .await?;
    context.finish(&if args.quiet {
        text
    } else if args.json {
        pretty(&CreatedToken::new(&text, &token))
    } else {
        render::introduction::created(&text, &token, &context.style(true))
    })
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let options = page::options(context, "", &args.page);
    let tokens = context.connection.introduction_tokens(options).await?;
    page::show::<_, IntroductionToken<'_>>(context, &tokens, args.json, |tokens| {
        if tokens.is_empty() {
            "No introduction tokens".to_owned()
        } else {
            render::introduction::table(tokens, &context.style(args.verbose)).render()
        }
    })
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    let id = context
        .connection
        .delete_introduction_token(&args.id)
        .await?;
    context.finish(&format!("Deleted introduction token \"{id}\""))
}

async fn revoke(context: &Context, args: &Revoke) -> Result<Exit, Error> {
    let reason = args.reason.as_deref().unwrap_or_default();
    let revoked = context
        .connection
        .revoke_node(&args.node_id, reason)
        .await?;
    context.finish(&render::introduction::revoked(&revoked))
}

async fn reinstate(context: &Context, args: &Reinstate) -> Result<Exit, Error> {
    let id = context.connection.reinstate_node(&args.node_id).await?;
    context.finish(&format!("Reinstated node \"{id}\""))
}

async fn revoked(context: &Context, args: &Revoked) -> Result<Exit, Error> {
    let options = page::options(context, "", &args.page);
    let revoked = context.connection.node_revocations(options).await?;
    page::show::<_, NodeRevocation<'_>>(context, &revoked, args.json, |revoked| {
        if revoked.is_empty() {
            "No revoked nodes".to_owned()
        } else {
            render::introduction::revocations(revoked, &context.style(args.verbose)).render()
        }
    })
}
