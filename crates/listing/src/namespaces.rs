//! Namespaces of a list.

use model::Namespace;

/// The namespaces of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    All,
    One(String),
}

impl Namespaces {
    /// Reads the namespace of a request: `*` is every one, and empty the default.
    pub fn read(text: &str) -> Self {
        match text {
            "*" => Self::All,
            one => Self::One(Namespace::or_default(one).to_owned()),
        }
    }

    pub fn contain(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == namespace,
        }
    }
}
