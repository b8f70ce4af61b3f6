//! Host volumes, by name or by the start of an id.

use model::{Indexed, Volume, VolumeId};
use state::Snapshot;

use crate::namespaces::Namespaces;
use crate::prefix::{self, NotFound, UuidPrefix};

/// Returns the one volume in `namespaces` with the name `text`, or with an id that begins with it.
///
/// # Errors
/// There is none, or more than one.
pub fn volume<'s>(
    snapshot: &'s Snapshot,
    namespaces: &Namespaces,
    text: &str,
) -> Result<&'s Indexed<Volume>, NotFound> {
    let volumes = || {
        let all = snapshot.volumes().map(AsRef::as_ref);
        all.filter(|volume: &&Indexed<Volume>| namespaces.contain(&volume.value.namespace))
    };
    let named: Vec<_> = volumes().filter(|it| it.value.name == text).collect();
    match named.as_slice() {
        [one] => return Ok(one),
        [] => {}
        several => {
            let ids: Vec<String> = several.iter().map(|it| it.value.id.to_string()).collect();
            let message = format!(
                "{text:?} is the name of {} volumes: want one of the ids {}",
                ids.len(),
                ids.join(", ")
            );
            return Err(NotFound::invalid("id", message));
        }
    }
    let missing = || NotFound::none("volume", text);
    if !text.is_empty() && UuidPrefix::parse(text).is_none() {
        return Err(missing());
    }
    let by_id = |id: VolumeId| volumes().find(|volume| volume.value.id == id);
    let all = volumes().map(|volume| (volume.value.id.0, volume.value.id));
    let exists = |id| by_id(id).is_some();
    let id = prefix::find("volume_id", "volume", text, VolumeId, exists, all)?;
    by_id(id).ok_or_else(missing)
}
