//! Arguments of the stand-in, as `name=value`.

use std::path::PathBuf;

use driver_plugin::handshake::COOKIE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The driver's name.
    pub name: String,
    pub version: String,
    /// The value of the cookie that it wants.
    pub cookie: String,
    /// Fault of the handshake: `silent`, `exit`, `garbage`, `long`, `endless`, `tcp`, `tls` or `old`.
    pub handshake: String,
    /// Ability that the agent does not have: `chroot`, `network` or `remote`.
    pub ability: String,
    /// `device`: it is no driver.
    pub kind: String,
    /// Directory of the faults that a test switches.
    pub control: Option<PathBuf>,
}

impl Options {
    /// # Errors
    /// An argument is unknown.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            name: "stand-in".to_owned(),
            version: "1.2.3".to_owned(),
            cookie: COOKIE.1.to_owned(),
            handshake: String::new(),
            ability: String::new(),
            kind: String::new(),
            control: None,
        };
        for arg in args {
            let (name, value) = arg.split_once('=').unwrap_or((arg.as_str(), ""));
            let value = value.to_owned();
            match name {
                "name" => options.name = value,
                "version" => options.version = value,
                "cookie" => options.cookie = value,
                "handshake" => options.handshake = value,
                "ability" => options.ability = value,
                "kind" => options.kind = value,
                "control" => options.control = Some(value.into()),
                _ => return Err(format!("unknown argument {arg:?}")),
            }
        }
        Ok(options)
    }
}
