//! `kafila job tag …`

use proto::v1;

use crate::args::job::versions::{Tag, TagApply, TagUnset};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::resolve;

pub(crate) async fn run(context: &Context, command: &Tag) -> Result<Exit, Error> {
    match command {
        Tag::Apply(args) => apply(context, args).await,
        Tag::Unset(args) => unset(context, args).await,
    }
}

async fn apply(context: &Context, args: &TagApply) -> Result<Exit, Error> {
    let connection = &context.connection;
    let stub = resolve::job(connection, &args.id, &context.style_err(false)).await?;
    let message = v1::TagJobVersionRequest {
        namespace: stub.namespace,
        job_id: stub.id,
        name: args.name.clone(),
        description: args.description.clone(),
        version: args.version,
    };
    let answer = connection.tag_version(message).await?;
    let (version, name) = (answer.version, &args.name);
    context.finish(&format!("Job version {version} tagged with name {name:?}"))
}

async fn unset(context: &Context, args: &TagUnset) -> Result<Exit, Error> {
    let connection = &context.connection;
    let stub = resolve::job(connection, &args.id, &context.style_err(false)).await?;
    let message = v1::UntagJobVersionRequest {
        namespace: stub.namespace,
        job_id: stub.id.clone(),
        name: args.name.clone(),
    };
    connection.untag_version(message).await?;
    let (name, job_id) = (&args.name, &stub.id);
    context.finish(&format!("Tag {name:?} removed from job {job_id:?}"))
}
