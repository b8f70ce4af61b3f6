//! `kafila tls …`: certificates in files. Calls no gateway.

use crate::args::tls::{Ca, Cert, Command};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

mod ca;
mod cert;
mod files;
mod info;
mod moment;
mod problem;

pub(super) fn run(context: &Context, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Ca(Ca::Create(args)) => ca::create(context, args),
        Command::Ca(Ca::Info(args)) => info::of_authority(context, &args.path),
        Command::Cert(Cert::Create(args)) => cert::create(context, args),
        Command::Cert(Cert::Info(args)) => info::of_certificate(context, &args.path),
    }
}
