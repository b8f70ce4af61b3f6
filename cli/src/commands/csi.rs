//! `kafila volume …` of storage systems' volumes.

use std::path::Path;

use proto::v1;

use super::page;
use crate::args::volume::{
    Create, Deregister, Detach, Snapshot, SnapshotCreate, SnapshotDelete, SnapshotList, Status,
};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::csi_volume as file;
use crate::output::json::pretty;
use crate::{json, render};

pub(super) async fn show(context: &Context, id: &str, args: &Status) -> Result<Exit, Error> {
    let found = context.connection.csi_volume(id).await?;
    context.finish(&if args.json {
        let volume = found.volume.as_ref().map(json::csi::CsiVolume::from);
        pretty(&volume.unwrap_or_default().with_users(&found.users))
    } else {
        render::csi::info(&found, &context.style(args.verbose))
    })
}

pub(super) async fn list(context: &Context, args: &Status) -> Result<Exit, Error> {
    let connection = &context.connection;
    if args.external {
        return list_external(context, args).await;
    }
    let message = v1::ListCsiVolumesRequest {
        options: Some(page::options(context, connection.namespace(), &args.page)),
        plugin_id: args.plugin_id.clone().unwrap_or_default(),
        node_id: args.node.clone().unwrap_or_default(),
    };
    let volumes = connection.csi_volumes(message).await?;
    page::show::<_, json::csi::CsiVolume>(context, &volumes, args.json, |volumes| {
        if volumes.is_empty() {
            "No CSI volumes".to_owned()
        } else {
            render::csi::table(volumes).render()
        }
    })
}

async fn list_external(context: &Context, args: &Status) -> Result<Exit, Error> {
    let message = v1::ListExternalCsiVolumesRequest {
        plugin_id: args.plugin_id.clone().unwrap_or_default(),
        per_page: args.page.per_page.unwrap_or_default(),
        page_token: args.page.page_token.clone().unwrap_or_default(),
    };
    let found = context.connection.external_csi_volumes(message).await?;
    if !found.next_token.is_empty() {
        context
            .printer
            .err(&format!("Next page: -page-token={}", found.next_token));
    }
    context.finish(&if found.volumes.is_empty() {
        "No volumes".to_owned()
    } else {
        render::csi::external(&found.volumes).render()
    })
}

pub(super) async fn register(
    context: &Context,
    (path, text): (&Path, &str),
    json: bool,
) -> Result<Exit, Error> {
    let volume = read(context, path, text, json)?;
    let volume = context.connection.register_csi_volume(volume).await?;
    context.finish(&format!("Volume {:?} registered", volume.id))
}

pub(super) async fn create(context: &Context, args: &Create) -> Result<Exit, Error> {
    let text = file::text(&args.path)?;
    if !file::is_csi(&text) {
        return Err(Error::text(
            "Error creating volume: only volumes of type \"csi\" are created: directories of nodes \
             exist already, and 'kafila volume register' makes them known"
                .to_owned(),
        ));
    }
    let volume = read(context, &args.path, &text, args.json)?;
    let volume = context.connection.create_csi_volume(volume).await?;
    let (external_id, id) = (&volume.external_id, &volume.id);
    context.finish(&format!(
        "Created external volume {external_id} with ID {id}"
    ))
}

fn read(context: &Context, path: &Path, text: &str, json: bool) -> Result<v1::CsiVolume, Error> {
    let mut volume = file::read(path, text, json, context.printer.colour_err)?;
    if volume.namespace.is_empty() {
        let namespace = context.connection.namespace();
        namespace.clone_into(&mut volume.namespace);
    }
    Ok(volume)
}

pub(super) async fn deregister(context: &Context, args: &Deregister) -> Result<Exit, Error> {
    let id = &args.id;
    let asked = context.connection.deregister_csi_volume(id, args.force);
    if let Err(error) = asked.await {
        return Err(with_host_volume(context, id, error).await);
    }
    context.finish(&format!("Successfully deregistered volume \"{id}\"!"))
}

pub(super) async fn delete(context: &Context, id: &str) -> Result<Exit, Error> {
    if let Err(error) = context.connection.delete_csi_volume(id).await {
        return Err(with_host_volume(context, id, error).await);
    }
    context.finish(&format!("Successfully deleted volume \"{id}\"!"))
}

/// Adds to the error of a missing CSI volume that there is a host volume with this ID or name, and the
/// command for it.
async fn with_host_volume(context: &Context, id: &str, error: Error) -> Error {
    if !error.is_not_found() {
        return error;
    }
    // Only a hint, so any other error is left out.
    let Ok((volume, _)) = context.connection.volume(id).await else {
        return error;
    };
    Error::text(format!(
        "{error}\n{id:?} is a dynamic host volume, a directory of a node, with the ID {}: delete it with \
         'kafila volume delete -type=host {}'.",
        volume.id, volume.id
    ))
}

pub(super) async fn detach(context: &Context, args: &Detach) -> Result<Exit, Error> {
    let (id, node) = (&args.id, &args.node);
    context.connection.detach_csi_volume(id, node).await?;
    context.finish(&format!("Volume {id:?} is being detached from node {node}"))
}

pub(super) async fn snapshot(context: &Context, command: &Snapshot) -> Result<Exit, Error> {
    match command {
        Snapshot::Create(args) => create_snapshot(context, args).await,
        Snapshot::Delete(args) => delete_snapshot(context, args).await,
        Snapshot::List(args) => list_snapshots(context, args).await,
    }
}

async fn create_snapshot(context: &Context, args: &SnapshotCreate) -> Result<Exit, Error> {
    let mut parameters = std::collections::HashMap::new();
    for text in &args.parameters {
        let Some((key, value)) = text.split_once('=') else {
            return Err(Error::text(format!(
                "Error creating snapshot: -parameter {text:?} has no value: write KEY=VALUE"
            )));
        };
        parameters.insert(key.to_owned(), value.to_owned());
    }
    let message = v1::CreateCsiSnapshotRequest {
        namespace: context.connection.namespace().to_owned(),
        volume_id: args.id.clone(),
        name: args.name.clone().unwrap_or_default(),
        parameters,
    };
    let snapshot = context.connection.create_csi_snapshot(message).await?;
    shown(context, &[snapshot], args.json)
}

async fn delete_snapshot(context: &Context, args: &SnapshotDelete) -> Result<Exit, Error> {
    let (plugin_id, id) = (&args.plugin_id, &args.snapshot_id);
    context
        .connection
        .delete_csi_snapshot(plugin_id, id)
        .await?;
    context.finish(&format!("Successfully deleted snapshot \"{id}\"!"))
}

async fn list_snapshots(context: &Context, args: &SnapshotList) -> Result<Exit, Error> {
    let message = v1::ListCsiSnapshotsRequest {
        plugin_id: args.plugin_id.clone(),
        per_page: args.per_page,
        page_token: args.page_token.clone(),
    };
    let found = context.connection.csi_snapshots(message).await?;
    if !found.next_token.is_empty() {
        context
            .printer
            .err(&format!("Next page: -page-token={}", found.next_token));
    }
    if found.snapshots.is_empty() && !args.json {
        return context.finish("No snapshots");
    }
    shown(context, &found.snapshots, args.json)
}

fn shown(context: &Context, snapshots: &[v1::CsiSnapshot], json: bool) -> Result<Exit, Error> {
    context.finish(&if json {
        let snapshots = snapshots.iter().map(json::csi::CsiSnapshot::from);
        pretty(&snapshots.collect::<Vec<_>>())
    } else {
        render::csi::snapshots(snapshots, &context.style(false)).render()
    })
}
