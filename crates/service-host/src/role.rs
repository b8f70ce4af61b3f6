//! Roles of services in certificates.

use identity::Role;

/// Returns the role of the service with this name; `None` for a process that is none of them.
pub fn role_of(service: &str) -> Option<Role> {
    let mut roles = Role::ALL.into_iter();
    roles.find(|role| role.service() == Some(service))
}
