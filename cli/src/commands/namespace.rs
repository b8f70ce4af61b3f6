//! `kafila namespace …`

use std::path::Path;

use proto::v1;

use super::node_pool::{page, say_next};
use crate::args::namespace::{Apply, Command, Delete, Inspect, List, Status};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::jobfile::STDIN;
use crate::output::json::pretty;
use crate::{json, namespacefile, render};

/// How often a change by name is begun anew because somebody else has changed the namespace.
const MAX_ATTEMPTS: usize = 5;

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::List(args) => list(context, args).await,
        Command::Status(args) => status(context, args).await,
        Command::Inspect(args) => inspect(context, args).await,
        Command::Apply(args) => apply(context, args).await,
        Command::Delete(args) => delete(context, args).await,
    }
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let options = page(context, "", args.per_page, args.page_token.as_ref());
    let (namespaces, next_token) = context.connection.namespaces(options).await?;
    let text = if args.json {
        let namespaces = namespaces.iter().map(Into::into);
        pretty(&namespaces.collect::<Vec<json::namespace::Namespace<'_>>>())
    } else {
        render::namespace::table(&namespaces).render()
    };
    context.printer.out(&text)?;
    say_next(context, &next_token);
    Ok(Exit::Success)
}

async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let namespace = context.connection.namespace_named(&args.name).await?;
    let text = if args.json {
        pretty(&json::namespace::Namespace::from(&namespace))
    } else {
        render::namespace::status(&namespace, &context.style(false))
    };
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

async fn inspect(context: &Context, args: &Inspect) -> Result<Exit, Error> {
    let namespace = context.connection.namespace_named(&args.name).await?;
    let text = pretty(&json::namespace::Namespace::from(&namespace));
    context.printer.out(&text)?;
    Ok(Exit::Success)
}

async fn apply(context: &Context, args: &Apply) -> Result<Exit, Error> {
    let path = Path::new(&args.input);
    let is_file = args.input == STDIN || args.json || path.is_file();
    let name = if is_file {
        let mut namespace = namespacefile::read(path, args.json)?;
        if let Some(description) = &args.description {
            namespace.description.clone_from(description);
        }
        let name = namespace.name.clone();
        context.connection.apply_namespace(namespace, None).await?;
        name
    } else {
        apply_named(context, args).await?;
        args.input.clone()
    };
    let said = format!("Successfully applied namespace \"{name}\"!");
    context.printer.out(&said)?;
    Ok(Exit::Success)
}

/// Changes what the flags say, and leaves the rest as whoever came before has made it.
async fn apply_named(context: &Context, args: &Apply) -> Result<(), Error> {
    if let Some(problem) = model::Namespace::name_problem(&args.input) {
        let input = &args.input;
        let text = format!("There is no file \"{input}\", and as a name {problem}.");
        return Err(Error::text(text));
    }
    let connection = &context.connection;
    for attempt in 1.. {
        let found = match connection.namespace_named(&args.input).await {
            Ok(found) => Some(found),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let mut namespace = found.unwrap_or_else(|| v1::Namespace {
            name: args.input.clone(),
            ..v1::Namespace::default()
        });
        let check_index = Some(namespace.modify_index);
        if let Some(description) = &args.description {
            namespace.description.clone_from(description);
        }
        match connection.apply_namespace(namespace, check_index).await {
            Err(error) if error.is_aborted() && attempt < MAX_ATTEMPTS => {}
            applied => return applied.map(drop),
        }
    }
    Ok(())
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    context.connection.delete_namespace(&args.name).await?;
    let said = format!("Successfully deleted namespace \"{}\"!", args.name);
    context.printer.out(&said)?;
    Ok(Exit::Success)
}
