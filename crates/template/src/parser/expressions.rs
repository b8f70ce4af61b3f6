//! Pipelines of a template: their variables, commands and operands.

use super::Parser;
use super::describe::describe;
use crate::error::Fault;
use crate::lexer::{Placed, Token};
use crate::syntax::{Command, Operand, Pipe, Term};

impl Parser {
    pub(super) fn pipe(
        &mut self,
        at: usize,
        keyword: &str,
        variables_max: usize,
    ) -> Result<Pipe, Fault> {
        let mut pipe = Pipe {
            at: self.peek().at,
            variables: Vec::new(),
            assigns: false,
            commands: Vec::new(),
        };
        self.variables_of(&mut pipe, variables_max)?;
        loop {
            let Placed {
                token, at: place, ..
            } = self.peek().clone();
            if matches!(
                token,
                Token::Close | Token::RightParenthesis | Token::Pipe | Token::End
            ) {
                let message = if pipe.commands.is_empty() {
                    format!("missing value for {keyword}")
                } else {
                    "missing value behind |".to_owned()
                };
                return Err(Fault::new(
                    if token == Token::End { at } else { place },
                    message,
                ));
            }
            let command = self.command()?;
            if !pipe.commands.is_empty()
                && command.first.fields.is_empty()
                && !is_callable(&command.first.term)
            {
                return Err(Fault::new(place, "only a function or method can follow |"));
            }
            pipe.commands.push(command);
            if self.peek().token != Token::Pipe {
                break;
            }
            self.next();
        }
        // Declared behind the pipeline: `$x := $x` means an outer `$x`.
        if !pipe.assigns {
            self.variables.extend(pipe.variables.iter().cloned());
        }
        Ok(pipe)
    }

    /// `$x :=`, `$x =`, and in a range `$i, $x :=`.
    fn variables_of(&mut self, pipe: &mut Pipe, variables_max: usize) -> Result<(), Fault> {
        let start = self.position;
        let mut names = Vec::new();
        while let Placed {
            token: Token::Variable(name),
            at,
            ..
        } = self.peek().clone()
        {
            self.next();
            names.push((name, at));
            match self.peek().token {
                Token::Comma if variables_max < 2 => {
                    return Err(Fault::new(at, "only range declares two variables"));
                }
                Token::Comma if names.len() == 1 => {
                    self.next();
                }
                Token::Declare | Token::Assign if variables_max > 0 => {
                    pipe.assigns = self.next().token == Token::Assign;
                    for (name, at) in names {
                        if pipe.assigns {
                            self.check_variable(&name, at)?;
                        }
                        pipe.variables.push(name.into());
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        self.position = start;
        Ok(())
    }

    fn check_variable(&self, name: &str, at: usize) -> Result<(), Fault> {
        if self.variables.iter().any(|known| **known == *name) {
            return Ok(());
        }
        Err(Fault::new(
            at,
            format!("the variable {name} is not declared; declare it with {name} := …"),
        ))
    }

    fn command(&mut self) -> Result<Command, Fault> {
        let at = self.peek().at;
        let first = self.operand()?;
        let mut arguments = Vec::new();
        loop {
            let Placed {
                token,
                at: place,
                spaced,
            } = self.peek().clone();
            if matches!(token, Token::Pipe | Token::Close | Token::RightParenthesis) {
                return Ok(Command {
                    at,
                    first,
                    arguments,
                });
            }
            if !spaced {
                return Err(Fault::new(
                    place,
                    format!(
                        "unexpected {}: arguments are separated by spaces",
                        describe(&token)
                    ),
                ));
            }
            arguments.push(self.operand()?);
        }
    }

    fn operand(&mut self) -> Result<Operand, Fault> {
        let Placed { token, at, .. } = self.next();
        let mut fields = Vec::new();
        let term = match token {
            Token::Word(word) => match word.as_str() {
                "true" | "false" => Term::Bool(word == "true"),
                "nil" => Term::Nil,
                _ => {
                    self.functions
                        .check(&word)
                        .map_err(|message| Fault::new(at, message))?;
                    Term::Function(word.into())
                }
            },
            Token::Dot => Term::Dot,
            Token::Field(name) => {
                fields.push(name.into());
                Term::Dot
            }
            Token::Variable(name) => {
                self.check_variable(&name, at)?;
                Term::Variable(name.into())
            }
            Token::Quoted(text) => Term::Text(text.into()),
            Token::Int(value) => Term::Int(value),
            Token::Uint(value) => Term::Uint(value),
            Token::Float(value) => Term::Float(value),
            Token::LeftParenthesis => {
                self.enter(at)?;
                let pipe = self.pipe(at, "a parenthesis", 0)?;
                self.nesting -= 1;
                if self.next().token != Token::RightParenthesis {
                    return Err(Fault::new(at, "the parenthesis is not closed"));
                }
                Term::Pipe(Box::new(pipe))
            }
            token => {
                return Err(Fault::new(
                    at,
                    format!("unexpected {} in place of a value", describe(&token)),
                ));
            }
        };
        while let Placed {
            token: Token::Field(name),
            at,
            spaced: false,
        } = self.peek().clone()
        {
            if matches!(
                term,
                Term::Nil
                    | Term::Bool(_)
                    | Term::Int(_)
                    | Term::Uint(_)
                    | Term::Float(_)
                    | Term::Text(_)
            ) {
                return Err(Fault::new(at, "a constant has no fields"));
            }
            self.next();
            fields.push(name.into());
        }
        Ok(Operand { at, term, fields })
    }
}

fn is_callable(term: &Term) -> bool {
    matches!(term, Term::Function(_) | Term::Variable(_) | Term::Pipe(_))
}
