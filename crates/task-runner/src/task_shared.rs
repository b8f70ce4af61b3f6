//! State that the attempts of a task share: its tokens of Vault and Consul and the look-ups of its templates.
//!
//! A restart of the task uses them again, so it needs neither Vault nor another source.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use login_provider::{Keeper, State};
use model::consul::Consul;
use model::vault::Vault;
use task_vault::Secrets;
use template_watch::Watch;

use crate::context::Context;
use crate::data_source::Requester;
use crate::sources::{CONSUL, Sources, VAULT};

/// A service that tasks log in to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginService {
    Vault,
    Consul,
}

impl LoginService {
    pub(crate) const ALL: [Self; 2] = [Self::Vault, Self::Consul];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vault => VAULT,
            Self::Consul => CONSUL,
        }
    }

    /// The name of the service in the names of identities.
    pub(crate) fn identity(self) -> &'static str {
        match self {
            Self::Vault => "vault",
            Self::Consul => "consul",
        }
    }

    /// The file with the token.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Vault => "secrets/vault_token",
            Self::Consul => "secrets/consul_token",
        }
    }
}

/// A task's login to one service.
#[derive(Default)]
pub(crate) struct Login {
    keeper: Mutex<Option<Arc<Keeper>>>,
    /// The generation of the token that the task was given last; 0: none.
    given: AtomicU64,
}

impl Login {
    pub(crate) fn keeper(&self) -> Option<Arc<Keeper>> {
        lock(&self.keeper).clone()
    }

    /// The keeper of the task's token; `make` makes the first.
    pub(crate) fn keeper_or(&self, make: impl FnOnce() -> Keeper) -> Arc<Keeper> {
        let mut keeper = lock(&self.keeper);
        Arc::clone(keeper.get_or_insert_with(|| Arc::new(make())))
    }

    pub(crate) fn is_given(&self, state: &State) -> bool {
        self.given.load(Ordering::SeqCst) == state.generation
    }

    /// Records that the task was given the token of `state`.
    pub(crate) fn give(&self, state: &State) {
        self.given.store(state.generation, Ordering::SeqCst);
    }
}

/// State of one task that outlives its attempts.
#[derive(Default)]
pub(crate) struct TaskShared {
    vault: Login,
    consul: Login,
    watch: Mutex<Option<Arc<Watch>>>,
    /// The variables of hooks that the last rendering before a start has seen.
    shown: Mutex<BTreeMap<String, String>>,
}

impl TaskShared {
    pub(crate) fn login(&self, service: LoginService) -> &Login {
        match service {
            LoginService::Vault => &self.vault,
            LoginService::Consul => &self.consul,
        }
    }

    /// Ends a login that was refused, so that the next start logs in at once.
    pub(crate) fn drop_login(&self, service: LoginService) {
        let login = self.login(service);
        lock(&login.keeper).take();
        // It uses the keeper's token.
        lock(&self.watch).take();
        login.given.store(0, Ordering::SeqCst);
    }

    pub(crate) fn watch(&self) -> Option<Arc<Watch>> {
        lock(&self.watch).clone()
    }

    /// The look-ups of the task's templates, for its blocks `vault` and `consul`; the first call begins them.
    pub(crate) fn watch_or_begin(
        &self,
        context: &Context,
        requester: Requester,
        (vault, consul): (Option<&Vault>, Option<&Consul>),
    ) -> Arc<Watch> {
        let token = |login: &Login| Some(login.keeper()?.token());
        let (vault_token, consul_token) = (token(&self.vault), token(&self.consul));
        let mut watch = lock(&self.watch);
        Arc::clone(watch.get_or_insert_with(|| {
            let namespace = vault.map_or("", |block| &block.namespace);
            let clock = context.clocks.wall_clock();
            let secrets = context.vault.as_ref().zip(vault_token);
            let secrets = secrets.map(|(node, token)| Secrets::new(node, namespace, token, clock));
            let place = consul.map_or(("", ""), |block| (&*block.namespace, &*block.partition));
            let consul = context.consul.as_ref();
            let consul = consul.map(|node| task_consul::Data::new(node, consul_token, place));
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
