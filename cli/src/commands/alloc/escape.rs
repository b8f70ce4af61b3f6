//! The escape character of a terminal session: with a dot after it at the start of a line, it ends the
//! session.

/// Position in the typed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    StartOfLine,
    /// After an escape character at the start of a line, which is not passed on yet.
    Escaped,
    InLine,
}

/// Reader of typed text.
#[derive(Debug)]
pub(super) struct Escape {
    /// `None`: no escape character.
    character: Option<u8>,
    at: At,
}

impl Escape {
    pub(super) fn new(character: Option<u8>) -> Self {
        Self {
            character,
            at: At::StartOfLine,
        }
    }

    /// Returns the text to pass on, and whether it ends with the end of the session.
    pub(super) fn read(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let Some(character) = self.character else {
            return (typed.to_vec(), false);
        };
        let mut text = Vec::with_capacity(typed.len() + 1);
        for byte in typed.iter().copied() {
            let is_line_end = matches!(byte, b'\r' | b'\n');
            self.at = match self.at {
                At::StartOfLine if byte == character => At::Escaped,
                At::Escaped if byte == b'.' => return (text, true),
                // Twice: once.
                At::Escaped if byte == character => {
                    text.push(byte);
                    At::InLine
                }
                before => {
                    if before == At::Escaped {
                        text.push(character);
                    }
                    text.push(byte);
                    if is_line_end {
                        At::StartOfLine
                    } else {
                        At::InLine
                    }
                }
            };
        }
        (text, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_the_escape_at_the_start_of_a_line() {
        let table = [
            ("~.", "", true),
            ("ls\r~.x", "ls\r", true),
            ("ls ~.", "ls ~.", false),
            ("~~.", "~.", false),
            ("~x\n~.", "~x\n", true),
            ("~\r~.", "~\r", true),
            ("plain\n", "plain\n", false),
        ];
        for (typed, passed, ends) in table {
            for size in 1..=typed.len() {
                let mut escape = Escape::new(Some(b'~'));
                let mut text = Vec::new();
                let mut ended = false;
                for piece in typed.as_bytes().chunks(size) {
                    let (more, ends) = escape.read(piece);
                    text.extend(more);
                    if ends {
                        ended = true;
                        break;
                    }
                }
                assert_eq!(
                    (text.as_slice(), ended),
                    (passed.as_bytes(), ends),
                    "{typed:?}"
                );
            }
        }
        assert_eq!(Escape::new(None).read(b"~."), (b"~.".to_vec(), false));
    }
}
