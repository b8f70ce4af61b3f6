//! Functions of Vault: `secret`, `secrets`, `pkiCert`.

use std::collections::BTreeMap;

use super::ask;
use crate::format::json;
use crate::function::{Call, Failure};
use crate::source::{Answer, Hidden, Lookup, Secret};
use crate::value::Value;

/// `secret PATH` reads, `secret PATH NAME=VALUE…` writes.
pub(super) fn secret(call: &mut Call<'_>) -> Result<Value, Failure> {
    let path = path(call)?;
    let lookup = match values(call)? {
        Hidden(values) if values.is_empty() => Lookup::Secret { path },
        values => Lookup::SecretWrite { path, values },
    };
    match ask_secret(call, lookup)? {
        Some(secret) => Ok(record(secret)?),
        None => Ok(Value::Nil),
    }
}

/// `secrets PATH` lists the names below a path.
pub(super) fn secrets(call: &mut Call<'_>) -> Result<Value, Failure> {
    let path = path(call)?;
    match ask(call, Lookup::Secrets { path })? {
        Some(Answer::Names(names)) => Ok(Value::texts(names)?),
        Some(_) => Err("the source gave no names".into()),
        None => Ok(Value::list(Vec::new())?),
    }
}

/// `pkiCert PATH NAME=VALUE…` issues a certificate.
pub(super) fn pki_cert(call: &mut Call<'_>) -> Result<Value, Failure> {
    let path = path(call)?;
    let values = values(call)?;
    let Some(secret) = ask_secret(call, Lookup::SecretWrite { path, values })? else {
        return Ok(Value::Nil);
    };
    let text = |key: &str| {
        let value = secret.data.get(key).and_then(serde_json::Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let chain = secret.data.get("ca_chain").and_then(serde_json::Value::as_array);
    let chain = chain.into_iter().flatten().filter_map(serde_json::Value::as_str);
    Ok(Value::record([
        ("Cert", text("certificate").into()),
        ("Key", text("private_key").into()),
        ("CA", text("issuing_ca").into()),
        ("CAChain", Value::texts(chain)?),
    ]))
}

fn ask_secret(call: &mut Call<'_>, lookup: Lookup) -> Result<Option<Secret>, Failure> {
    match ask(call, lookup)? {
        Some(Answer::Secret(secret)) => Ok(Some(secret)),
        Some(_) => Err("the source gave no secret".into()),
        None => Ok(None),
    }
}

fn record(secret: Secret) -> Result<Value, String> {
    let data = match secret.data {
        serde_json::Value::Null => Value::map(BTreeMap::new())?,
        data => json::of_api(data)?,
    };
    let duration = i64::try_from(secret.lease_duration).unwrap_or(i64::MAX);
    Ok(Value::record([
        ("RequestID", secret.request_id.into()),
        ("LeaseID", secret.lease_id.into()),
        ("LeaseDuration", Value::Int(duration)),
        ("Renewable", secret.renewable.into()),
        ("Data", data),
    ]))
}

fn path(call: &Call<'_>) -> Result<String, Failure> {
    let path = call.text(0)?;
    let path = path.trim().trim_matches('/');
    if path.is_empty() {
        return Err("the path is empty: want one as in secret/data/app".into());
    }
    Ok(path.to_owned())
}

/// The arguments behind the path. Errors name their position: the values are secret.
fn values(call: &Call<'_>) -> Result<Hidden, Failure> {
    let mut values = BTreeMap::new();
    for position in 1..call.count() {
        let text = call.text(position)?;
        // Templates pass an empty text for an option that is off.
        if text.is_empty() {
            continue;
        }
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("argument {} has no =: want NAME=VALUE", position + 1).into());
        };
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(Hidden(values))
}
