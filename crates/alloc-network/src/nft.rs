//! Runs of `nft`: transactions on the table, and its elements.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::listing;
use crate::program;
use crate::ruleset::{Element, TABLE, transaction};

/// Transactions before a conflict is an error. A conflict needs another change of the same port
/// between listing and transaction.
const TRIES: u32 = 3;

/// Adds the elements of an allocation in one transaction. They replace elements with the same keys,
/// which are those of allocations that are gone: the scheduler assigns each port once.
///
/// # Errors
/// The message of `nft`.
pub(crate) fn add(elements: &[Element]) -> Result<(), Error> {
    let mut result = commit(&transaction(&[], elements));
    for _ in 1..TRIES {
        if result.is_ok() {
            break;
        }
        let keys: BTreeSet<(&str, &str)> = elements.iter().map(|it| (&*it.set, &*it.key)).collect();
        let mut stale = list()?;
        stale.retain(|it| !it.comment.is_empty() && keys.contains(&(&it.set, &it.key)));
        result = commit(&transaction(&stale, elements));
    }
    result
}

/// Removes all elements whose comment `is_gone`, in one transaction.
///
/// # Errors
/// The message of `nft`.
pub(crate) fn remove(is_gone: impl Fn(&str) -> bool) -> Result<(), Error> {
    let mut result = Ok(());
    for _ in 0..TRIES {
        let mut gone = list()?;
        gone.retain(|it| !it.comment.is_empty() && is_gone(&it.comment));
        if gone.is_empty() {
            return Ok(());
        }
        result = commit(&transaction(&gone, &[]));
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Returns the comments of all elements.
///
/// # Errors
/// The message of `nft`.
pub(crate) fn comments() -> Result<BTreeSet<String>, Error> {
    Ok(list()?.into_iter().map(|element| element.comment).collect())
}

/// Lists the elements; none if there is no table.
fn list() -> Result<Vec<Element>, Error> {
    let mut command = program::command("nft");
    command.args(["-j", "list", "table", "inet", TABLE]);
    let output = program::run(&mut command, Vec::new())?;
    if output.is_success {
        Ok(listing::read(&output.stdout))
    } else if output.stderr.contains("No such file or directory") {
        Ok(Vec::new())
    } else {
        Err(Error::Nft(output.stderr.trim().to_owned()))
    }
}

fn commit(transaction: &str) -> Result<(), Error> {
    let mut command = program::command("nft");
    command.args(["-f", "-"]);
    let output = program::run(&mut command, transaction.as_bytes().to_vec())?;
    if output.is_success {
        return Ok(());
    }
    Err(Error::Nft(output.stderr.trim().to_owned()))
}

/// Returns why nftables cannot be used; `None`: it can.
pub(crate) fn problem() -> Option<String> {
    let mut command = program::command("nft");
    command.args(["list", "tables"]);
    match program::run(&mut command, Vec::new()) {
        Ok(output) if output.is_success => None,
        Ok(output) => {
            let reason = output.stderr.lines().next().unwrap_or_default().to_owned();
            Some(format!("nft fails: {reason}"))
        }
        Err(_) => Some("the program nft is missing: install the package nftables".to_owned()),
    }
}
