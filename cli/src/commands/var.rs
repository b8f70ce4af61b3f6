//! `kafila var …`

mod lock;
mod words;

use std::path::{Path, PathBuf};

use proto::v1;

pub(crate) use self::lock::guard::{SUBCOMMAND as LOCK_GUARD_SUBCOMMAND, main as lock_guard};
use self::words::Words;
use super::{example, page};
use crate::args::var::{Command, FileForm, Form, Get, Init, List, ListForm, Purge, Put};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{files, json, render};

const EXAMPLE_HCL: &str = include_str!("../../../examples/variables/spec.nv.hcl");
const EXAMPLE_JSON: &str = include_str!("../../../examples/variables/spec.nv.json");

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Put(args) => put(context, args).await,
        Command::Get(args) => get(context, args).await,
        Command::List(args) => list(context, args).await,
        Command::Purge(args) => purge(context, args).await,
        Command::Lock(args) => lock::run(context, args).await,
        Command::Init(args) => init(context, args),
    }
}

async fn put(context: &Context, args: &Put) -> Result<Exit, Error> {
    let words = Words::read(&args.words)?;
    let mut variable = match &words.file {
        Some(file) => {
            let is_json = args.input == Some(FileForm::Json);
            files::variable::read(file, is_json, context.printer.colour_err)?
        }
        None => v1::Variable::default(),
    };
    if let Some(path) = words.path {
        variable.path = path;
    }
    if variable.namespace.is_empty() {
        context
            .connection
            .namespace()
            .clone_into(&mut variable.namespace);
    }
    for (name, value) in words.items {
        match value {
            Some(value) => variable.items.insert(name, value),
            None => variable.items.remove(&name),
        };
    }
    let check_index = (!args.force).then_some(args.check_index.unwrap_or(variable.modify_index));
    let message = v1::PutVariableRequest {
        namespace: variable.namespace,
        path: variable.path.clone(),
        items: variable.items,
        check_index,
        lock_id: args.lock_id.clone(),
    };
    let stored = match context.connection.put_variable(message).await {
        Err(error) if error.is_aborted() && !error.to_string().contains("lock_id") => {
            return Err(Error::text(format!(
                "{error}\n\nTo replace the stored variable, read it with 'kafila var get {path}', and send \
                 its check index with -check-index, or use -force.",
                path = variable.path,
            )));
        }
        stored => stored?,
    };
    let created = stored.create_index == stored.modify_index;
    let verb = if created { "created" } else { "updated" };
    let form = args.out.unwrap_or(match context.printer.is_terminal {
        true => Form::None,
        false => Form::Json,
    });
    match form {
        Form::None => context.finish(&format!(
            "Successfully {verb} variable \"{}\"! Its check index is {}.",
            stored.path, stored.modify_index
        )),
        form => show(context, &stored, form),
    }
}

async fn get(context: &Context, args: &Get) -> Result<Exit, Error> {
    note_stale(context);
    let found = context.connection.variable(&args.path).await?;
    if let Some(item) = &args.item {
        let value = found.items.get(item).ok_or_else(|| {
            let mut names: Vec<_> = found.items.keys().map(String::as_str).collect();
            names.sort_unstable();
            Error::text(format!(
                "Variable \"{}\" has no item \"{item}\": it has {}",
                args.path,
                names.join(", ")
            ))
        })?;
        return context.finish(value);
    }
    let form = args.out.unwrap_or(match context.printer.is_terminal {
        true => Form::Table,
        false => Form::Json,
    });
    show(context, &found, form)
}

fn show(context: &Context, variable: &v1::Variable, form: Form) -> Result<Exit, Error> {
    match form {
        Form::None => Ok(Exit::Success),
        Form::Table => context.finish(&render::variable::status(variable, &context.style(false))),
        Form::Json => context.finish(&pretty(&json::variable::Variable::from(variable))),
        Form::Hcl => context.finish(&render::variable::hcl(variable)),
    }
}

/// Gateways have no copies of variables, whose reads always ask etcd.
fn note_stale(context: &Context) {
    if context.connection.is_stale() {
        context
            .printer
            .err("Note: -stale has no effect, because variables are always read from etcd.");
    }
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    note_stale(context);
    let message = v1::ListVariablesRequest {
        namespace: context.connection.namespace().to_owned(),
        prefix: args.prefix.clone().unwrap_or_default(),
        per_page: args.page.per_page.unwrap_or_default(),
        next_token: args.page.page_token.clone().unwrap_or_default(),
    };
    let variables = context.connection.variables(message).await?;
    let form = args.out.unwrap_or(match context.printer.is_terminal {
        true => ListForm::Table,
        false => ListForm::Json,
    });
    let is_json = form == ListForm::Json;
    let style = context.style(false);
    page::show::<_, json::variable::VariableMetadata<'_>>(context, &variables, is_json, |found| {
        match form {
            ListForm::Terse => render::variable::paths(found),
            _ if found.is_empty() => "No variables".to_owned(),
            _ => render::variable::table(found, &style).render(),
        }
    })
}

async fn purge(context: &Context, args: &Purge) -> Result<Exit, Error> {
    let connection = &context.connection;
    connection
        .delete_variable(&args.path, args.check_index, &args.lock_id)
        .await?;
    context.finish(&format!("Successfully purged variable \"{}\"!", args.path))
}

fn init(context: &Context, args: &Init) -> Result<Exit, Error> {
    let (name, text) = match args.out {
        FileForm::Hcl => ("spec.nv.hcl", EXAMPLE_HCL),
        FileForm::Json => ("spec.nv.json", EXAMPLE_JSON),
    };
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from(name));
    example::write(context, Path::new(&path), ("variable", text), args.quiet)
}
