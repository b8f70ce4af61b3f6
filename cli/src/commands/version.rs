//! `kafila version`

use crate::args::Version;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// The commit that the binary was built from; empty if the build did not know it.
const COMMIT: &str = env!("KAFILA_COMMIT");

pub(super) async fn run(context: &Context, args: &Version) -> Result<Exit, Error> {
    let name = concat!("Kafila v", env!("CARGO_PKG_VERSION"));
    context.printer.out(&described(name, COMMIT))?;
    if args.gateway {
        let version = context.connection.gateway_version().await?;
        let url = &context.connection.address().url;
        context
            .printer
            .out(&format!("Gateway v{version} at {url}"))?;
    }
    Ok(Exit::Success)
}

/// Returns the version, and the commit on a line of its own as Nomad's command does.
fn described(name: &str, commit: &str) -> String {
    match commit {
        "" => name.to_owned(),
        commit => format!("{name}\nRevision {commit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_has_a_line_if_the_build_knew_it() {
        assert_eq!(described("Kafila v1", ""), "Kafila v1");
        assert_eq!(described("Kafila v1", "a1b2"), "Kafila v1\nRevision a1b2");
    }
}
