//! Volumes of storage systems, and their plugins, whose ids are names of users.

use model::{CsiVolume, Indexed};
use state::Snapshot;

use crate::namespaces::Namespaces;
use crate::prefix::NotFound;

/// Returns the one volume in `namespaces` with the id `text`, or with an id that begins with it.
///
/// # Errors
/// There is none, or more than one.
pub fn csi_volume<'s>(
    snapshot: &'s Snapshot,
    namespaces: &Namespaces,
    text: &str,
) -> Result<&'s Indexed<CsiVolume>, NotFound> {
    let all = snapshot.csi_volumes().map(AsRef::as_ref);
    let all =
        all.filter(|volume: &&Indexed<CsiVolume>| namespaces.contain(&volume.value.namespace));
    let volumes: Vec<_> = all.collect();
    let ids = volumes.iter().map(|volume| volume.value.id.as_str());
    let id = by_start("volume_id", "volume", text, ids)?;
    let mut named = volumes.iter().filter(|volume| volume.value.id == id);
    let volume = named.next().ok_or_else(|| NotFound::none("volume", text))?;
    if let Some(other) = named.next() {
        let (one, other) = (&volume.value.namespace, &other.value.namespace);
        let message = format!("{id:?} is a volume of namespaces {one:?} and {other:?}: want one");
        return Err(NotFound::invalid("options.namespace", message));
    }
    Ok(volume)
}

/// Returns the id of a plugin.
///
/// # Errors
/// There is none, or more than one.
pub fn csi_plugin<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s str, NotFound> {
    let ids = snapshot.csi_plugin_ids().map(|id| &**id);
    by_start("plugin_id", "plugin", text, ids)
}

/// Returns the id `text`, or the one that begins with it.
fn by_start<'s>(
    field: &str,
    noun: &'static str,
    text: &str,
    ids: impl Iterator<Item = &'s str>,
) -> Result<&'s str, NotFound> {
    let mut matching: Vec<&str> = ids.filter(|id| id.starts_with(text)).collect();
    matching.sort_unstable();
    matching.dedup();
    if let Some(exact) = matching.iter().find(|id| **id == text) {
        return Ok(exact);
    }
    match matching.as_slice() {
        [one] if !text.is_empty() => Ok(one),
        [] | [_] => Err(NotFound::none(noun, text)),
        several => {
            let message = format!("{text:?} is the start of {}: want one", several.join(", "));
            Err(NotFound::invalid(field, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_id_wins_over_longer_ones() {
        let ids = ["disk", "disk-2", "nfs"];
        let look_up = |text| by_start("plugin_id", "plugin", text, ids.into_iter());
        assert_eq!(look_up("disk"), Ok("disk"));
        assert_eq!(look_up("n"), Ok("nfs"));
        assert_eq!(look_up("ebs"), Err(NotFound::none("plugin", "ebs")));
        let several = "\"dis\" is the start of disk, disk-2: want one";
        assert_eq!(
            look_up("dis"),
            Err(NotFound::invalid("plugin_id", several.to_owned()))
        );
    }
}
