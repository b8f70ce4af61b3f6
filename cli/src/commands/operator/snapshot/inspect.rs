//! `kafila operator snapshot inspect`

use serde::Serialize;

use super::verified::{Verified, verify};
use crate::args::operator::snapshot::Inspect;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::fields::Fields;
use crate::output::json::pretty;
use crate::output::table::Table;

pub(super) fn run(context: &Context, args: &Inspect) -> Result<Exit, Error> {
    let verified = verify(&args.file, &args.prefix)?;
    let text = if args.json {
        pretty(&Shown::of(&verified))
    } else {
        text(&verified)
    };
    context.finish(&text)
}

/// Name of the keys outside of the prefix.
const OTHERS: &str = "(other keys)";

fn name(table: &str) -> &str {
    if table.is_empty() { OTHERS } else { table }
}

fn text(verified: &Verified) -> String {
    let Verified { checksum, contents } = verified;
    let mut fields = Fields::new();
    fields.add("Revision", contents.revision.to_string());
    fields.add("Size", format!("{} bytes", checksum.database_bytes));
    fields.add("SHA-256", checksum.sha256.as_str());
    fields.add("Versions", contents.versions.to_string());
    let mut table = Table::new(["Table", "Keys", "Bytes"]);
    for (key, stored) in &contents.tables {
        let (keys, bytes) = (stored.keys.to_string(), stored.bytes.to_string());
        table.row([name(key).to_owned(), keys, bytes]);
    }
    format!("{}\n{}", fields.render(), table.render())
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Shown<'a> {
    revision: u64,
    bytes: u64,
    #[serde(rename = "SHA256")]
    sha256: &'a str,
    versions: u64,
    tables: Vec<ShownTable<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownTable<'a> {
    name: &'a str,
    keys: u64,
    bytes: u64,
}

impl<'a> Shown<'a> {
    fn of(verified: &'a Verified) -> Self {
        let tables = verified.contents.tables.iter();
        let tables = tables.map(|(key, stored)| ShownTable {
            name: name(key),
            keys: stored.keys,
            bytes: stored.bytes,
        });
        Self {
            revision: verified.contents.revision,
            bytes: verified.checksum.database_bytes,
            sha256: &verified.checksum.sha256,
            versions: verified.contents.versions,
            tables: tables.collect(),
        }
    }
}
