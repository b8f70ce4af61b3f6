//! `kafila volume …`

use std::io::ErrorKind;
use std::path::PathBuf;

use proto::v1;

use crate::args::volume::{Claim, ClaimDelete, ClaimList, Command, Delete, Init, Register, Status};
use crate::commands::node_pool::{page, say_next, write_new};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render, resolve, volumefile};

/// How long a whole id is, with its hyphens.
const UUID_CHARS: usize = 36;

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Status(args) => status(context, args).await,
        Command::Register(args) => register(context, args).await,
        Command::Delete(args) => delete(context, args).await,
        Command::Init(args) => init(context, args),
        Command::Claim(Claim::List(args)) => list_claims(context, args).await,
        Command::Claim(Claim::Delete(args)) => delete_claim(context, args).await,
    }
}

async fn status(context: &Context, args: &Status) -> Result<Exit, Error> {
    let connection = &context.connection;
    let style = context.style(args.verbose);
    if let Some(id) = &args.id {
        let (volume, alloc_ids) = connection.volume(id).await?;
        let text = if args.json {
            pretty(&json::volume::Volume::from(&volume))
        } else {
            render::volume::info(&volume, &alloc_ids, &style)
        };
        context.printer.out(&text)?;
        return Ok(Exit::Success);
    }
    let namespace = connection.namespace();
    let options = page(context, namespace, args.per_page, args.page_token.as_ref());
    let message = v1::ListVolumesRequest {
        options: Some(options),
        r#type: args.volume_type.clone().unwrap_or_default(),
        node_id: args.node.clone().unwrap_or_default(),
        node_pool: args.node_pool.clone().unwrap_or_default(),
    };
    let (volumes, next_token) = connection.volumes(message).await?;
    let text = if args.json {
        let volumes: Vec<json::volume::Volume<'_>> = volumes.iter().map(Into::into).collect();
        pretty(&volumes)
    } else if volumes.is_empty() {
        "No volumes".to_owned()
    } else {
        render::volume::table(&volumes, &style).render()
    };
    context.printer.out(&text)?;
    say_next(context, &next_token);
    Ok(Exit::Success)
}

async fn register(context: &Context, args: &Register) -> Result<Exit, Error> {
    let mut volume = volumefile::read(&args.path, args.json)?;
    let connection = &context.connection;
    if volume.namespace.is_empty() {
        connection.namespace().clone_into(&mut volume.namespace);
    }
    if !volume.node_id.is_empty() && volume.node_id.len() < UUID_CHARS {
        let style = context.style_err(false);
        let node = resolve::node(connection, &volume.node_id, &style).await?;
        volume.node_id = node.id;
    }
    let volume = connection.register_volume(volume).await?;
    let said = format!(
        "Registered host volume {} with ID {}",
        volume.name, volume.id
    );
    context.printer.out(&said)?;
    Ok(Exit::Success)
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    let id = context.connection.delete_volume(&args.id).await?;
    let said = format!("Successfully deleted volume \"{id}\"!");
    context.printer.out(&said)?;
    Ok(Exit::Success)
}

fn init(context: &Context, args: &Init) -> Result<Exit, Error> {
    let (usual, text) = if args.json {
        ("volume.json", volumefile::EXAMPLE_JSON)
    } else {
        ("volume.hcl", volumefile::EXAMPLE_HCL)
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
        let said = format!("Example volume specification written to {}", path.display());
        context.printer.out(&said)?;
    }
    Ok(Exit::Success)
}

async fn list_claims(context: &Context, args: &ClaimList) -> Result<Exit, Error> {
    let connection = &context.connection;
    let namespace = connection.namespace();
    let options = page(context, namespace, args.per_page, args.page_token.as_ref());
    let message = v1::ListVolumeClaimsRequest {
        options: Some(options),
        job_id: args.job.clone().unwrap_or_default(),
        task_group: args.group.clone().unwrap_or_default(),
        volume_name: args.volume_name.clone().unwrap_or_default(),
    };
    let (claims, next_token) = connection.volume_claims(message).await?;
    let text = if args.json {
        let claims: Vec<json::volume::Claim<'_>> = claims.iter().map(Into::into).collect();
        pretty(&claims)
    } else if claims.is_empty() {
        "No claims".to_owned()
    } else {
        render::volume::claims(&claims, &context.style(args.verbose)).render()
    };
    context.printer.out(&text)?;
    say_next(context, &next_token);
    Ok(Exit::Success)
}

async fn delete_claim(context: &Context, args: &ClaimDelete) -> Result<Exit, Error> {
    let id = context.connection.delete_volume_claim(&args.id).await?;
    let said = format!("Successfully deleted claim \"{id}\"!");
    context.printer.out(&said)?;
    Ok(Exit::Success)
}
