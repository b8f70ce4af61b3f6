//! `kafila node pool …`

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use proto::v1;

use crate::args::node_pool::{Apply, Command, Delete, Form, Info, Init, Jobs, List, Nodes};
use crate::commands::page::next_page;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::poolfile;
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
    let options = page(context, "", args.per_page, args.page_token.as_ref());
    let (pools, next_token) = context.connection.node_pools(options).await?;
    let text = if args.json {
        let pools: Vec<json::node_pool::NodePool<'_>> = pools.iter().map(Into::into).collect();
        pretty(&pools)
    } else {
        render::node_pool::table(&pools).render()
    };
    context.printer.out(&text)?;
    say_next(context, &next_token);
    Ok(Exit::Success)
}

async fn info(context: &Context, args: &Info) -> Result<Exit, Error> {
    let pool = context.connection.node_pool(&args.name).await?;
    let text = if args.json {
        pretty(&json::node_pool::NodePool::from(&pool))
    } else {
        render::node_pool::info(&pool, &context.style(false))
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

async fn apply(context: &Context, args: &Apply) -> Result<Exit, Error> {
    let pool = poolfile::read(&args.path, args.json)?;
    let name = pool.name.clone();
    context.connection.apply_node_pool(pool).await?;
    let said = format!("Successfully applied node pool \"{name}\"!");
    context.printer.out(&said)?;
    Ok(Exit::Success)
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    context.connection.delete_node_pool(&args.name).await?;
    let said = format!("Successfully deleted node pool \"{}\"!", args.name);
    context.printer.out(&said)?;
    Ok(Exit::Success)
}

fn init(context: &Context, args: &Init) -> Result<Exit, Error> {
    let (usual, text) = match args.out {
        Form::Hcl => ("pool.hcl", poolfile::EXAMPLE_HCL),
        Form::Json => ("pool.json", poolfile::EXAMPLE_JSON),
    };
    let path = args.path.clone().unwrap_or_else(|| PathBuf::from(usual));
    write_new(&path, text).map_err(|error| {
        let path = path.display();
        Error::text(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("File \"{path}\" already exists: name another, or remove it.")
            }
            _ => format!("Error writing \"{path}\": {error}"),
        })
    })?;
    if !args.quiet {
        let said = format!(
            "Example node pool specification written to {}",
            path.display()
        );
        context.printer.out(&said)?;
    }
    Ok(Exit::Success)
}

pub(super) fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

async fn nodes(context: &Context, args: &Nodes) -> Result<Exit, Error> {
    let options = page(context, "", args.per_page, args.page_token.as_ref());
    let connection = &context.connection;
    let (nodes, next_token) = connection.node_pool_nodes(&args.name, options).await?;
    let style = context.style(args.verbose);
    let text = if args.json {
        let nodes: Vec<json::node::Node<'_>> = nodes.iter().map(Into::into).collect();
        pretty(&nodes)
    } else if nodes.is_empty() {
        "No nodes".to_owned()
    } else if args.quiet {
        let ids: Vec<String> = nodes.iter().map(|node| style.id(&node.id)).collect();
        ids.join("\n")
    } else {
        render::node::table(&nodes, render::node::Columns::default(), &style).render()
    };
    context.printer.out(&text)?;
    say_next(context, &next_token);
    Ok(Exit::Success)
}

async fn jobs(context: &Context, args: &Jobs) -> Result<Exit, Error> {
    let connection = &context.connection;
    let namespace = connection.namespace();
    let options = page(context, namespace, args.per_page, args.page_token.as_ref());
    let (jobs, next_token) = connection.node_pool_jobs(&args.name, options).await?;
    let text = if args.json {
        let jobs: Vec<json::job::JobStub<'_>> = jobs.iter().map(Into::into).collect();
        pretty(&jobs)
    } else if jobs.is_empty() {
        "No jobs".to_owned()
    } else {
        render::job::table(&jobs, namespace == "*", &context.style(false)).render()
    };
    context.printer.out(&text)?;
    say_next(context, &next_token);
    Ok(Exit::Success)
}

pub(super) fn page(
    context: &Context,
    namespace: &str,
    per_page: Option<u32>,
    token: Option<&String>,
) -> v1::QueryOptions {
    v1::QueryOptions {
        per_page: per_page.unwrap_or_default(),
        next_token: token.cloned().unwrap_or_default(),
        ..context.connection.options(namespace)
    }
}

pub(super) fn say_next(context: &Context, token: &str) {
    if !token.is_empty() {
        context.printer.err(&next_page(&context.words, token));
    }
}
