//! One attribute of all nodes as small numbers: texts are read once a kind, or once a node for a
//! unique attribute.

use std::borrow::Cow;

use placement::Target;
use rustc_hash::FxHashMap;
use state::{NodeRow, NodeTable};

/// Node → the number of its value.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// By the position of the node's kind.
    by_kind: Vec<u32>,
    /// By the position of the node; empty unless the attribute is unique.
    by_node: Vec<u32>,
}

impl Column {
    /// Maps each value to a number with `number_of`; `None` stands for a node without a value.
    pub(crate) fn new<'x>(
        table: &'x NodeTable,
        target: &'x Target,
        mut number_of: impl FnMut(Option<Cow<'x, str>>) -> u32,
    ) -> Self {
        let mut column = Self {
            by_kind: Vec::new(),
            by_node: Vec::new(),
        };
        if target.escapes_class() {
            column.by_node = (0..table.row_count())
                .map(|position| {
                    let node = table.node(position);
                    let value = node.and_then(|node| target.resolve(&node.value));
                    number_of(value)
                })
                .collect();
        } else {
            column.by_kind = table
                .kinds()
                .map(|kind| {
                    let value = kind.and_then(|kind| target.resolve(&kind.example.value));
                    number_of(value)
                })
                .collect();
        }
        column
    }

    /// Tells whether nodes of one kind may have different values.
    pub(crate) fn is_unique(&self) -> bool {
        !self.by_node.is_empty()
    }

    pub(crate) fn get(&self, position: usize, row: &NodeRow) -> u32 {
        match self.by_node.get(position) {
            Some(number) => *number,
            None => self.by_kind[row.kind as usize],
        }
    }

    pub(crate) fn of_kind(&self, kind: usize) -> Option<u32> {
        self.by_kind.get(kind).copied()
    }
}

/// Texts and their numbers, in the order of first occurrence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names<'x> {
    numbers: FxHashMap<Cow<'x, str>, u32>,
}

impl<'x> Names<'x> {
    pub(crate) fn number(&mut self, name: Cow<'x, str>) -> u32 {
        let next = u32::try_from(self.numbers.len()).expect("there are not that many nodes");
        *self.numbers.entry(name).or_insert(next)
    }

    /// Returns the text with this number; slow, for metrics only.
    pub(crate) fn name(&self, number: u32) -> &str {
        let mut all = self.numbers.iter();
        let found = all.find(|(_, other)| **other == number);
        found.map_or("", |(name, _)| name)
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}
