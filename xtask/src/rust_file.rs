//! One Rust source file as far as dependencies between files go: its child modules, definitions,
//! re-exports, the paths that it names, and the methods that its types have and call.
//!
//! Works on tokens, not on a syntax tree: paths inside macro calls count, too.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

#[derive(Debug, Default)]
pub(crate) struct RustFile {
    /// Modules in files of their own, tests left out.
    pub(crate) children: Vec<Child>,
    /// Names of items at the top level.
    pub(crate) definitions: BTreeSet<String>,
    pub(crate) exports: Vec<Export>,
    pub(crate) references: Vec<Reference>,
    /// Names that the file may use without a path: types anywhere, functions and modules where
    /// they are called or begin a path.
    pub(crate) words: BTreeSet<String>,
    pub(crate) impls: Vec<Impl>,
    /// Modules all of whose names the file uses.
    pub(crate) globs: Vec<Reference>,
    /// Names that a `use` gives to a path: a later path may begin with one.
    imports: BTreeMap<String, Reference>,
}

/// An `impl` block, of a trait or not.
#[derive(Debug)]
pub(crate) struct Impl {
    /// Last name in the path of the type.
    pub(crate) type_name: String,
    /// Path of the type, where it is imported or written as one.
    pub(crate) type_path: Option<Reference>,
    pub(crate) methods: BTreeSet<String>,
    /// Methods of the type that the block calls: `self.name(…)` and `Self::name`.
    pub(crate) calls: BTreeSet<String>,
}

/// A module declared in one file and written in another.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Child {
    pub(crate) name: String,
    /// Value of its `path` attribute, relative to the folder of the file that declares it.
    pub(crate) path: Option<String>,
}

/// A path as written, without its leading `crate`, `self` or `super`.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    origin: Origin,
    pub(crate) path: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    Crate,
    /// The module that many levels up; 0 is the file's own.
    Up(usize),
}

/// One `pub use`; `name` is what it is called here, `None` for a glob.
#[derive(Debug)]
pub(crate) struct Export {
    name: Option<String>,
    pub(crate) reference: Reference,
}

impl Export {
    /// Returns the path behind the re-export when `name` may be it.
    pub(crate) fn leads_to(&self, name: &str) -> Option<Vec<String>> {
        let mut path = self.reference.path.clone();
        match &self.name {
            Some(own) if own == name => Some(path),
            Some(_) => None,
            None => {
                path.push(name.to_owned());
                Some(path)
            }
        }
    }

    pub(crate) fn is_glob(&self) -> bool {
        self.name.is_none()
    }
}

impl Reference {
    /// Returns the module that the path starts in; `None` when it leaves the crate.
    pub(crate) fn start(&self, module: &[String]) -> Option<Vec<String>> {
        match self.origin {
            Origin::Crate => Some(Vec::new()),
            Origin::Up(levels) => {
                let depth = module.len().checked_sub(levels)?;
                Some(module[..depth].to_vec())
            }
        }
    }
}

const ITEMS: [&str; 8] = [
    "fn", "struct", "enum", "trait", "type", "const", "static", "union",
];

impl RustFile {
    /// # Errors
    /// The text has unbalanced delimiters or is otherwise no sequence of Rust tokens.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
        let tokens = without_tests(tokens);
        let mut file = Self::default();
        file.read_children(&tokens);
        file.read(&tokens, 0, true);
        file.read_impls(&tokens);
        Ok(file)
    }

    fn read_children(&mut self, tokens: &[TokenTree]) {
        for at in 0..tokens.len() {
            if is_word(tokens.get(at), "mod")
                && let Some(name) = word(tokens.get(at + 1))
                && is_punct(tokens.get(at + 2), ';')
            {
                let path = path_attribute(&tokens[..at]);
                self.children.push(Child { name, path });
            }
        }
    }

    /// Reads `tokens`, which stand `depth` inline modules below the file.
    fn read(&mut self, tokens: &[TokenTree], depth: usize, top: bool) {
        let mut at = 0;
        while at < tokens.len() {
            if is_word(tokens.get(at), "use") {
                at = self.read_use(tokens, at, depth);
                continue;
            }
            if top
                && let Some(keyword) = word(tokens.get(at))
                && ITEMS.contains(&keyword.as_str())
                && let Some(name) = word(tokens.get(at + 1))
            {
                self.definitions.insert(name);
            }
            if top
                && is_word(tokens.get(at), "macro_rules")
                && let Some(name) = word(tokens.get(at + 2))
            {
                self.definitions.insert(name);
            }
            if is_word(tokens.get(at), "pub") && is_scope(tokens.get(at + 1)) {
                at += 2;
                continue;
            }
            if let Some(TokenTree::Group(group)) = tokens.get(at) {
                let inline_module = at >= 2 && is_word(tokens.get(at - 2), "mod");
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                self.read(&inner, depth + usize::from(inline_module), false);
                at += 1;
                continue;
            }
            at = self.read_path(tokens, at, depth);
        }
    }

    /// Reads the `impl` blocks among `tokens`, when all imports are known.
    fn read_impls(&mut self, tokens: &[TokenTree]) {
        for (at, token) in tokens.iter().enumerate() {
            if !is_word(Some(token), "impl") {
                continue;
            }
            let rest = &tokens[at + 1..];
            let body = rest.iter().position(
                |token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
            );
            let Some(body) = body else { continue };
            let path = implementing_type(&rest[..body]);
            let (Some(type_name), TokenTree::Group(group)) = (path.last().cloned(), &rest[body])
            else {
                continue;
            };
            let type_path = self.reference(&path, 0).or_else(|| self.imported(&path));
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let mut calls = BTreeSet::new();
            own_calls(&inner, &mut calls);
            self.impls.push(Impl {
                type_name,
                type_path,
                methods: methods(&inner),
                calls,
            });
        }
    }

    /// Reads the path that may begin at `at`; returns the position behind it.
    fn read_path(&mut self, tokens: &[TokenTree], at: usize, depth: usize) -> usize {
        let Some(first) = word(tokens.get(at)) else {
            return at + 1;
        };
        let after_colons = at >= 2 && is_colons(tokens, at - 2);
        if !after_colons && may_be_imported(tokens, at, &first) {
            self.words.insert(first.clone());
        }
        if after_colons || !is_colons(tokens, at + 1) {
            return at + 1;
        }
        let mut path = vec![first];
        let mut end = at + 1;
        while is_colons(tokens, end)
            && let Some(next) = word(tokens.get(end + 2))
        {
            path.push(next);
            end += 3;
        }
        let reference = self.reference(&path, depth);
        self.references
            .extend(reference.or_else(|| self.imported(&path)));
        end
    }

    /// Reads `use …;` from `at` on; returns the position of its end.
    fn read_use(&mut self, tokens: &[TokenTree], at: usize, depth: usize) -> usize {
        let length = tokens[at..].iter().position(is_semicolon);
        let end = at + length.unwrap_or(tokens.len() - at);
        let public = at >= 1
            && (is_word(tokens.get(at - 1), "pub")
                || (at >= 2 && is_word(tokens.get(at - 2), "pub") && is_scope(tokens.get(at - 1))));
        let mut found = Vec::new();
        use_tree(&tokens[at + 1..end], &[], &mut found);
        for (path, name) in found {
            let reference = self.reference(&path, depth);
            let Some(reference) = reference.or_else(|| self.imported(&path)) else {
                continue;
            };
            if let Some(name) = &name {
                self.imports.insert(name.clone(), reference.clone());
            }
            if name.is_none() {
                self.globs.push(reference.clone());
            }
            if public {
                self.exports.push(Export { name, reference });
            } else {
                self.references.push(reference);
            }
        }
        end + 1
    }

    /// Returns what a path leads to that begins with an imported name.
    fn imported(&self, path: &[String]) -> Option<Reference> {
        let (first, rest) = path.split_first()?;
        let mut reference = self.imports.get(first)?.clone();
        reference.path.extend_from_slice(rest);
        Some(reference)
    }

    fn reference(&self, path: &[String], depth: usize) -> Option<Reference> {
        let mut rest = path;
        let mut up = 0_usize;
        let mut relative = false;
        loop {
            match rest.first().map(String::as_str) {
                Some("crate") => {
                    return Some(Reference {
                        origin: Origin::Crate,
                        path: rest[1..].to_vec(),
                    });
                }
                Some("self") => relative = true,
                Some("super") => {
                    relative = true;
                    up += 1;
                }
                _ => break,
            }
            rest = &rest[1..];
        }
        let child = rest
            .first()
            .is_some_and(|name| self.children.iter().any(|child| child.name == *name));
        let names_a_child = child && depth == 0;
        if !(relative || names_a_child) {
            return None;
        }
        // Inline modules are part of the file.
        Some(Reference {
            origin: Origin::Up(up.saturating_sub(depth)),
            path: rest.to_vec(),
        })
    }
}

/// Collects the paths of a use tree with the names they get; `None` for a glob.
fn use_tree(
    tokens: &[TokenTree],
    prefix: &[String],
    found: &mut Vec<(Vec<String>, Option<String>)>,
) {
    for part in tokens.split(|token| is_punct(Some(token), ',')) {
        if part.is_empty() {
            // Behind a trailing comma.
            continue;
        }
        let mut path = prefix.to_vec();
        let mut renamed = None;
        let mut glob = false;
        let mut nested = false;
        let mut at = 0;
        while at < part.len() {
            match &part[at] {
                TokenTree::Ident(name) if *name == "as" => {
                    renamed = word(part.get(at + 1));
                    at += 1;
                }
                TokenTree::Ident(name) => path.push(name.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => glob = true,
                TokenTree::Group(group) => {
                    nested = true;
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    use_tree(&inner, &path, found);
                }
                _ => {}
            }
            at += 1;
        }
        if nested || path.is_empty() {
            continue;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = renamed.or_else(|| path.last().cloned());
        found.push((path, name.filter(|_| !glob)));
    }
}

/// Returns the path of the type in the head of an `impl`, between that word and its body.
fn implementing_type(head: &[TokenTree]) -> Vec<String> {
    let mut path = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in head.iter().enumerate() {
        let is_arrow = at >= 1 && is_punct(head.get(at - 1), '-');
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !is_arrow => {
                depth = depth.saturating_sub(1);
            }
            TokenTree::Ident(_) if depth > 0 => {}
            TokenTree::Ident(name) if *name == "where" => break,
            // What came before was a trait.
            TokenTree::Ident(name) if *name == "for" => path.clear(),
            // A lifetime.
            TokenTree::Ident(_) if at >= 1 && is_punct(head.get(at - 1), '\'') => {}
            TokenTree::Ident(name) if *name == "dyn" || *name == "mut" => {}
            TokenTree::Ident(name) => path.push(name.to_string()),
            _ => {}
        }
    }
    path
}

/// Returns the names of the functions in the body of an `impl`.
fn methods(body: &[TokenTree]) -> BTreeSet<String> {
    let functions = (0..body.len()).filter(|at| is_word(body.get(*at), "fn"));
    functions.filter_map(|at| word(body.get(at + 1))).collect()
}

/// Collects the methods that are called as `self.name(…)`, and named as `Self::name`.
fn own_calls(tokens: &[TokenTree], found: &mut BTreeSet<String>) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            own_calls(&inner, found);
        }
        if is_word(Some(token), "Self") && is_colons(tokens, at + 1) {
            found.extend(word(tokens.get(at + 3)));
        }
        let is_call = matches!(tokens.get(at + 3), Some(TokenTree::Group(group))
            if group.delimiter() == Delimiter::Parenthesis)
            || is_colons(tokens, at + 3);
        if is_word(Some(token), "self") && is_punct(tokens.get(at + 1), '.') && is_call {
            found.extend(word(tokens.get(at + 2)));
        }
    }
}

/// Drops items below `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let attribute = match (&token, tokens.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(group)))
                if hash.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
            {
                Some(group.clone())
            }
            _ => None,
        };
        if attribute.is_some_and(|group| is_test_only(&group)) {
            tokens.next();
            // The item ends with its body or a semicolon.
            for skipped in tokens.by_ref() {
                let body = matches!(&skipped, TokenTree::Group(group)
                    if group.delimiter() == Delimiter::Brace);
                if body || is_semicolon(&skipped) {
                    break;
                }
            }
            continue;
        }
        kept.push(token);
    }
    kept
}

fn is_test_only(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string();
    let text: String = text.split_whitespace().collect();
    text.starts_with("cfg(test)")
        || text.starts_with("cfg(any(test")
        || text.starts_with("cfg(all(test")
}

/// Tells whether the word at `at` may be an imported name, rather than a definition, a field, a
/// method or a variable.
fn may_be_imported(tokens: &[TokenTree], at: usize, name: &str) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    if is_punct(before, '.') || word(before).is_some_and(|word| ITEMS.contains(&word.as_str())) {
        return false;
    }
    let is_type = name.starts_with(|first: char| first.is_uppercase());
    let is_called = match tokens.get(at + 1) {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        next => is_punct(next, '!'),
    };
    is_type || is_called || is_colons(tokens, at + 1)
}

/// Tells whether a group after `pub` limits the visibility, as in `pub(crate)` and `pub(in crate::a)`;
/// in `pub (A, B)` it is a type.
fn is_scope(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else {
        return false;
    };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    match word(inner.first()).as_deref() {
        Some("in") => true,
        Some("crate" | "self" | "super") => inner.len() == 1,
        _ => false,
    }
}

/// Returns the value of `#[path = "…"]` when it stands among the attributes that `tokens` end with.
fn path_attribute(tokens: &[TokenTree]) -> Option<String> {
    let mut rest = tokens;
    while let [before @ .., last] = rest {
        match last {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                if is_word(inner.first(), "path") {
                    let value = inner.get(2)?.to_string();
                    return Some(value.trim_matches('"').to_owned());
                }
            }
            // `pub`, `pub(crate)` and the sign before an attribute.
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {}
            TokenTree::Ident(name) if *name == "pub" => {}
            TokenTree::Punct(punct) if punct.as_char() == '#' => {}
            _ => return None,
        }
        rest = before;
    }
    None
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    }
}

fn is_word(token: Option<&TokenTree>, expected: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(name)) if *name == expected)
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn is_semicolon(token: &TokenTree) -> bool {
    is_punct(Some(token), ';')
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}
