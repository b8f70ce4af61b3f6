//! An identity: role, region and name, as a URI and as a DNS name.

use std::fmt;

use crate::role::{Role, UnknownRole};

/// The domain of Kafila's own DNS names. Names in it belong to roles: no certificate may add one.
pub const RESERVED_DOMAIN: &str = "kafila";

/// The longest DNS label (RFC 1035), which a region is.
const MAX_REGION_BYTES: usize = 63;
/// The longest name. Ours: a URI with it stays far below the limit of SPIFFE (2,048 bytes), and names
/// of hosts (253 bytes) fit.
const MAX_NAME_BYTES: usize = 253;

/// The identity of a service, a node or a person: unique within all regions of a CA.
///
/// Shape: `region` is a DNS label in lower case; `name` has letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    role: Role,
    region: String,
    name: String,
}

/// A role, region or name that an identity cannot have, or a URI that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIdentity {
    #[error(
        "region {0:?} is not a DNS label: want 1 to {MAX_REGION_BYTES} of a-z, 0-9 and -, with a \
         letter or digit at both ends"
    )]
    Region(String),
    #[error(
        "name {0:?} cannot be in a certificate: want 1 to {MAX_NAME_BYTES} of A-Z, a-z, 0-9, ., _ \
         and -, and neither \".\" nor \"..\""
    )]
    Name(String),
    #[error("URI {0:?} must have the form spiffe://REGION.{RESERVED_DOMAIN}/ROLE/NAME")]
    Uri(String),
    #[error(transparent)]
    Role(#[from] UnknownRole),
}

impl Identity {
    /// # Errors
    /// The region is no DNS label, or the name has other characters than those of a path segment.
    pub fn new(role: Role, region: &str, name: &str) -> Result<Self, InvalidIdentity> {
        if !is_label(region) {
            return Err(InvalidIdentity::Region(region.to_owned()));
        }
        if !is_name(name) {
            return Err(InvalidIdentity::Name(name.to_owned()));
        }
        Ok(Self {
            role,
            region: region.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Reads `spiffe://<region>.kafila/<role>/<name>`.
    ///
    /// # Errors
    /// Another form, an unknown role, or a malformed region or name.
    pub fn from_uri(uri: &str) -> Result<Self, InvalidIdentity> {
        let parts = || {
            let (domain, path) = uri.strip_prefix("spiffe://")?.split_once('/')?;
            let region = domain.strip_suffix(RESERVED_DOMAIN)?.strip_suffix('.')?;
            let (role, name) = path.split_once('/')?;
            Some((region, role, name))
        };
        let (region, role, name) = parts().ok_or_else(|| InvalidIdentity::Uri(uri.to_owned()))?;
        Self::new(role.parse()?, region, name)
    }

    pub const fn role(&self) -> Role {
        self.role
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    /// Returns the name within role and region; that of a node is its id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `spiffe://<region>.kafila/<role>/<name>`.
    pub fn uri(&self) -> String {
        let Self { role, region, name } = self;
        format!("spiffe://{region}.{RESERVED_DOMAIN}/{role}/{name}")
    }

    /// Returns `<role>.<region>.kafila`, the name by which clients verify servers of this role.
    pub fn dns_name(&self) -> String {
        let Self { role, region, .. } = self;
        format!("{role}.{region}.{RESERVED_DOMAIN}")
    }

    /// Returns `<name>.<role>.<region>.kafila`, the name by which clients verify this very server: a
    /// node's, whose certificate has the DNS name of all nodes, too. `None` if the name is no DNS label.
    pub fn own_dns_name(&self) -> Option<String> {
        let label = self.name.to_ascii_lowercase();
        is_label(&label).then(|| format!("{label}.{}", self.dns_name()))
    }

    /// Tells whether a certificate of this identity may have the DNS name: one of its own, or one
    /// outside the domain of roles.
    pub fn may_have(&self, dns_name: &str) -> bool {
        !is_reserved(dns_name)
            || dns_name == self.dns_name()
            || Some(dns_name) == self.own_dns_name().as_deref()
    }
}

/// Tells whether a DNS name lies in the domain that belongs to roles.
pub fn is_reserved(dns_name: &str) -> bool {
    let name = dns_name.trim_end_matches('.').to_ascii_lowercase();
    name == RESERVED_DOMAIN || name.ends_with(".kafila")
}

/// As `<role> <name> of region <region>`, for messages and logs; a name that repeats the role is left out.
impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, region, name } = self;
        if name == role.as_str() {
            return write!(formatter, "{role} of region {region}");
        }
        write!(formatter, "{role} {name} of region {region}")
    }
}

fn is_label(text: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=MAX_REGION_BYTES).contains(&bytes.len())
        && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        && bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
}

fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.bytes().all(is_allowed)
        && !matches!(text, "." | "..")
}
