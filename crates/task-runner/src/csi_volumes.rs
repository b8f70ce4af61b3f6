//! Storage systems' volumes of an allocation: mounted before its first task starts, unmounted after its
//! last task has ended, before the servers hear of the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csi_node::Storage;
use csi_node::backoff::{self, LIMIT};
use lifecycle::{Assignment, Event};
use model::AllocId;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::context::Context;

/// The volumes of one allocation, shared by its runner and its work.
#[derive(Debug, Default)]
pub(crate) struct AllocVolumes {
    /// Held while a volume is mounted or unmounted.
    changing: tokio::sync::Mutex<()>,
    /// Volumes may be mounted that are not recorded yet.
    is_mounting: AtomicBool,
    /// The allocation has ended: nothing is mounted any more.
    closed: CancellationToken,
    /// The end is not reported yet, because volumes are mounted.
    is_releasing: AtomicBool,
    /// The volumes are released, and the end is to be reported.
    is_released: AtomicBool,
}

/// The result of [`AllocVolumes::ensure`].
pub(crate) enum Ensured {
    Mounted,
    /// A message for the user.
    Failed(String),
    /// The allocation has ended meanwhile.
    Closed,
}

impl AllocVolumes {
    /// Mounts the volumes of the allocation's group, with retries. Each reason of a failure becomes an
    /// event, once.
    pub(crate) async fn ensure(
        &self,
        context: &Context,
        assignment: &Assignment,
        answers: &mpsc::Sender<Event>,
    ) -> Ensured {
        let alloc = &assignment.alloc;
        let group = assignment.job.task_group(&alloc.task_group);
        let mut asks = group.into_iter().flat_map(|group| group.volumes.values());
        if !asks.any(|ask| ask.is_csi()) {
            return Ensured::Mounted;
        }
        let Some(storage) = &context.storage else {
            return Ensured::Failed("this node has no directory for volumes".to_owned());
        };
        self.is_mounting.store(true, Ordering::SeqCst);
        let ensured = self.mount(context, storage, alloc.id, answers).await;
        self.is_mounting.store(false, Ordering::SeqCst);
        ensured
    }

    async fn mount(
        &self,
        context: &Context,
        storage: &Storage,
        alloc_id: AllocId,
        answers: &mpsc::Sender<Event>,
    ) -> Ensured {
        let began = Instant::now();
        let (mut failures, mut told) = (0, String::new());
        loop {
            let mounted = tokio::select! {
                mounted = self.try_mount(context, storage, alloc_id) => mounted,
                () = self.closed.cancelled() => return Ensured::Closed,
            };
            let Err(reason) = mounted else {
                return Ensured::Mounted;
            };
            failures += 1;
            warn!(%alloc_id, reason, failures, "cannot mount the volumes of an allocation");
            if began.elapsed() >= LIMIT {
                return Ensured::Failed(reason);
            }
            if reason != told {
                let message = format!("Waiting for volumes: {reason}");
                let _ = answers.send(Event::VolumeMessage { message }).await;
                told = reason;
            }
            tokio::select! {
                () = sleep(backoff::pause(failures)) => {}
                () = self.closed.cancelled() => return Ensured::Closed,
            }
        }
    }

    async fn try_mount(
        &self,
        context: &Context,
        storage: &Storage,
        alloc_id: AllocId,
    ) -> Result<(), String> {
        let wanted = context.volumes.volumes(alloc_id).await?;
        for volume in wanted {
            if let Some(reason) = volume.waiting {
                return Err(format!("volume {:?}: {reason}", volume.mount.volume_id));
            }
            let _changing = self.changing.lock().await;
            storage.mounts.mount(alloc_id, &volume.mount).await?;
        }
        Ok(())
    }

    /// Notes the end of the allocation. Returns whether volumes have to be released.
    pub(crate) fn end(&self, context: &Context, alloc_id: AllocId) -> bool {
        self.closed.cancel();
        let storage = context.storage.as_ref();
        let has = storage.is_some_and(|storage| storage.mounts.has(alloc_id));
        let is_held = has || self.is_mounting.load(Ordering::SeqCst);
        self.is_releasing.store(is_held, Ordering::SeqCst);
        is_held
    }

    /// Unmounts the volumes, with retries.
    pub(crate) async fn release(&self, context: &Context, alloc_id: AllocId) {
        unmount(context, alloc_id, Some(self)).await;
        self.is_releasing.store(false, Ordering::SeqCst);
        self.is_released.store(true, Ordering::SeqCst);
    }

    /// Tells whether the end must not be reported yet.
    pub(crate) fn is_releasing(&self) -> bool {
        self.is_releasing.load(Ordering::SeqCst)
    }

    /// Tells once that the end is to be reported.
    pub(crate) fn take_released(&self) -> bool {
        self.is_released.swap(false, Ordering::SeqCst)
    }
}

/// Unmounts an allocation's volumes, with retries. It gives up after a day; the next run of the agent
/// goes on.
async fn unmount(context: &Context, alloc_id: AllocId, volumes: Option<&AllocVolumes>) {
    let Some(storage) = &context.storage else {
        return;
    };
    let began = Instant::now();
    let mut failures = 0;
    loop {
        let unmounted = {
            let _changing = match volumes {
                Some(volumes) => Some(volumes.changing.lock().await),
                None => None,
            };
            storage.mounts.unmount_all(alloc_id).await
        };
        let Err(reason) = unmounted else {
            return;
        };
        failures += 1;
        warn!(%alloc_id, reason, failures, "cannot unmount the volumes of an allocation");
        if began.elapsed() >= LIMIT {
            return;
        }
        sleep(backoff::pause(failures)).await;
    }
}

/// Lists the allocations with mounts that are not among `wanted`.
pub fn unwanted(storage: &Storage, wanted: &BTreeSet<AllocId>) -> Vec<AllocId> {
    let mut all = storage.mounts.all();
    all.retain(|alloc_id| !wanted.contains(alloc_id));
    all
}

/// Unmounts the volumes of `unwanted` allocations.
pub async fn sweep(context: &Arc<Context>, unwanted: Vec<AllocId>) {
    for alloc_id in unwanted {
        info!(%alloc_id, "unmounting the volumes of an allocation that is gone");
        unmount(context, alloc_id, None).await;
    }
}
