//! Templates: `"web-${var.n}"`, heredocs, `%{ if … }` and `%{ for … }`.

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::template::{Directive, Element, ForDirective, IfDirective, Template};

use super::{Evaluator, fault};
use crate::language::scope::Scope;
use crate::language::value::{Value, to_text, type_name};
use crate::source::Fault;

/// Trimming of the text next to a marker with `~`.
#[derive(Clone, Copy)]
struct Trim {
    start: bool,
    end: bool,
}

const KEEP: Trim = Trim {
    start: false,
    end: false,
};

impl Evaluator<'_> {
    /// Returns the text of a template, or the value of a single `${…}`.
    pub(super) fn template(
        &self,
        elements: &[&Element],
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        if let [Element::Interpolation(only)] = elements {
            return self.eval(&only.expr, scope);
        }
        let mut text = String::new();
        self.render(elements, scope, KEEP, &mut text)?;
        Ok(Value::String(text))
    }

    /// Returns the text of a template without quotes, as in a JSON string.
    pub(crate) fn whole_template(
        &self,
        template: &Template,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let elements: Vec<_> = template.iter().collect();
        self.template(&elements, scope)
    }

    fn render(
        &self,
        elements: &[&Element],
        scope: &Scope<'_>,
        around: Trim,
        out: &mut String,
    ) -> Result<(), Fault> {
        for (position, element) in elements.iter().enumerate() {
            match element {
                Element::Literal(literal) => {
                    let before = position.checked_sub(1).map(|before| elements[before]);
                    let after = elements.get(position + 1);
                    let trim = Trim {
                        start: before.map_or(around.start, |element| outer_trim(element).end),
                        end: after.map_or(around.end, |element| outer_trim(element).start),
                    };
                    self.push(element, trimmed(literal, trim), out)?;
                }
                Element::Interpolation(interpolation) => {
                    let value = self.eval(&interpolation.expr, scope)?;
                    let text = interpolated(&interpolation.expr, &value)?;
                    self.push(element, &text, out)?;
                }
                Element::Directive(directive) => match &**directive {
                    Directive::If(directive) => self.if_directive(directive, scope, out)?,
                    Directive::For(directive) => self.for_directive(directive, scope, out)?,
                },
            }
        }
        Ok(())
    }

    fn push(&self, element: &Element, text: &str, out: &mut String) -> Result<(), Fault> {
        let paid = self
            .host
            .meter
            .step()
            .and_then(|()| self.host.meter.grow(text.len()));
        paid.map_err(|detail| {
            Fault::new(
                element.span().unwrap_or(0..0),
                "Evaluation too large",
                detail,
            )
        })?;
        out.push_str(text);
        Ok(())
    }

    fn if_directive(
        &self,
        directive: &IfDirective,
        scope: &Scope<'_>,
        out: &mut String,
    ) -> Result<(), Fault> {
        let (if_expr, endif) = (&directive.if_expr, &directive.endif_expr);
        let end = endif.strip.strip_start();
        if self.condition(&if_expr.cond_expr, scope)? {
            let end = directive
                .else_expr
                .as_ref()
                .map_or(end, |other| other.strip.strip_start());
            let trim = Trim {
                start: if_expr.strip.strip_end(),
                end,
            };
            return self.inner(&if_expr.template, scope, trim, out);
        }
        match &directive.else_expr {
            Some(other) => {
                let trim = Trim {
                    start: other.strip.strip_end(),
                    end,
                };
                self.inner(&other.template, scope, trim, out)
            }
            None => Ok(()),
        }
    }

    fn for_directive(
        &self,
        directive: &ForDirective,
        scope: &Scope<'_>,
        out: &mut String,
    ) -> Result<(), Fault> {
        let (for_expr, endfor) = (&directive.for_expr, &directive.endfor_expr);
        let trim = Trim {
            start: for_expr.strip.strip_end(),
            end: endfor.strip.strip_start(),
        };
        let key_name = for_expr.key_var.as_ref().map(|name| name.as_str());
        for (key, value) in self.collection(&for_expr.collection_expr, scope)? {
            let both = [
                (for_expr.value_var.as_str(), &value),
                (key_name.unwrap_or_default(), &key),
            ];
            let names = if key_name.is_some() {
                &both[..]
            } else {
                &both[..1]
            };
            self.pay(&for_expr.collection_expr, self.host.meter.step())?;
            self.inner(&for_expr.template, &scope.child(names), trim, out)?;
        }
        Ok(())
    }

    fn inner(
        &self,
        template: &Template,
        scope: &Scope<'_>,
        trim: Trim,
        out: &mut String,
    ) -> Result<(), Fault> {
        let elements: Vec<_> = template.iter().collect();
        self.render(&elements, scope, trim, out)
    }
}

/// Returns the trimming around an element: `start` before it.
fn outer_trim(element: &Element) -> Trim {
    match element {
        Element::Literal(_) => KEEP,
        Element::Interpolation(interpolation) => Trim {
            start: interpolation.strip.strip_start(),
            end: interpolation.strip.strip_end(),
        },
        Element::Directive(directive) => match &**directive {
            Directive::If(directive) => Trim {
                start: directive.if_expr.strip.strip_start(),
                end: directive.endif_expr.strip.strip_end(),
            },
            Directive::For(directive) => Trim {
                start: directive.for_expr.strip.strip_start(),
                end: directive.endfor_expr.strip.strip_end(),
            },
        },
    }
}

/// Removes blanks up to and including the nearest line break, at the ends that `trim` names.
fn trimmed(mut text: &str, trim: Trim) -> &str {
    let blank = |c: char| c.is_whitespace() && c != '\n' && c != '\r';
    if trim.start {
        text = text.trim_start_matches(blank);
        text = text
            .strip_prefix("\r\n")
            .or_else(|| text.strip_prefix('\n'))
            .unwrap_or(text);
    }
    if trim.end {
        text = text.trim_end_matches(blank);
        text = text
            .strip_suffix("\r\n")
            .or_else(|| text.strip_suffix('\n'))
            .unwrap_or(text);
    }
    text
}

fn interpolated(expression: &Expression, value: &Value) -> Result<String, Fault> {
    to_text(value).ok_or_else(|| {
        let detail = format!(
            "a string, number or bool is required within a text; got {}: use jsonencode or join",
            type_name(value),
        );
        fault(expression, "Invalid template interpolation value", detail)
    })
}
