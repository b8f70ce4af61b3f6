//! Tokens as errors name them.

use crate::lexer::Token;

pub(super) fn describe(token: &Token) -> String {
    match token {
        Token::Text(_) => "text".to_owned(),
        Token::Open => "the start of an action".to_owned(),
        Token::Close => "the end of the action".to_owned(),
        Token::Word(word) => format!("{word:?}"),
        Token::Field(name) => format!("\".{name}\""),
        Token::Variable(name) => format!("{name:?}"),
        Token::Quoted(text) => format!("the text {text:?}"),
        Token::Int(value) => value.to_string(),
        Token::Uint(value) => value.to_string(),
        Token::Float(value) => value.to_string(),
        Token::Dot => "\".\"".to_owned(),
        Token::LeftParenthesis => "\"(\"".to_owned(),
        Token::RightParenthesis => "\")\"".to_owned(),
        Token::Pipe => "\"|\"".to_owned(),
        Token::Comma => "\",\"".to_owned(),
        Token::Declare => "\":=\"".to_owned(),
        Token::Assign => "\"=\"".to_owned(),
        Token::End => "the end of the template".to_owned(),
    }
}
