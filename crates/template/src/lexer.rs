//! Tokens of a template: text between actions, and the words of each action.
//!
//! Trim markers (`{{-`, `-}}`) and comments are resolved here; the parser does not see them.

use crate::error::Fault;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Text(String),
    /// The start of an action.
    Open,
    /// The end of an action.
    Close,
    Word(String),
    /// `.name`, without the dot.
    Field(String),
    Dot,
    /// With its `$`.
    Variable(String),
    Quoted(String),
    Int(i64),
    Uint(u64),
    Float(f64),
    LeftParenthesis,
    RightParenthesis,
    Pipe,
    Comma,
    Declare,
    Assign,
    End,
}

/// A token, its place, and whether white space stands before it (it separates arguments).
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) at: usize,
    pub(crate) spaced: bool,
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The tokens of `source`; the last is [`Token::End`].
pub(crate) fn tokens(source: &str, left: &str, right: &str) -> Result<Vec<Placed>, Fault> {
    let mut lexer = Lexer {
        source,
        at: 0,
        tokens: Vec::new(),
        right,
    };
    let mut trim_start = false;
    while let Some(offset) = source[lexer.at..].find(left) {
        let open = lexer.at + offset;
        let after = open + left.len();
        let trims = source[after..]
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(SPACE));
        lexer.text(open, trim_start, trims);
        lexer.at = if trims { after + 2 } else { after };
        trim_start = match lexer.comment(open, trims)? {
            Some(trims) => trims,
            None => lexer.action(open)?,
        };
    }
    lexer.text(source.len(), trim_start, false);
    lexer.push(Token::End, source.len(), false);
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Placed>,
    right: &'a str,
}

impl<'a> Lexer<'a> {
    fn push(&mut self, token: Token, at: usize, spaced: bool) {
        self.tokens.push(Placed { token, at, spaced });
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn text(&mut self, end: usize, trim_start: bool, trim_end: bool) {
        let mut text = &self.source[self.at..end];
        if trim_start {
            text = text.trim_start_matches(SPACE);
        }
        if trim_end {
            text = text.trim_end_matches(SPACE);
        }
        if !text.is_empty() {
            self.push(Token::Text(text.to_owned()), self.at, false);
        }
        self.at = end;
    }

    /// Skips a comment, which fills its action; says whether its end trims the text that follows.
    fn comment(&mut self, open: usize, trims: bool) -> Result<Option<bool>, Fault> {
        let rest = if trims {
            self.rest().trim_start_matches(SPACE)
        } else {
            self.rest()
        };
        let Some(body) = rest.strip_prefix("/*") else {
            return Ok(None);
        };
        let Some(length) = body.find("*/") else {
            return Err(Fault::new(
                open,
                "the comment has no end: close it with \"*/\"",
            ));
        };
        let after = &body[length + 2..];
        let trimmed = after.trim_start_matches(SPACE);
        if let Some(rest) = after.strip_prefix(self.right) {
            self.at = self.source.len() - rest.len();
            return Ok(Some(false));
        }
        if trimmed.len() < after.len()
            && let Some(rest) = trimmed
                .strip_prefix('-')
                .and_then(|rest| rest.strip_prefix(self.right))
        {
            self.at = self.source.len() - rest.len();
            return Ok(Some(true));
        }
        Err(Fault::new(
            open,
            format!(
                "a comment fills its action: \"{}\" follows \"*/\"",
                self.right
            ),
        ))
    }

    /// Reads one action; says whether its end trims the text that follows.
    fn action(&mut self, open: usize) -> Result<bool, Fault> {
        self.push(Token::Open, open, false);
        loop {
            let start = self.at;
            self.at = self.source.len() - self.rest().trim_start_matches(SPACE).len();
            let spaced = self.at > start;
            let rest = self.rest();
            if spaced
                && rest
                    .strip_prefix('-')
                    .is_some_and(|rest| rest.starts_with(self.right))
            {
                self.push(Token::Close, self.at, spaced);
                self.at += 1 + self.right.len();
                return Ok(true);
            }
            if rest.starts_with(self.right) {
                self.push(Token::Close, self.at, spaced);
                self.at += self.right.len();
                return Ok(false);
            }
            let Some(first) = rest.chars().next() else {
                return Err(Fault::new(
                    open,
                    format!("the action has no end: close it with \"{}\"", self.right),
                ));
            };
            let at = self.at;
            let token = self.word(first)?;
            self.push(token, at, spaced);
        }
    }

    fn word(&mut self, first: char) -> Result<Token, Fault> {
        let (start, rest) = (self.at, self.rest());
        let next = rest[first.len_utf8()..].chars().next();
        let is_number = first.is_ascii_digit()
            || (matches!(first, '+' | '-')
                && next.is_some_and(|next| next.is_ascii_digit() || next == '.'))
            || (first == '.' && next.is_some_and(|next| next.is_ascii_digit()));
        if is_number {
            return self.number();
        }
        let simple = match first {
            '(' => Some((Token::LeftParenthesis, 1)),
            ')' => Some((Token::RightParenthesis, 1)),
            '|' => Some((Token::Pipe, 1)),
            ',' => Some((Token::Comma, 1)),
            '=' => Some((Token::Assign, 1)),
            ':' if next == Some('=') => Some((Token::Declare, 2)),
            _ => None,
        };
        if let Some((token, length)) = simple {
            self.at += length;
            return Ok(token);
        }
        match first {
            '"' => self.quoted(),
            '`' => self.raw(),
            '\'' => self.character(),
            '.' => {
                let name = name_at(&rest[1..]);
                self.at += 1 + name.len();
                Ok(if name.is_empty() {
                    Token::Dot
                } else {
                    Token::Field(name.to_owned())
                })
            }
            '$' => {
                let name = name_at(&rest[1..]);
                self.at += 1 + name.len();
                Ok(Token::Variable(rest[..=name.len()].to_owned()))
            }
            _ => {
                let name = name_at(rest);
                if rest.starts_with("/*") {
                    let message =
                        "a comment stands directly behind the start of its action: {{/* … */}}";
                    return Err(Fault::new(start, message));
                }
                if name.is_empty() {
                    return Err(Fault::new(
                        start,
                        format!(
                            "unexpected {first:?}: an action is made of values, functions and pipes"
                        ),
                    ));
                }
                self.at += name.len();
                Ok(Token::Word(name.to_owned()))
            }
        }
    }

    fn quoted(&mut self) -> Result<Token, Fault> {
        let (start, rest) = (self.at, self.rest());
        let mut escaped = false;
        for (offset, letter) in rest.char_indices().skip(1) {
            match letter {
                '\n' => break,
                '"' if !escaped => {
                    self.at += offset + 1;
                    return unescape(&rest[1..offset], '"')
                        .map(Token::Quoted)
                        .map_err(|message| Fault::new(start, message));
                }
                _ => escaped = letter == '\\' && !escaped,
            }
        }
        Err(Fault::new(
            start,
            "the text has no closing quote on its line",
        ))
    }

    fn raw(&mut self) -> Result<Token, Fault> {
        let (start, rest) = (self.at, self.rest());
        let Some(length) = rest[1..].find('`') else {
            return Err(Fault::new(start, "the raw text has no closing backquote"));
        };
        self.at += length + 2;
        // Go drops carriage returns from raw texts.
        Ok(Token::Quoted(rest[1..=length].replace('\r', "")))
    }

    fn character(&mut self) -> Result<Token, Fault> {
        let (start, rest) = (self.at, self.rest());
        let mut escaped = false;
        for (offset, letter) in rest.char_indices().skip(1) {
            match letter {
                '\n' => break,
                '\'' if !escaped => {
                    self.at += offset + 1;
                    let text = unescape(&rest[1..offset], '\'')
                        .map_err(|message| Fault::new(start, message))?;
                    let mut letters = text.chars();
                    return match (letters.next(), letters.next()) {
                        (Some(letter), None) => Ok(Token::Int(i64::from(u32::from(letter)))),
                        _ => Err(Fault::new(
                            start,
                            "single quotes hold one character; quote a text with \"…\"",
                        )),
                    };
                }
                _ => escaped = letter == '\\' && !escaped,
            }
        }
        Err(Fault::new(start, "the character has no closing quote"))
    }

    fn number(&mut self) -> Result<Token, Fault> {
        let (start, rest) = (self.at, self.rest());
        let mut end = usize::from(rest.starts_with(['+', '-']));
        let mut before = ' ';
        let hexadecimal = rest[end..].starts_with("0x") || rest[end..].starts_with("0X");
        for letter in rest[end..].chars() {
            let exponent = if hexadecimal {
                matches!(before, 'p' | 'P')
            } else {
                matches!(before, 'e' | 'E')
            };
            let part = letter.is_alphanumeric()
                || matches!(letter, '_' | '.')
                || (exponent && matches!(letter, '+' | '-'));
            if !part {
                break;
            }
            before = letter;
            end += letter.len_utf8();
        }
        self.at += end;
        let written = &rest[..end];
        parse_number(written)
            .ok_or_else(|| Fault::new(start, format!("{written:?} is not a number")))
    }
}

/// The identifier at the start of `text`, perhaps empty.
fn name_at(text: &str) -> &str {
    let length = text
        .find(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .unwrap_or(text.len());
    &text[..length]
}

/// A number as Go writes constants: `017`, `0o17`, `0x1F`, `0b11`, `1_000`, `1e3`; none if it is not one.
pub(crate) fn parse_number(written: &str) -> Option<Token> {
    let (negative, digits) = match written.as_bytes().first()? {
        b'-' => (true, &written[1..]),
        b'+' => (false, &written[1..]),
        _ => (false, written),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ if lower.len() > 1
            && lower.starts_with('0')
            && lower.bytes().all(|b| b.is_ascii_digit() || b == b'_') =>
        {
            (8, &lower[1..])
        }
        _ => (10, lower.as_str()),
    };
    if body.is_empty()
        || body.starts_with('_') && radix == 10
        || body.ends_with('_')
        || body.contains("__")
    {
        return None;
    }
    let body = body.replace('_', "");
    if body.bytes().all(|b| char::from(b).is_digit(radix)) {
        let magnitude = u64::from_str_radix(&body, radix).ok()?;
        return match i64::try_from(magnitude) {
            Ok(value) => Some(Token::Int(if negative { -value } else { value })),
            Err(_) if negative => {
                (magnitude == i64::MIN.unsigned_abs()).then_some(Token::Int(i64::MIN))
            }
            Err(_) => Some(Token::Uint(magnitude)),
        };
    }
    // Digits alone are an integer: too large, or with an 8 or 9 behind an octal 0.
    let is_float = matches!(radix, 8 | 10) && body.contains(['.', 'e']);
    let fits = |b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-' | b'_');
    if !is_float || !lower.bytes().all(fits) {
        return None;
    }
    let value: f64 = lower.replace('_', "").parse().ok()?;
    value
        .is_finite()
        .then_some(Token::Float(if negative { -value } else { value }))
}

/// The text between quotes, with Go's escapes resolved.
pub(crate) fn unescape(text: &str, quote: char) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let mut buffer = [0; 4];
        if letter != '\\' {
            bytes.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        let kind = letters.next().ok_or("a backslash at the end of a text")?;
        let simple = match kind {
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(11),
            '\\' => Some(b'\\'),
            _ if kind == quote => Some(u8::try_from(quote).unwrap_or(b'?')),
            _ => None,
        };
        if let Some(byte) = simple {
            bytes.push(byte);
            continue;
        }
        let (radix, length) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => {
                return Err(format!(
                    "unknown escape \\{kind}; a backslash itself is written \\\\, or use a raw text: `…`"
                ));
            }
        };
        let mut digits = if radix == 8 {
            String::from(kind)
        } else {
            String::new()
        };
        digits.extend(letters.by_ref().take(length - digits.len()));
        let code = Some(&digits)
            .filter(|digits| digits.len() == length)
            .and_then(|digits| u32::from_str_radix(digits, radix).ok());
        let code = code.ok_or_else(|| format!("the escape \\{kind} needs {length} digits"))?;
        match (kind, u8::try_from(code), char::from_u32(code)) {
            ('u' | 'U', _, Some(letter)) => {
                bytes.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes())
            }
            ('x' | '0'..='7', Ok(byte), _) => bytes.push(byte),
            _ => return Err(format!("the escape \\{kind}{digits} is not a character")),
        }
    }
    String::from_utf8(bytes).map_err(|_| "the escapes of the text are not UTF-8".to_owned())
}
