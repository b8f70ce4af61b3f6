//! Options of drivers: their names, types, and whether a task needs them.

/// The advice for a refused option that nothing replaces.
pub(super) const REMOVE: &str = "remove it";

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    TextList,
    /// A text, or a list of texts.
    TextOrList,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Names of capabilities of Linux, or `all`.
    Capabilities,
    /// An integer within these bounds.
    Whole(i64, i64),
    /// true or false.
    Flag,
    /// A text such as "10s", or integer nanoseconds, which it becomes.
    Duration,
    /// A path from the root.
    AbsolutePath,
    /// Names with texts, as a block or a map.
    TextMap,
    /// A block with these options, at most once.
    Block(&'static [DriverOption]),
    /// Blocks with these options.
    Blocks(&'static [DriverOption]),
}

/// The modes of a namespace.
pub(super) const MODES: Kind = Kind::OneOf(&["private", "host"]);

#[derive(Clone, Copy)]
pub(super) struct DriverOption {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// A value as an example; `None`: the option can be left out.
    pub(super) required: Option<&'static str>,
}

pub(super) struct Driver {
    pub(super) name: &'static str,
    pub(super) options: &'static [DriverOption],
    /// Options of Nomad's driver that this version does not support, and what to write instead.
    pub(super) refused: &'static [(&'static str, &'static str)],
}

pub(super) const fn option(name: &'static str, kind: Kind) -> DriverOption {
    DriverOption {
        name,
        kind,
        required: None,
    }
}

pub(super) const fn required(name: &'static str, example: &'static str) -> DriverOption {
    DriverOption {
        name,
        kind: Kind::Text,
        required: Some(example),
    }
}
