//! The decision about one call.

use identity::{Caller, Identity, Peer};

use crate::table::{Access, Method, find};

/// A call that may go on.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    pub method: &'static Method,
}

/// A call that must not reach its handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    /// The method is not in the table, so no server of ours has it.
    #[error("no such method")]
    UnknownMethod,
    #[error(
        "{method} needs a client certificate of {needed}, and the connection has none; create one \
         with kafila tls cert create"
    )]
    Unauthenticated {
        method: &'static str,
        needed: String,
    },
    #[error("{caller} may not call {method}: it needs {needed}")]
    Role {
        caller: Identity,
        method: &'static str,
        needed: String,
    },
    #[error("{caller} may not call {method}: this server is in region {region}")]
    Region {
        caller: Identity,
        method: &'static str,
        region: String,
    },
}

impl AccessRefusal {
    /// Returns the method, for the label of a metric; `None` if the table lacks it: paths come from
    /// outside, and labels must be few.
    pub fn method(&self) -> Option<&'static str> {
        match self {
            Self::UnknownMethod => None,
            Self::Unauthenticated { method, .. }
            | Self::Role { method, .. }
            | Self::Region { method, .. } => Some(method),
        }
    }

    /// Returns the role of the caller, for the label of a metric.
    pub fn role(&self) -> &'static str {
        match self {
            Self::UnknownMethod | Self::Unauthenticated { .. } => "none",
            Self::Role { caller, .. } | Self::Region { caller, .. } => caller.role().as_str(),
        }
    }
}

/// Decides whether `caller` may call the method at `path`.
///
/// Shape: `path` is that of the HTTP/2 request, `/<package>.<service>/<method>`. `region` is the
/// server's, from its certificate; `None`: it has none.
///
/// # Errors
/// See [`AccessRefusal`].
pub fn check(path: &str, caller: &Caller, region: Option<&str>) -> Result<Allowed, AccessRefusal> {
    let name = path.strip_prefix('/').unwrap_or(path);
    let method = find(name).ok_or(AccessRefusal::UnknownMethod)?;
    let needed = || method.access.needed();
    let identity = match (caller.peer(), method.access) {
        (Peer::Development, _) | (_, Access::Anyone) => return Ok(Allowed { method }),
        (Peer::Anonymous, _) => {
            return Err(AccessRefusal::Unauthenticated {
                method: method.name,
                needed: needed(),
            });
        }
        (Peer::Certified(identity), _) => identity,
    };
    if !method.access.includes(identity.role()) {
        return Err(AccessRefusal::Role {
            caller: identity.clone(),
            method: method.name,
            needed: needed(),
        });
    }
    match region {
        Some(region) if region != identity.region() => Err(AccessRefusal::Region {
            caller: identity.clone(),
            method: method.name,
            region: region.to_owned(),
        }),
        _ => Ok(Allowed { method }),
    }
}
