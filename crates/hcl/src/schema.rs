//! Types of schema tables: blocks, attributes, and unsupported names.
//!
//! A table serves the HCL reader (names), the reader of the HTTP API's JSON (`json` keys) and
//! messages (expected names). Unsupported names are listed with an alternative, so that they are
//! refused and never ignored.

/// One block type.
pub struct Schema {
    pub name: &'static str,
    pub label: Option<Label>,
    pub attributes: &'static [Attribute],
    pub blocks: &'static [Child],
    pub refused: &'static [Refused],
    pub ignored: &'static [Ignored],
    /// Converts a block read from HCL into the API's shape.
    pub finish: Option<Finish>,
}

/// Converts an object with API keys and HCL-only keys (`hcl:…`); returns an error message.
pub type Finish = fn(&mut serde_json::Map<String, serde_json::Value>) -> Result<(), String>;

/// The one label of a block.
pub struct Label {
    /// The noun in messages.
    pub noun: &'static str,
    pub json: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name in HCL; empty if only the API has it.
    pub name: &'static str,
    /// Its key in the API's JSON; empty: that of [`Self::key`]. A key with `hcl:` exists in HCL only.
    pub json: &'static str,
    pub kind: Kind,
}

impl Attribute {
    /// Returns its key in the API's JSON: if the schema declares none, the name in Pascal case, in which
    /// `id` is `ID`.
    pub fn key(&self) -> String {
        if !self.json.is_empty() {
            return self.json.to_owned();
        }
        let words = self.name.split('_').map(|word| match word {
            "id" => "ID".to_owned(),
            word => {
                let (first, rest) = word.split_at(usize::from(!word.is_empty()));
                first.to_ascii_uppercase() + rest
            }
        });
        words.collect()
    }
}

/// The kind of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// An integer.
    Whole,
    /// true or false.
    Flag,
    TextList,
    /// Texts by name, as an attribute or a block.
    TextMap,
    /// A duration: "30s", or integer nanoseconds.
    Duration,
    /// Free-form options, as an attribute or a block.
    Config,
}

impl Kind {
    /// Tells whether `env { … }` equals `env = { … }`.
    pub fn has_block_form(self) -> bool {
        matches!(self, Self::TextMap | Self::Config)
    }
}

/// A nested block.
pub struct Child {
    pub schema: &'static Schema,
    pub json: &'static str,
    pub repeat: Repeat,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    Once,
    Many,
    /// In the API's JSON: an object of objects by label.
    Named,
}

/// The notations of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Both,
    Hcl,
    Api,
}

/// An unsupported block or attribute of Nomad's.
pub struct Refused {
    pub name: &'static str,
    pub json: &'static str,
    /// "block" or "argument", for messages.
    pub noun: &'static str,
    /// The alternative.
    pub instead: &'static str,
}

/// A block or attribute without effect.
pub struct Ignored {
    pub name: &'static str,
    pub json: &'static str,
    pub warning: &'static str,
}

impl Schema {
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name && !name.is_empty())
    }

    /// Returns the block of this name in HCL.
    pub fn block(&self, name: &str) -> Option<&'static Child> {
        self.hcl_blocks().find(|child| child.schema.name == name)
    }

    pub fn hcl_blocks(&self) -> impl Iterator<Item = &'static Child> {
        self.blocks.iter().filter(|child| child.form != Form::Api)
    }

    /// Returns the names of HCL attributes, for messages.
    pub fn attribute_names(&self) -> impl Iterator<Item = &'static str> {
        self.attributes
            .iter()
            .map(|attribute| attribute.name)
            .filter(|name| !name.is_empty())
    }

    /// Returns the names of HCL blocks, for messages.
    pub fn block_names(&self) -> impl Iterator<Item = &'static str> {
        let maps = self
            .attributes
            .iter()
            .filter(|attribute| attribute.kind.has_block_form());
        self.hcl_blocks()
            .map(|child| child.schema.name)
            .chain(maps.map(|map| map.name))
    }

    pub fn refusal(&self, name: &str) -> Option<&'static Refused> {
        self.refused
            .iter()
            .find(|refused| refused.name == name && !name.is_empty())
    }

    pub fn ignored(&self, name: &str) -> Option<&'static Ignored> {
        self.ignored.iter().find(|ignored| ignored.name == name)
    }
}

impl Refused {
    pub fn message(&self) -> String {
        format!(
            "{} {:?} is not supported by this version of Kafila: {}",
            self.noun, self.name, self.instead,
        )
    }
}

pub const fn attribute(name: &'static str, json: &'static str, kind: Kind) -> Attribute {
    Attribute { name, json, kind }
}

/// Returns an attribute whose JSON key follows from its name ([`Attribute::key`]).
pub const fn named(name: &'static str, kind: Kind) -> Attribute {
    attribute(name, "", kind)
}

pub const fn once(schema: &'static Schema, json: &'static str) -> Child {
    Child {
        schema,
        json,
        repeat: Repeat::Once,
        form: Form::Both,
    }
}

pub const fn many(schema: &'static Schema, json: &'static str) -> Child {
    Child {
        schema,
        json,
        repeat: Repeat::Many,
        form: Form::Both,
    }
}

pub const fn refused_block(
    name: &'static str,
    json: &'static str,
    instead: &'static str,
) -> Refused {
    Refused {
        name,
        json,
        noun: "block",
        instead,
    }
}

pub const fn refused_argument(
    name: &'static str,
    json: &'static str,
    instead: &'static str,
) -> Refused {
    Refused {
        name,
        json,
        noun: "argument",
        instead,
    }
}

/// A block with attributes only.
pub const fn plain(name: &'static str, attributes: &'static [Attribute]) -> Schema {
    Schema {
        name,
        label: None,
        attributes,
        blocks: &[],
        refused: &[],
        ignored: &[],
        finish: None,
    }
}
