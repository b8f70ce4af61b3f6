//! `kafila service …`

use proto::v1;

use super::page;
use crate::args::services::{Command, Delete, Info, List};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::json::pretty;
use crate::{json, render};

pub(super) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::List(args) => list(context, args).await,
        Command::Info(args) => info(context, args).await,
        Command::Delete(args) => delete(context, args).await,
    }
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let connection = &context.connection;
    let message = v1::ListServicesRequest {
        options: Some(page::options(context, connection.namespace(), &args.page)),
    };
    let services = connection.services(message).await?;
    if args.json {
        let (services, token) = services;
        let json = pretty(&json::service::namespaces(&services));
        // The hint for the next page is the same as with text.
        return page::show::<_, json::service::ServiceName<'_>>(
            context,
            &(services, token),
            false,
            |_| json,
        );
    }
    let with_namespace = connection.namespace() == "*";
    page::show::<_, json::service::ServiceName<'_>>(context, &services, false, |services| {
        if services.is_empty() {
            "No service registrations found".to_owned()
        } else {
            render::service::table(services, with_namespace).render()
        }
    })
}

async fn info(context: &Context, args: &Info) -> Result<Exit, Error> {
    let connection = &context.connection;
    let message = v1::ListServiceRegistrationsRequest {
        options: Some(page::options(context, connection.namespace(), &args.page)),
        name: args.name.clone(),
        ..v1::ListServiceRegistrationsRequest::default()
    };
    let found = connection.service_registrations(message).await?;
    page::show::<_, json::service::ServiceRegistration<'_>>(context, &found, args.json, |found| {
        if found.is_empty() {
            format!("No service registrations found for service {:?}", args.name)
        } else if args.verbose {
            render::service::details(found)
        } else {
            render::service::registrations(found, &context.style(false)).render()
        }
    })
}

async fn delete(context: &Context, args: &Delete) -> Result<Exit, Error> {
    let connection = &context.connection;
    connection.delete_service(&args.name, &args.id).await?;
    context.finish("Successfully deleted service registration")
}
