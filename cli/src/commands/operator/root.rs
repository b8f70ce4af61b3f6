//! `kafila operator root keyring …`

use crate::args::operator::root::{Command, Keyring, List, Remove, Rotate};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::json::keyring::SigningKey;
use crate::output::json::pretty;
use crate::render;

pub(crate) async fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    let Command::Keyring(command) = command;
    match command {
        Keyring::List(args) => list(context, args).await,
        Keyring::Rotate(args) => rotate(context, args).await,
        Keyring::Remove(args) => remove(context, args).await,
    }
}

async fn list(context: &Context, args: &List) -> Result<Exit, Error> {
    let listed = context.connection.signing_keys().await?;
    let keys = &listed.signing_keys;
    let text = if args.json {
        let keys: Vec<SigningKey<'_>> = keys.iter().map(Into::into).collect();
        pretty(&keys)
    } else if keys.is_empty() {
        "No signing keys: no gateway has a keyring_key_file".to_owned()
    } else {
        let table = render::keyring::table(keys, &context.style(args.verbose)).render();
        [vec![table], render::keyring::variables(&listed)]
            .concat()
            .join("\n")
    };
    context.finish(&text)
}

async fn rotate(context: &Context, args: &Rotate) -> Result<Exit, Error> {
    let key = context.connection.rotate_signing_key().await?;
    let text = if args.json {
        pretty(&SigningKey::from(&key))
    } else {
        format!("Signing key \"{}\" is active", key.id)
    };
    context.finish(&text)
}

async fn remove(context: &Context, args: &Remove) -> Result<Exit, Error> {
    let id = context.connection.remove_signing_key(&args.key_id).await?;
    context.finish(&format!("Removed signing key \"{id}\""))
}
