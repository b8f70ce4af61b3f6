//! Reads the tokens of a template into its syntax tree.
//!
//! Checks here what a template's data can't change: unclosed blocks, unknown functions, undeclared variables.

mod describe;
mod expressions;

use std::collections::BTreeMap;

use self::describe::describe;
use crate::error::Fault;
use crate::functions::Functions;
use crate::lexer::{self, Placed, Token};
use crate::syntax::{Branch, Node, Nodes, Pipe, Trees};

/// Blocks in blocks and parentheses in parentheses; real templates stay below ten.
const NESTING_MAX: usize = 50;

/// Reads `source`, which may call `functions`.
pub(crate) fn parse(
    source: &str,
    left: &str,
    right: &str,
    functions: Functions,
) -> Result<Trees, Fault> {
    let tokens = lexer::tokens(source, left, right)?;
    let mut parser = Parser {
        tokens,
        position: 0,
        functions,
        variables: vec!["$".into()],
        nesting: 0,
        ranges: 0,
        defined: BTreeMap::new(),
    };
    let (root, end) = parser.nodes(0)?;
    match end {
        Ending::End => Ok(Trees {
            root,
            defined: parser.defined,
        }),
        Ending::Else(at) => Err(Fault::new(at, "{{else}} stands outside if, with and range")),
        Ending::Close(at) => Err(Fault::new(
            at,
            "{{end}} closes nothing: no if, with, range, define or block is open",
        )),
    }
}

struct Parser {
    tokens: Vec<Placed>,
    position: usize,
    functions: Functions,
    /// In scope, with their `$`; the innermost last.
    variables: Vec<Box<str>>,
    nesting: usize,
    /// Open ranges; `break` and `continue` need one.
    ranges: usize,
    defined: BTreeMap<Box<str>, Nodes>,
}

/// The reason why a list of nodes ended.
enum Ending {
    End,
    /// At the word behind `{{`; `else` is consumed.
    Else(usize),
    /// `{{end}}` is consumed.
    Close(usize),
}

impl Parser {
    fn peek(&self) -> &Placed {
        // The last token is `End`, and `next` does not pass it.
        &self.tokens[self.position]
    }

    fn next(&mut self) -> Placed {
        let placed = self.tokens[self.position].clone();
        if placed.token != Token::End {
            self.position += 1;
        }
        placed
    }

    fn enter(&mut self, at: usize) -> Result<(), Fault> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(Fault::new(
                at,
                format!("blocks and parentheses are nested deeper than {NESTING_MAX}"),
            ));
        }
        Ok(())
    }

    /// Nodes up to the end of the block; `open` is the place of its start.
    fn nodes(&mut self, open: usize) -> Result<(Nodes, Ending), Fault> {
        self.enter(open)?;
        let mut nodes = Nodes::new();
        loop {
            let placed = self.next();
            match placed.token {
                Token::Text(text) => nodes.push(Node::Text(text.into())),
                Token::End => {
                    self.nesting -= 1;
                    return Ok((nodes, Ending::End));
                }
                Token::Open => {
                    if let Some(ending) = self.action(&mut nodes)? {
                        self.nesting -= 1;
                        return Ok((nodes, ending));
                    }
                }
                _ => return Err(Fault::new(placed.at, "an action is not closed")),
            }
        }
    }

    /// One action behind its `{{`; says if it ends the list of nodes that it stands in.
    fn action(&mut self, nodes: &mut Nodes) -> Result<Option<Ending>, Fault> {
        let Placed { token, at, .. } = self.peek().clone();
        let Token::Word(word) = token else {
            nodes.push(Node::Action(self.whole_pipe(at, "an empty action", 1)?));
            return Ok(None);
        };
        let node = match word.as_str() {
            "if" => Node::If(self.branch("if", 1)?),
            "with" => Node::With(self.branch("with", 1)?),
            "range" => Node::Range(self.branch("range", 2)?),
            "template" => self.template()?,
            "block" => self.block()?,
            "define" => {
                self.define()?;
                return Ok(None);
            }
            "end" => {
                self.next();
                self.close("end")?;
                return Ok(Some(Ending::Close(at)));
            }
            "else" => {
                self.next();
                return Ok(Some(Ending::Else(at)));
            }
            "break" | "continue" => {
                self.next();
                self.close(&word)?;
                if self.ranges == 0 {
                    return Err(Fault::new(
                        at,
                        format!("{{{{{word}}}}} stands outside range"),
                    ));
                }
                if word == "break" {
                    Node::Break
                } else {
                    Node::Continue
                }
            }
            _ => Node::Action(self.whole_pipe(at, "an empty action", 1)?),
        };
        nodes.push(node);
        Ok(None)
    }

    fn close(&mut self, what: &str) -> Result<(), Fault> {
        let placed = self.next();
        if placed.token == Token::Close {
            return Ok(());
        }
        Err(Fault::new(
            placed.at,
            format!("unexpected {} behind {what}", describe(&placed.token)),
        ))
    }

    fn branch(&mut self, keyword: &str, variables_max: usize) -> Result<Branch, Fault> {
        let open = self.next().at;
        let scope = self.variables.len();
        let pipe = self.whole_pipe(open, keyword, variables_max)?;
        let is_range = keyword == "range";
        self.ranges += usize::from(is_range);
        let (body, ending) = self.nodes(open)?;
        self.ranges -= usize::from(is_range);
        let otherwise = match ending {
            Ending::Close(_) => Nodes::new(),
            Ending::Else(at) => self.otherwise(keyword, open, at)?,
            Ending::End => return Err(unclosed(open, keyword)),
        };
        self.variables.truncate(scope);
        Ok(Branch {
            pipe,
            body,
            otherwise,
        })
    }

    /// Reads the rest after `{{else`: a block of its own, or `else if` and `else with`, which share their `end`.
    fn otherwise(&mut self, keyword: &str, open: usize, at: usize) -> Result<Nodes, Fault> {
        let chained = match &self.peek().token {
            Token::Word(word) if word == "if" && keyword == "if" => Some(("if", true)),
            Token::Word(word) if word == "with" && keyword == "with" => Some(("with", false)),
            _ => None,
        };
        if let Some((keyword, is_if)) = chained {
            self.enter(at)?;
            let branch = self.branch(keyword, 1)?;
            self.nesting -= 1;
            return Ok(vec![if is_if {
                Node::If(branch)
            } else {
                Node::With(branch)
            }]);
        }
        self.close("else")?;
        match self.nodes(open)? {
            (nodes, Ending::Close(_)) => Ok(nodes),
            (_, Ending::Else(at)) => Err(Fault::new(at, format!("the {keyword} has two else"))),
            (_, Ending::End) => Err(unclosed(open, keyword)),
        }
    }

    fn name(&mut self, keyword: &str) -> Result<Box<str>, Fault> {
        let placed = self.next();
        match placed.token {
            Token::Quoted(name) => Ok(name.into()),
            token => Err(Fault::new(
                placed.at,
                format!("{keyword} needs a name in quotes, not {}", describe(&token)),
            )),
        }
    }

    fn template(&mut self) -> Result<Node, Fault> {
        let at = self.next().at;
        let name = self.name("template")?;
        let argument = self.optional_pipe(at)?;
        Ok(Node::Template { at, name, argument })
    }

    fn optional_pipe(&mut self, at: usize) -> Result<Option<Pipe>, Fault> {
        if self.peek().token == Token::Close {
            self.next();
            return Ok(None);
        }
        self.whole_pipe(at, "template", 0).map(Some)
    }

    fn block(&mut self) -> Result<Node, Fault> {
        let at = self.next().at;
        let name = self.name("block")?;
        let argument = self.whole_pipe(at, "block", 0)?;
        self.body(at, "block", name.clone())?;
        Ok(Node::Template {
            at,
            name,
            argument: Some(argument),
        })
    }

    fn define(&mut self) -> Result<(), Fault> {
        let at = self.next().at;
        if self.nesting > 1 {
            return Err(Fault::new(at, "define stands outside all other blocks"));
        }
        let name = self.name("define")?;
        self.close("define")?;
        self.body(at, "define", name)
    }

    /// The nodes of a named template, which sees no variable but `$`.
    fn body(&mut self, at: usize, keyword: &str, name: Box<str>) -> Result<(), Fault> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".into()]);
        let ranges = std::mem::take(&mut self.ranges);
        let nodes = match self.nodes(at)? {
            (nodes, Ending::Close(_)) => nodes,
            (_, Ending::Else(at)) => return Err(Fault::new(at, format!("{keyword} has no else"))),
            (_, Ending::End) => return Err(unclosed(at, keyword)),
        };
        (self.variables, self.ranges) = (variables, ranges);
        let blank = |nodes: &Nodes| {
            nodes
                .iter()
                .all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
        };
        match self.defined.get(&name) {
            Some(old) if !blank(old) && !blank(&nodes) => Err(Fault::new(
                at,
                format!("the template {name:?} is defined twice"),
            )),
            Some(old) if !blank(old) => Ok(()),
            _ => {
                self.defined.insert(name, nodes);
                Ok(())
            }
        }
    }

    /// A pipeline and the end of its action.
    fn whole_pipe(
        &mut self,
        at: usize,
        keyword: &str,
        variables_max: usize,
    ) -> Result<Pipe, Fault> {
        let pipe = self.pipe(at, keyword, variables_max)?;
        self.close("the value")?;
        Ok(pipe)
    }
}

fn unclosed(at: usize, keyword: &str) -> Fault {
    Fault::new(
        at,
        format!("the {keyword} is not closed: {{{{end}}}} is missing"),
    )
}
