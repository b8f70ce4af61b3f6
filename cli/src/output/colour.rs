//! Terminal colours.

/// The use of colour in output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Off,
    On,
}

/// Colour preference from flags and the environment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Preference {
    /// `-no-color` or its environment variables.
    pub(crate) never: bool,
    /// `-force-color` or its environment variables.
    pub(crate) always: bool,
}

impl Colour {
    /// Chooses for a stream; `never` wins over `always`, and both over the kind of stream.
    pub(crate) fn choose(preference: Preference, is_terminal: bool) -> Self {
        if !preference.never && (preference.always || is_terminal) {
            Self::On
        } else {
            Self::Off
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrapped("1", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrapped("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrapped("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrapped("33", text)
    }

    pub(crate) fn blue(self, text: &str) -> String {
        self.wrapped("34", text)
    }

    fn wrapped(self, code: &str, text: &str) -> String {
        match self {
            Self::Off => text.to_owned(),
            Self::On => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_unless_set_otherwise() {
        let table = [
            (false, false, true, Colour::On),
            (false, false, false, Colour::Off),
            (true, false, true, Colour::Off),
            (false, true, false, Colour::On),
            (true, true, true, Colour::Off),
        ];
        for (never, always, is_terminal, expected) in table {
            assert_eq!(
                Colour::choose(Preference { never, always }, is_terminal),
                expected
            );
        }
    }

    #[test]
    fn without_colour_text_stays_as_it_is() {
        assert_eq!(Colour::Off.bold("x"), "x");
        assert_eq!(Colour::On.red("x"), "\x1b[31mx\x1b[0m");
    }
}
