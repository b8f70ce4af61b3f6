//! Which blocks and attributes a job file may have, as tables.
//!
//! One table serves three readers: the HCL reader (names), the reader of the HTTP API's JSON (the
//! `json` keys), and the messages that say what is expected where. A block of Nomad's that this
//! version does not carry out stands in the tables too, with what to do instead: it is refused,
//! never ignored.

mod device;
mod group;
mod job;
mod launches;
mod policies;
mod rank;
mod task;

pub(crate) use self::job::JOB;

/// One kind of block.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) label: Option<Label>,
    pub(crate) attributes: &'static [Attribute],
    pub(crate) blocks: &'static [Child],
    pub(crate) refused: &'static [Refused],
    pub(crate) ignored: &'static [Ignored],
    /// Brings a block read from HCL into the API's shape.
    pub(crate) finish: Option<Finish>,
}

/// Takes the object with API keys and, where HCL's form differs, its own; returns what is wrong.
pub(crate) type Finish = fn(&mut serde_json::Map<String, serde_json::Value>) -> Result<(), String>;

/// The one label of a block.
pub(crate) struct Label {
    /// What messages call it.
    pub(crate) noun: &'static str,
    pub(crate) json: &'static str,
}

pub(crate) struct Attribute {
    /// Its name in HCL; empty for one that only the API has.
    pub(crate) name: &'static str,
    /// Its key in the API's JSON; one that starts with `hcl:` does not exist there.
    pub(crate) json: &'static str,
    pub(crate) kind: Kind,
}

/// What an attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// An integer.
    Whole,
    /// true or false.
    Flag,
    TextList,
    /// Texts by name; written as an attribute or as a block.
    TextMap,
    /// A duration: "30s", or integer nanoseconds.
    Span,
    /// Anything, for a driver to understand; written as an attribute or as a block.
    Config,
}

impl Kind {
    /// Tells whether `env { … }` means the same as `env = { … }`.
    pub(crate) fn has_block_form(self) -> bool {
        matches!(self, Self::TextMap | Self::Config)
    }
}

/// A block within a block.
pub(crate) struct Child {
    pub(crate) schema: &'static Schema,
    pub(crate) json: &'static str,
    pub(crate) repeat: Repeat,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Once,
    Many,
    /// In the API's JSON an object of objects, by their labels.
    Named,
}

/// In which notation the block exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Both,
    Hcl,
    Api,
}

/// A block or attribute of Nomad's that this version refuses.
pub(crate) struct Refused {
    pub(crate) name: &'static str,
    pub(crate) json: &'static str,
    /// Block or argument, as messages call it.
    pub(crate) noun: &'static str,
    /// What to do instead.
    pub(crate) instead: &'static str,
}

/// A block or attribute that changes nothing here.
pub(crate) struct Ignored {
    pub(crate) name: &'static str,
    pub(crate) json: &'static str,
    pub(crate) warning: &'static str,
}

impl Schema {
    pub(crate) fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name && !name.is_empty())
    }

    /// Returns the block of this name in HCL.
    pub(crate) fn block(&self, name: &str) -> Option<&'static Child> {
        self.hcl_blocks().find(|child| child.schema.name == name)
    }

    pub(crate) fn hcl_blocks(&self) -> impl Iterator<Item = &'static Child> {
        self.blocks.iter().filter(|child| child.form != Form::Api)
    }

    /// Returns the names of the attributes that HCL has here, for messages.
    pub(crate) fn attribute_names(&self) -> impl Iterator<Item = &'static str> {
        self.attributes
            .iter()
            .map(|attribute| attribute.name)
            .filter(|name| !name.is_empty())
    }

    /// Returns the names of the blocks that HCL has here, for messages.
    pub(crate) fn block_names(&self) -> impl Iterator<Item = &'static str> {
        let maps = self
            .attributes
            .iter()
            .filter(|attribute| attribute.kind.has_block_form());
        self.hcl_blocks()
            .map(|child| child.schema.name)
            .chain(maps.map(|map| map.name))
    }

    pub(crate) fn refusal(&self, name: &str) -> Option<&'static Refused> {
        self.refused
            .iter()
            .find(|refused| refused.name == name && !name.is_empty())
    }

    pub(crate) fn ignored(&self, name: &str) -> Option<&'static Ignored> {
        self.ignored.iter().find(|ignored| ignored.name == name)
    }
}

impl Refused {
    pub(crate) fn message(&self) -> String {
        format!(
            "{} {:?} is not supported by this version of Kafila: {}",
            self.noun, self.name, self.instead,
        )
    }
}

const fn attribute(name: &'static str, json: &'static str, kind: Kind) -> Attribute {
    Attribute { name, json, kind }
}

const fn once(schema: &'static Schema, json: &'static str) -> Child {
    Child {
        schema,
        json,
        repeat: Repeat::Once,
        form: Form::Both,
    }
}

const fn many(schema: &'static Schema, json: &'static str) -> Child {
    Child {
        schema,
        json,
        repeat: Repeat::Many,
        form: Form::Both,
    }
}

const fn refused_block(name: &'static str, json: &'static str, instead: &'static str) -> Refused {
    Refused {
        name,
        json,
        noun: "block",
        instead,
    }
}

const fn refused_argument(
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

/// A block without label, children or surprises.
const fn plain(name: &'static str, attributes: &'static [Attribute]) -> Schema {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that users read.
    const PAGE: &str = include_str!("../../../../docs/job-files.md");

    fn names(schema: &'static Schema, out: &mut Vec<&'static str>) {
        out.push(schema.name);
        out.extend(schema.attribute_names());
        out.extend(schema.refused.iter().map(|refused| refused.name));
        out.extend(schema.ignored.iter().map(|ignored| ignored.name));
        for child in schema.hcl_blocks() {
            names(child.schema, out);
        }
    }

    #[test]
    fn the_page_on_job_files_names_every_block_attribute_and_function() {
        let mut known = vec!["job"];
        names(&JOB, &mut known);
        known.extend(crate::language::functions::names());
        known.retain(|name| !name.is_empty());
        // A label may follow: `group "name"`.
        let is_named =
            |name: &str| PAGE.contains(&format!("`{name}`")) || PAGE.contains(&format!("`{name} "));
        let inline = ["static", "to", "host_network", "percent"];
        let missing: Vec<_> = known
            .iter()
            .filter(|name| !is_named(name) && !inline.contains(name))
            .collect();
        assert!(
            missing.is_empty(),
            "docs/job-files.md does not mention {missing:?}"
        );
    }

    #[test]
    fn every_key_of_a_block_is_there_once() {
        fn check(schema: &'static Schema) {
            let mut keys: Vec<&str> = schema.attributes.iter().map(|a| a.json).collect();
            keys.extend(schema.blocks.iter().map(|child| child.json));
            keys.extend(schema.refused.iter().map(|refused| refused.json));
            keys.extend(schema.label.iter().map(|label| label.json));
            keys.retain(|key| !key.is_empty());
            // The job's label is its id, too.
            let duplicates = usize::from(schema.name == "job");
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len() + duplicates, all, "{}", schema.name);
            schema.blocks.iter().for_each(|child| check(child.schema));
        }
        check(&JOB);
    }
}
