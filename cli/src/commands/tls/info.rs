//! `kafila tls ca info` and `kafila tls cert info`

use std::path::Path;

use pki::Description;

use super::files::{quoted, read};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::fields::Fields;

pub(super) fn of_authority(context: &Context, path: &Path) -> Result<Exit, Error> {
    let advice = "Create a CA with 'kafila tls ca create', or pass the path of its certificate.";
    let description = describe(path, advice)?;
    if !description.is_authority {
        return Err(Error::text(format!(
            "Error: {path} is not the certificate of a CA. 'kafila tls cert info {path}' shows it.",
            path = quoted(path)
        )));
    }
    let mut fields = Fields::new();
    add_common(&mut fields, &description, context);
    let domains = &description.permitted_domains;
    fields.add(
        "Permitted Domains",
        if domains.is_empty() {
            "all".to_owned()
        } else {
            domains.join(", ")
        },
    );
    context.finish(&fields.render())
}

pub(super) fn of_certificate(context: &Context, path: &Path) -> Result<Exit, Error> {
    let description = describe(path, "")?;
    let mut fields = Fields::new();
    match &description.identity {
        Ok(identity) => {
            fields.add("Role", identity.role().as_str());
            fields.add("Region", identity.region());
            fields.add("Name", identity.name());
        }
        Err(error) => {
            fields.add("Role", format!("none: {}", service_kit::run::chain(error)));
        }
    }
    add_common(&mut fields, &description, context);
    let usages = [
        (description.is_for_servers, "server"),
        (description.is_for_clients, "client"),
    ];
    let usages = usages.into_iter().filter(|(has, _)| *has);
    let usages: Vec<&str> = usages.map(|(_, name)| name).collect();
    fields.add("Usages", usages.join(", "));
    fields.add("DNS Names", description.dns_names.join(", "));
    let addresses = description.addresses.iter().map(ToString::to_string);
    fields.add("IP Addresses", addresses.collect::<Vec<_>>().join(", "));
    fields.add("URIs", description.uris.join(", "));
    context.finish(&fields.render())
}

fn describe(path: &Path, missing: &str) -> Result<Description, Error> {
    let text = read(path, "", missing)?;
    Description::read(&text)
        .map_err(|error| Error::text(format!("Error reading {}: {error}.", quoted(path))))
}

fn add_common(fields: &mut Fields, description: &Description, context: &Context) {
    let times = context.style(false).times;
    let exact = |seconds: i64| times.exact(u64::try_from(seconds).unwrap_or(0) * 1_000_000_000);
    let now = i64::try_from(context.clock.now() / 1_000_000_000).unwrap_or(i64::MAX);
    let validity = if now > description.not_after {
        "expired".to_owned()
    } else if now < description.not_before {
        "not valid yet".to_owned()
    } else {
        format!("{} days left", (description.not_after - now) / 86_400)
    };
    fields
        .add("Subject", description.subject.as_str())
        .add("Issuer", description.issuer.as_str())
        .add("Serial Number", description.serial.as_str())
        .add("Valid From", exact(description.not_before))
        .add(
            "Valid Until",
            format!("{} ({validity})", exact(description.not_after)),
        );
}
