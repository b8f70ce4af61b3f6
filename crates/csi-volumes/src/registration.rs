//! Registration of storage systems' volumes, and its end.

use admission::cluster::change::VolumeRegistration;
use admission::cluster::csi::CsiRefusal;
use admission::cluster::csi::deregister;
use admission::cluster::csi::register::{self, Context};
use gateway_core::{Error, Step};
use model::{CsiVolume, CsiVolumeKey, Indexed};
use proto::v1;
use service_kit::current_trace_parent;
use state::Snapshot;
use tracing::info;

use crate::requests::CsiVolumes;

impl CsiVolumes {
    /// Registers a volume, or changes a registered one.
    ///
    /// # Errors
    /// It is refused, or the store does not accept the write.
    pub async fn register(&self, wanted: &CsiVolume) -> Result<v1::CsiVolume, Error> {
        let core = &self.core;
        let context = Context {
            now: core.now(),
            trace_parent: current_trace_parent(),
        };
        let decide = |snapshot: &Snapshot| {
            let next_id = || core.next_eval_id();
            Ok(
                match register::register(snapshot, wanted, &context, next_id)? {
                    VolumeRegistration::Unchanged(stored) => {
                        Step::IfFresh(api_view::csi::volume(snapshot, &stored))
                    }
                    VolumeRegistration::Write { volume, writes } => {
                        let stored = snapshot.csi_volume(&volume.key());
                        let create_index = stored.map(|stored| stored.create_index);
                        let snapshot = snapshot.clone();
                        let answer = move |revision: u64| {
                            let stored = Indexed {
                                create_index: create_index.unwrap_or(revision),
                                modify_index: revision,
                                value: *volume,
                            };
                            api_view::csi::volume(&snapshot, &stored)
                        };
                        Step::Commit {
                            writes,
                            answer: Box::new(answer),
                        }
                    }
                },
            )
        };
        let what = || format!("volume {}", wanted.id);
        let volume = core.execute(what, decide).await?;
        info!(
            volume_id = volume.id,
            plugin_id = volume.plugin_id,
            "CSI volume registered"
        );
        Ok(volume)
    }

    /// Forgets a volume, which the storage system keeps.
    ///
    /// # Errors
    /// It is in use and `force` is not set, or there is no such volume.
    pub async fn deregister(&self, key: &CsiVolumeKey, force: bool) -> Result<u64, Error> {
        let what = || format!("volume {}", key.id);
        let decide = |snapshot: &Snapshot, _: Option<&()>| {
            let deletion = deregister::deregister(snapshot, key, force)?;
            let missing = || CsiRefusal::NoVolume(key.id.to_string());
            Ok(((), deletion.ok_or_else(missing)?))
        };
        let ((), index) = self.core.delete_in_two_steps(what, decide).await?;
        Ok(index)
    }
}
