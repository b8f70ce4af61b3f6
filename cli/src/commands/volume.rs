//! `kafila volume …`

use std::path::PathBuf;

use proto::v1;

use super::{csi, example, page};
use crate::args::volume::{Claim, ClaimDelete, ClaimList, Command, Delete, Init, Register, Status};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::{csi_volume, volume as file};
use crate::output::json::pretty;
use crate::{json, render, resolve};

/// The type of storage systems' volumes.
const TYPE_CSI: &str = "csi";
/// Length of a full ID, with its hyphens.
const UUID_CHARS: usize = 36;

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Status(args) => match (&args.id, args.is_csi()) {
            (Some(id), true) => csi::show(context, id, args).await,
            (Some(id), false) => show(context, id, args).await,
            (None, true) => csi::list(context, args).await,
            (None, false) => list(context, args).await,
        },
        Command::Register(args) => register(context, args).await,
        Command::Create(args) => csi::create(context, args).await,
        Command::Deregister(args) => csi::deregister(context, args).await,
        Command::Detach(args) => csi::detach(context, args).await,
        Command::Snapshot(command) => csi::snapshot(context, command).await,
        Command::Delete(args) if args.volume_type == TYPE_CSI => {
            csi::delete(context, &args.id).await
        }
        Command::Delete(args) => delete(context, args).await,
        Command::Init(args) => init(context, args),
        Command::Claim(Claim::List(args)) => list_claims(context, args).await,
        Command::Claim(Claim::Delete(args)) => delete_claim(context, args).await,
    }
}

async fn show(context: &Context, id: &str, args: &Status) -> Result<Exit, Error> {
    let (volume, alloc_ids) = context.connection.volume(id).await?;
    context.finish(&if args.json {
        pretty(&json::volume::Volume::from(&volume))
    } else {
        render::volume::info(&volume, &alloc_ids, &context.style(args.verbose))
    })
}

async fn list(context: &Context, args: &Status) -> Result<Exit, Error> {
    let connection = &context.connection;
    let message = v1::ListVolumesRequest {
        options: Some(page::options(context, connection.namespace(), &args.page)),
        r#type: args.volume_type.clone().unwrap_or_default(),
        node_id: args.node.clone().unwrap_or_default(),
        node_pool: args.node_pool.clone().unwrap_or_default(),
    };
    let volumes = connection.volumes(message).await?;
    page::show::<_, json::volume::Volume>(context, &volumes, args.json, |volumes| {
        if volumes.is_empty() {
            "No volumes".to_owned()
        } else {
            render::volume::table(volumes, &context.style(args.verbose)).render()
        }
    })
}

async fn register(context: &Context, args: &Register) -> Result<Exit, Error> {
    let text = csi_volume::text(&args.path)?;
    if csi_volume::is_csi(&text) {
        return csi::register(context, (&args.path, &text), args.json).await;
    }
    let mut volume = file::read(&args.path, &text, args.json, context.printer.colour_err)?;
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
    let (name, id) = (&volume.name, &volume.id);
    context.printer.err(&format!(
        "The node was not asked for the directory {:?}: a task that uses the volume fails if it is \
         missing.",
        volume.host_path
    ));
    context.finish(&format!("Registered host volume {name} with ID {id}"))
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    let id = context.connection.delete_volume(&args.id).await?;
    context.finish(&format!("Successfully deleted volume \"{id}\"!"))
}

fn init(context: &Context, args: &Init) -> Result<Exit, Error> {
    let (default, text) = match (args.json, args.volume_type == TYPE_CSI) {
        (true, true) => ("volume.json", csi_volume::EXAMPLE_JSON),
        (true, false) => ("volume.json", file::EXAMPLE_JSON),
        (false, true) => ("volume.hcl", csi_volume::EXAMPLE_HCL),
        (false, false) => ("volume.hcl", file::EXAMPLE_HCL),
    };
    let path = args.path.clone().unwrap_or_else(|| PathBuf::from(default));
    example::write(context, &path, ("volume", text), args.quiet)
}

async fn list_claims(context: &Context, args: &ClaimList) -> Result<Exit, Error> {
    let connection = &context.connection;
    let message = v1::ListVolumeClaimsRequest {
        options: Some(page::options(context, connection.namespace(), &args.page)),
        job_id: args.job.clone().unwrap_or_default(),
        task_group: args.group.clone().unwrap_or_default(),
        volume_name: args.volume_name.clone().unwrap_or_default(),
    };
    let claims = connection.volume_claims(message).await?;
    page::show::<_, json::volume::Claim<'_>>(context, &claims, args.json, |claims| {
        if claims.is_empty() {
            "No claims".to_owned()
        } else {
            render::volume::claims(claims, &context.style(args.verbose)).render()
        }
    })
}

async fn delete_claim(context: &Context, args: &ClaimDelete) -> Result<Exit, Error> {
    let id = context.connection.delete_volume_claim(&args.id).await?;
    context.finish(&format!("Successfully deleted claim \"{id}\"!"))
}
