//! `kafila namespace …`

use std::path::Path;

use proto::v1;

use super::page;
use crate::args::namespace::{Apply, Command, Delete, Inspect, List, Status};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::text::STDIN;
use crate::output::json::pretty;
use crate::{files, json, render};

/// Retries of a change by name that loses its conditional write.
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
    let options = page::options(context, "", &args.page);
    let namespaces = context.connection.namespaces(options).await?;
    page::show::<_, json::namespace::Namespace>(context, &namespaces, args.json, |namespaces| {
        render::namespace::table(namespaces).render()
    })
}

async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let namespace = context.connection.namespace_named(&args.name).await?;
    context.finish(&if args.json {
        pretty(&json::namespace::Namespace::from(&namespace))
    } else {
        render::namespace::status(&namespace, &context.style(false))
    })
}

async fn inspect(context: &Context, args: &Inspect) -> Result<Exit, Error> {
    let namespace = context.connection.namespace_named(&args.name).await?;
    context.finish(&pretty(&json::namespace::Namespace::from(&namespace)))
}

async fn apply(context: &Context, args: &Apply) -> Result<Exit, Error> {
    let path = Path::new(&args.input);
    let is_file = args.input == STDIN || args.json || path.is_file();
    let name = if is_file {
        let colour = context.printer.colour_err;
        let mut namespace = files::namespace::read(path, args.json, colour)?;
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
    context.finish(&format!("Successfully applied namespace \"{name}\"!"))
}

/// Changes the fields named by flags with a conditional write, and keeps the others.
async fn apply_named(context: &Context, args: &Apply) -> Result<(), Error> {
    if let Some(problem) = model::Namespace::name_problem(&args.input) {
        let input = &args.input;
        let text = format!("There is no file \"{input}\", and it is no namespace name: {problem}.");
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
    context.finish(&format!(
        "Successfully deleted namespace \"{}\"!",
        args.name
    ))
}
