//! Look-ups: data outside the template that a rendering needs, and the trait that answers them.

use std::collections::BTreeMap;
use std::fmt;

/// One look-up. Its text (`Display`) is the name that events and metrics show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// `nomadVar`; `nomadVarExists` asks for the same.
    Variable { path: VariablePath },
    /// `nomadVarList` and `nomadVarListSafe`: variables below a prefix, which may be empty.
    Variables { prefix: VariablePath },
    /// `nomadService`: instances of a service; with a choice, at most `count`, chosen by `key`.
    Service {
        name: String,
        choice: Option<Choice>,
    },
    /// `nomadServices`: names of all services.
    Services,
    /// A function of Consul with its arguments; a default is none of them.
    Consul {
        function: &'static str,
        arguments: Vec<String>,
    },
    /// `secret` with a path alone: the secret is read.
    Secret { path: String },
    /// `secrets`: the names below a path.
    Secrets { path: String },
    /// `secret` with values, and `pkiCert`: the values are written, the answer has the result.
    SecretWrite { path: String, values: Hidden },
}

/// Values that a template writes, by name. `Debug` hides them, and no `Display` of a look-up has them.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hidden(pub BTreeMap<String, String>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hidden values", self.0.len())
    }
}

/// A variable's path, with the namespace and region where it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariablePath {
    pub path: String,
    pub namespace: String,
    pub region: String,
}

/// A stable choice of `count` instances: the same for the same `key`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    pub count: usize,
    pub key: String,
}

impl Lookup {
    /// The system that holds the data: `Nomad variables`, `Nomad services`, `Consul`, `Vault`.
    pub fn system(&self) -> &'static str {
        match self {
            Self::Variable { .. } | Self::Variables { .. } => "Nomad variables",
            Self::Service { .. } | Self::Services => "Nomad services",
            Self::Consul { .. } => "Consul",
            Self::Secret { .. } | Self::Secrets { .. } | Self::SecretWrite { .. } => "Vault",
        }
    }
}

impl fmt::Display for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { path } => write!(f, "nomad.var.block({path})"),
            Self::Variables { prefix } => write!(f, "nomad.var.list({prefix})"),
            Self::Service { name, choice: None } => write!(f, "nomad.service({name})"),
            Self::Service {
                name,
                choice: Some(choice),
            } => write!(
                f,
                "nomad.service({name}, {} of {})",
                choice.count, choice.key
            ),
            Self::Services => write!(f, "nomad.services"),
            Self::Consul {
                function,
                arguments,
            } => write!(f, "consul.{function}({})", arguments.join(", ")),
            Self::Secret { path } => write!(f, "vault.read({path})"),
            Self::Secrets { path } => write!(f, "vault.list({path})"),
            Self::SecretWrite { path, .. } => write!(f, "vault.write({path})"),
        }
    }
}

impl fmt::Display for VariablePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}.{}", self.path, self.namespace, self.region)
    }
}

/// The answer to a look-up.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The data is not there, or not yet: the rendering waits for it.
    Missing,
    /// The data is known not to exist: `nomadVarExists` is false, `nomadVar` waits.
    Absent,
    Variable(Variable),
    Variables(Vec<Variable>),
    Instances(Vec<ServiceInstance>),
    Services(Vec<ServiceName>),
    Secret(Secret),
    /// Names, as `secrets` lists them.
    Names(Vec<String>),
    /// The result of a function of Consul.
    Data(Data),
}

/// Data of any form, as a template sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Data {
    #[default]
    Nil,
    Int(i64),
    Uint(u64),
    Bool(bool),
    Text(String),
    List(Vec<Data>),
    Map(BTreeMap<String, Data>),
    /// Name of a field -> its value.
    Record(BTreeMap<&'static str, Data>),
}

impl Data {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A map of texts.
    pub fn text_map(texts: BTreeMap<String, String>) -> Self {
        let entries = texts.into_iter();
        Self::Map(entries.map(|(key, text)| (key, Self::Text(text))).collect())
    }

    pub fn record(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::Record(fields.into_iter().collect())
    }
}

/// A secret of Vault. `Debug` hides its data.
#[derive(Clone, Default)]
pub struct Secret {
    pub request_id: String,
    pub lease_id: String,
    /// Seconds.
    pub lease_duration: u64,
    pub renewable: bool,
    /// An object, or null.
    pub data: serde_json::Value,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("lease_duration", &self.lease_duration)
            .field("renewable", &self.renewable)
            .finish_non_exhaustive()
    }
}

/// The number of the request aside, which differs each time.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let of = |secret: &Self| (secret.lease_duration, secret.renewable);
        of(self) == of(other) && self.lease_id == other.lease_id && self.data == other.data
    }
}

/// A variable. A list of variables has no items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variable {
    pub namespace: String,
    pub path: String,
    pub items: BTreeMap<String, String>,
    pub create_index: u64,
    pub modify_index: u64,
    /// Unix time in nanoseconds.
    pub create_time: i64,
    /// Unix time in nanoseconds.
    pub modify_time: i64,
}

/// One instance of a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceInstance {
    pub id: String,
    pub name: String,
    pub node: String,
    pub address: String,
    pub port: u16,
    pub datacenter: String,
    pub tags: Vec<String>,
    pub job_id: String,
    pub alloc_id: String,
}

/// A service, with the tags of all of its instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceName {
    pub name: String,
    pub tags: Vec<String>,
}

/// Answers look-ups. An implementation answers from memory: a rendering does not wait.
pub trait Source {
    fn look_up(&self, lookup: &Lookup) -> Answer;
}

/// A source without data: each look-up is missing.
#[derive(Clone, Copy, Debug)]
pub struct NoSource;

impl Source for NoSource {
    fn look_up(&self, _: &Lookup) -> Answer {
        Answer::Missing
    }
}

/// Files that a template may read.
pub trait Files {
    /// The contents of the file at `path`, at most `size_max` bytes.
    ///
    /// # Errors
    /// A message for the user: the path is outside of the task's directories, unreadable or too large.
    fn read(&self, path: &str, size_max: usize) -> Result<String, String>;
}

/// No file can be read.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str, _: usize) -> Result<String, String> {
        Err(format!(
            "{path:?} can't be read: this template has no files"
        ))
    }
}
