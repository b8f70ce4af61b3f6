//! State that the attempts of a task share: its tokens of Vault and Consul and the look-ups of its templates.
//!
//! A restart of the task uses them again, so it needs neither Vault nor another source.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::consul::Consul;
use task_vault::{Keeper, Secrets};
use template_watch::Watch;

use crate::context::Context;
use crate::data_source::Requester;
use crate::sources::Sources;

/// State of one task that outlives its attempts.
#[derive(Default)]
pub(crate) struct TaskShared {
    keeper: Mutex<Option<Arc<Keeper>>>,
    consul_keeper: Mutex<Option<Arc<task_consul::Keeper>>>,
    watch: Mutex<Option<Arc<Watch>>>,
    /// The generation of the token that the task was given last; 0: none.
    given: AtomicU64,
    /// As `given`, of Consul.
    consul_given: AtomicU64,
    /// The variables of hooks that the last rendering before a start has seen.
    shown: Mutex<BTreeMap<String, String>>,
}

impl TaskShared {
    pub(crate) fn keeper(&self) -> Option<Arc<Keeper>> {
        lock(&self.keeper).clone()
    }

    /// The keeper of the task's token; `make` makes the first.
    pub(crate) fn keeper_or(&self, make: impl FnOnce() -> Keeper) -> Arc<Keeper> {
        let mut keeper = lock(&self.keeper);
        Arc::clone(keeper.get_or_insert_with(|| Arc::new(make())))
    }

    /// Ends a keeper that was refused, so that the next start logs in at once.
    pub(crate) fn drop_keeper(&self) {
        lock(&self.keeper).take();
        // It uses the keeper's token.
        lock(&self.watch).take();
        self.given.store(0, Ordering::SeqCst);
    }

    pub(crate) fn consul_keeper(&self) -> Option<Arc<task_consul::Keeper>> {
        lock(&self.consul_keeper).clone()
    }

    /// The keeper of the task's token of Consul; `make` makes the first.
    pub(crate) fn consul_keeper_or(
        &self,
        make: impl FnOnce() -> task_consul::Keeper,
    ) -> Arc<task_consul::Keeper> {
        let mut keeper = lock(&self.consul_keeper);
        Arc::clone(keeper.get_or_insert_with(|| Arc::new(make())))
    }

    /// As [`Self::drop_keeper`], of Consul.
    pub(crate) fn drop_consul_keeper(&self) {
        lock(&self.consul_keeper).take();
        lock(&self.watch).take();
        self.consul_given.store(0, Ordering::SeqCst);
    }

    pub(crate) fn watch(&self) -> Option<Arc<Watch>> {
        lock(&self.watch).clone()
    }

    /// The look-ups of the task's templates; the first call begins them.
    pub(crate) fn watch_or_begin(
        &self,
        context: &Context,
        requester: Requester,
        consul: Option<&Consul>,
    ) -> Arc<Watch> {
        let keeper = self.keeper();
        let consul_keeper = self.consul_keeper();
        let mut watch = lock(&self.watch);
        Arc::clone(watch.get_or_insert_with(|| {
            let secrets = context.vault.as_ref().zip(keeper.as_deref());
            let clock = context.clocks.wall_clock();
            let secrets = secrets.map(|(node, keeper)| Secrets::new(node, keeper, clock));
            let place = consul.map_or(("", ""), |block| (&*block.namespace, &*block.partition));
            let consul = context.consul.as_ref().map(|node| {
                task_consul::Data::new(node, consul_keeper.as_deref(), place.0, place.1)
            });
            Arc::new(Watch::spawn(
                Arc::new(Sources {
                    secrets,
                    consul,
                    data: Arc::clone(&context.data),
                    requester,
                }),
                context.ids.rng(),
            ))
        }))
    }

    /// Keeps the variables that templates see, for renderings while the task runs.
    pub(crate) fn show(&self, variables: &BTreeMap<String, String>) {
        lock(&self.shown).clone_from(variables);
    }

    pub(crate) fn shown(&self) -> BTreeMap<String, String> {
        lock(&self.shown).clone()
    }

    pub(crate) fn given(&self) -> u64 {
        self.given.load(Ordering::SeqCst)
    }

    pub(crate) fn give(&self, generation: u64) {
        self.given.store(generation, Ordering::SeqCst);
    }

    pub(crate) fn consul_given(&self) -> u64 {
        self.consul_given.load(Ordering::SeqCst)
    }

    pub(crate) fn give_consul(&self, generation: u64) {
        self.consul_given.store(generation, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
