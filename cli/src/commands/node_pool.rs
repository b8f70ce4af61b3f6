//! `kafila node pool …`

use std::path::PathBuf;

use super::{example, page};
use crate::args::node_pool::{Apply, Command, Delete, Form, Info, Init, Jobs, List, Nodes};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::node_pool as file;
use crate::output::json::pretty;
use crate::{json, render};

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::List(args) => list(context, args).await,
        Command::Info(args) => info(context, args).await,
        Command::Apply(args) => apply(context, args).await,
        Command::Delete(args) => delete(context, args).await,
        Command::Init(args) => init(context, args),
        Command::Nodes(args) => nodes(context, args).await,
        Command::Jobs(args) => jobs(context, args).await,
    }
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let options = page::options(context, "", &args.page);
    let pools = context.connection.node_pools(options).await?;
    page::show::<_, json::node_pool::NodePool>(context, &pools, args.json, |pools| {
        render::node_pool::table(pools).render()
    })
}

async fn info(context: &Context, args: &Info) -> Result<Exit, Error> {
    let pool = context.connection.node_pool(&args.name).await?;
    context.finish(&if args.json {
        pretty(&json::node_pool::NodePool::from(&pool))
    } else {
        render::node_pool::info(&pool, &context.style(false))
    })
}

async fn apply(context: &Context, args: &Apply) -> Result<Exit, Error> {
    let pool = file::read(&args.path, args.json, context.printer.colour_err)?;
    let name = pool.name.clone();
    context.connection.apply_node_pool(pool).await?;
    context.finish(&format!("Successfully applied node pool \"{name}\"!"))
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    context.connection.delete_node_pool(&args.name).await?;
    context.finish(&format!(
        "Successfully deleted node pool \"{}\"!",
        args.name
    ))
}

fn init(context: &Context, args: &Init) -> Result<Exit, Error> {
    let (default, text) = match args.out {
        Form::Hcl => ("pool.hcl", file::EXAMPLE_HCL),
        Form::Json => ("pool.json", file::EXAMPLE_JSON),
    };
    let path = args.path.clone().unwrap_or_else(|| PathBuf::from(default));
    example::write(context, &path, ("node pool", text), args.quiet)
}

async fn nodes(context: &Context, args: &Nodes) -> Result<Exit, Error> {
    let options = page::options(context, "", &args.page);
    let connection = &context.connection;
    let nodes = connection.node_pool_nodes(&args.name, options).await?;
    let style = context.style(args.verbose);
    page::show::<_, json::node::Node<'_>>(context, &nodes, args.json, |nodes| {
        if nodes.is_empty() {
            "No nodes".to_owned()
        } else if args.quiet {
            render::node::ids(nodes, &style)
        } else {
            render::node::table(nodes, render::node::Columns::default(), &style).render()
        }
    })
}

async fn jobs(context: &Context, args: &Jobs) -> Result<Exit, Error> {
    let connection = &context.connection;
    let namespace = connection.namespace();
    let options = page::options(context, namespace, &args.page);
    let jobs = connection.node_pool_jobs(&args.name, options).await?;
    page::show::<_, json::job::JobStub<'_>>(context, &jobs, args.json, |jobs| {
        if jobs.is_empty() {
            "No jobs".to_owned()
        } else {
            render::job::table(jobs, namespace == "*", &context.style(false)).render()
        }
    })
}
