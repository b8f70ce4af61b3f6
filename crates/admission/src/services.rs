//! Decisions about service registrations: their deletion by a user, and the removal of leftovers.

use model::refusal::{Kind, Refusal};
use model::{AllocServices, FieldErrors};
use state::{Entity, Key, Snapshot, Write};

/// Leftovers removed in one transaction: a tenth of its operations, so that reports are not delayed.
const MAX_LEFTOVERS: usize = 100;

/// The reason why a registration is not deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "service registration not found: service {name:?} of namespace {namespace:?} has no registration {id:?}; \
         `kafila service info -verbose {name}` lists them"
    )]
    NotFound {
        namespace: String,
        name: String,
        id: String,
    },
}

impl Refusal for DeleteRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::NotFound { .. } => Kind::NotFound,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            Self::NotFound { .. } => None,
        }
    }
}

/// Decides the deletion of a registration: it is hidden until its node takes it back itself.
///
/// # Errors
/// The name or the id is empty, or there is no such registration.
pub fn delete(
    snapshot: &Snapshot,
    namespace: &str,
    name: &str,
    id: &str,
) -> Result<Write, DeleteRefusal> {
    let mut errors = FieldErrors::default();
    for (field, text) in [("name", name), ("service_id", id)] {
        if text.is_empty() {
            let message = "missing: want the name of a service and the id of a registration";
            errors.push(field, message);
        }
    }
    errors.into_result(())?;
    let found = snapshot.services().find(|service| {
        let registration = service.registration;
        registration.id == id
            && registration.name == name
            && *service.alloc.alloc.namespace == *namespace
    });
    let stored = found.and_then(|service| {
        let alloc_id = service.alloc.alloc.id;
        Some((alloc_id, snapshot.alloc_services(alloc_id)?))
    });
    let Some((alloc_id, stored)) = stored else {
        return Err(DeleteRefusal::NotFound {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            id: id.to_owned(),
        });
    };
    let mut services = AllocServices::clone(&stored.value);
    services.deleted.push(id.to_owned());
    Ok(Write::Update {
        key: Key::Services(alloc_id),
        modify_index: stored.modify_index,
        entity: Entity::Services(Box::new(services)),
    })
}

/// Returns deletions of registrations whose allocation is gone, has ended or is lost: no report of
/// theirs comes any more. At most 100, the rest is for the next call.
pub fn leftovers(snapshot: &Snapshot) -> Vec<Write> {
    let is_left = |alloc_id| {
        let alloc = snapshot.alloc(alloc_id);
        alloc.is_none_or(|alloc| alloc.is_client_terminal())
    };
    let left = snapshot.all_alloc_services().filter(|(id, _)| is_left(*id));
    let deletions = left.map(|(id, services)| Write::Delete {
        key: Key::Services(id),
        modify_index: services.modify_index,
    });
    deletions.take(MAX_LEFTOVERS).collect()
}

#[cfg(test)]
mod tests;
