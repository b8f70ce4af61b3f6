//! Normalisation of a command line from Nomad's flag syntax to clap's.
//!
//! Nomad's long flags have one dash (`-detach`, `-address=…`), its booleans take a value
//! (`-detach=false`), and a value may be the next word even if it begins with a dash. clap requires
//! two dashes, switches without values, and such values joined with `=`. The command tree tells
//! which flags take values.
//!
//! Pure. Words after `--` stay unchanged.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// A command line in clap's syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalised {
    pub words: Vec<OsString>,
    /// The names of the program and its subcommands, for example `kafila job run`.
    pub command: String,
}

/// Normalises `words`, the program's name first.
///
/// `root` must be built, so that global flags are known in every subcommand.
pub fn normalise(words: impl IntoIterator<Item = OsString>, root: &Command) -> Normalised {
    let mut words = words.into_iter();
    let mut out: Vec<OsString> = words.next().into_iter().collect();
    let mut names = vec![root.get_name()];
    let mut command = root;
    let mut lost = false;
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            out.push(word);
            out.extend(words);
            break;
        }
        let Some(flag) = Flag::read(text) else {
            match command.find_subcommand(text) {
                Some(subcommand) if !lost => {
                    names.push(subcommand.get_name());
                    command = subcommand;
                }
                // Words after an unknown command belong to it.
                _ => lost = true,
            }
            if lost && takes_a_command(command) {
                // Flags after it are the command's own, for clap as well.
                out.push("--".into());
                out.push(word);
                out.extend(words);
                break;
            }
            out.push(word);
            continue;
        };
        match flag.kind(command) {
            Kind::Switch => push_switch(&mut out, &flag),
            Kind::Valued if flag.value.is_none() => {
                out.push(joined(&flag.written(), words.next()));
            }
            Kind::Valued | Kind::Optional | Kind::Unknown => out.push(flag.written().into()),
            Kind::Cluster => out.push(word),
        }
    }
    let command = names.join(" ");
    Normalised {
        words: out,
        command,
    }
}

/// Returns whether the arguments end with a command line, whose flags are its own.
fn takes_a_command(command: &Command) -> bool {
    command.get_positionals().any(Arg::is_trailing_var_arg_set)
}

/// A flag: a word that begins with a dash, longer than the dash.
struct Flag<'a> {
    dashes: usize,
    name: &'a str,
    value: Option<&'a str>,
}

enum Kind {
    /// Takes no value.
    Switch,
    /// Takes a value, which may be the next word.
    Valued,
    /// Takes a value only after `=`.
    Optional,
    /// Several one-letter flags or one with its value, `-fc` and `-n5`, which clap parses.
    Cluster,
    Unknown,
}

impl<'a> Flag<'a> {
    fn read(word: &'a str) -> Option<Self> {
        let (dashes, rest) = match word.strip_prefix("--") {
            Some(rest) => (2, rest),
            None => (1, word.strip_prefix('-')?),
        };
        // A negative number is an argument; clap reports unexpected ones.
        let is_number = dashes == 1 && rest.chars().all(|c| c.is_ascii_digit());
        if rest.is_empty() || is_number {
            return None;
        }
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        Some(Self {
            dashes,
            name,
            value,
        })
    }

    /// Returns the letter of a one-letter flag.
    fn letter(&self) -> Option<char> {
        let mut letters = self.name.chars();
        let letter = letters.next()?;
        (self.dashes == 1 && letters.next().is_none()).then_some(letter)
    }

    fn kind(&self, command: &Command) -> Kind {
        let known = match self.letter() {
            Some(letter) => find_short(command, letter),
            None => find_long(command, self.name),
        };
        match known {
            Some(arg) if !arg.get_action().takes_values() => Kind::Switch,
            Some(arg)
                if arg
                    .get_num_args()
                    .is_some_and(|range| range.min_values() == 0) =>
            {
                Kind::Optional
            }
            Some(_) => Kind::Valued,
            None if self.dashes == 1 && self.is_cluster(command) => Kind::Cluster,
            None => Kind::Unknown,
        }
    }

    fn is_cluster(&self, command: &Command) -> bool {
        let takes_value =
            |letter| find_short(command, letter).map(|arg| arg.get_action().takes_values());
        let mut letters = self.name.chars();
        let first = letters.next().and_then(takes_value);
        match first {
            Some(true) => letters.all(|letter| letter.is_ascii_digit()),
            Some(false) => letters.all(|letter| takes_value(letter) == Some(false)),
            None => false,
        }
    }

    /// Returns the flag with clap's dashes.
    fn written(&self) -> String {
        let dashes = if self.letter().is_some() { "-" } else { "--" };
        match self.value {
            Some(value) => format!("{dashes}{}={value}", self.name),
            None => format!("{dashes}{}", self.name),
        }
    }
}

fn find_short(command: &Command, letter: char) -> Option<&Arg> {
    command
        .get_arguments()
        .find(|arg| arg.get_short() == Some(letter))
}

fn find_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || aliases.contains(&name)
    })
}

/// Adds or removes a switch: `-x=false` undoes an earlier `-x`.
fn push_switch(out: &mut Vec<OsString>, flag: &Flag<'_>) {
    let plain = Flag {
        value: None,
        ..*flag
    }
    .written();
    // The values of Go's strconv.ParseBool, as in Nomad.
    match flag.value {
        None | Some("1" | "t" | "T" | "true" | "TRUE" | "True") => out.push(plain.into()),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => {
            out.retain(|word| word != OsStr::new(&plain));
        }
        // clap reports the error.
        Some(_) => out.push(flag.written().into()),
    }
}

/// Returns `flag=value`, or the flag alone if no word is left, which clap reports.
fn joined(flag: &str, value: Option<OsString>) -> OsString {
    let mut word = OsString::from(flag);
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(line: &str) -> (String, String) {
        let mut root = crate::args::command();
        root.build();
        let words = line.split(' ').map(OsString::from);
        let Normalised { words, command } = normalise(words, &root);
        let words: Vec<String> = words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        (words.join(" "), command)
    }

    #[test]
    fn flags_come_out_as_clap_reads_them() {
        let table = [
            // Long flags with one dash, with two, with a value in the same word or the next.
            (
                "kafila job run -detach web.hcl",
                "kafila job run --detach web.hcl",
            ),
            (
                "kafila job run --detach web.hcl",
                "kafila job run --detach web.hcl",
            ),
            (
                "kafila job run -check-index=7 f",
                "kafila job run --check-index=7 f",
            ),
            (
                "kafila job run -check-index 7 f",
                "kafila job run --check-index=7 f",
            ),
            (
                "kafila job run --check-index 7 f",
                "kafila job run --check-index=7 f",
            ),
            // The flags of a command in a task are its own.
            (
                "kafila alloc exec -task web -i=false 8a3f ls -detach -i=false",
                "kafila alloc exec --task=web -i=false -- 8a3f ls -detach -i=false",
            ),
            // Global flags, before and after the command.
            (
                "kafila -address http://a:1 job status",
                "kafila --address=http://a:1 job status",
            ),
            (
                "kafila job status -address=http://a:1",
                "kafila job status --address=http://a:1",
            ),
            (
                "kafila job status -namespace *",
                "kafila job status --namespace=*",
            ),
            // One letter, its value in the same word, after `=`, in the next.
            ("kafila alloc logs -f -n 5 a", "kafila alloc logs -f -n=5 a"),
            ("kafila alloc logs -n=5 a", "kafila alloc logs -n=5 a"),
            ("kafila alloc logs -n5 a", "kafila alloc logs -n5 a"),
            ("kafila alloc logs -c 10 a", "kafila alloc logs -c=10 a"),
            (
                "kafila alloc logs -tail a web",
                "kafila alloc logs --tail a web",
            ),
            ("kafila logs -stderr -f a", "kafila logs --stderr -f a"),
            // A dash alone is standard input, and no flag.
            ("kafila job run -", "kafila job run -"),
            (
                "kafila job run -var-file - f",
                "kafila job run --var-file=- f",
            ),
            // Values that begin with a dash, and values with an equals sign.
            ("kafila job run -var a=-1 f", "kafila job run --var=a=-1 f"),
            ("kafila job run -var -x=y f", "kafila job run --var=-x=y f"),
            (
                "kafila job run -var=a=b=c f",
                "kafila job run --var=a=b=c f",
            ),
            ("kafila alloc logs -n -5 a", "kafila alloc logs -n=-5 a"),
            // A value that has the name of a command.
            (
                "kafila -namespace job job status",
                "kafila --namespace=job job status",
            ),
            // Booleans with a value; the last one counts.
            ("kafila job run -detach=true f", "kafila job run --detach f"),
            ("kafila job run -detach=false f", "kafila job run f"),
            ("kafila job run -detach -detach=0 f", "kafila job run f"),
            (
                "kafila job run -detach=0 -detach f",
                "kafila job run --detach f",
            ),
            (
                "kafila job run -detach=maybe f",
                "kafila job run --detach=maybe f",
            ),
            (
                "kafila job run -hcl2-strict=false f",
                "kafila job run --hcl2-strict=false f",
            ),
            (
                "kafila job run -hcl2-strict f",
                "kafila job run --hcl2-strict f",
            ),
            // Nothing changes after two dashes.
            (
                "kafila job run -detach -- -var -f",
                "kafila job run --detach -- -var -f",
            ),
            // A value is missing: clap's complaint.
            (
                "kafila job run -check-index",
                "kafila job run --check-index",
            ),
            // Not flags of this command: clap's complaint, with what is near.
            ("kafila job run -detahc f", "kafila job run --detahc f"),
            ("kafila job run -x f", "kafila job run -x f"),
            ("kafila -help", "kafila --help"),
            ("kafila job run -h", "kafila job run -h"),
            // The same name is a switch here and takes a value there.
            ("kafila -version", "kafila --version"),
            (
                "kafila job inspect -version 3 web",
                "kafila job inspect --version=3 web",
            ),
            ("kafila", "kafila"),
        ];
        for (line, expected) in table {
            assert_eq!(normalised(line).0, expected, "{line}");
        }
    }

    #[test]
    fn the_command_is_named_whatever_stands_between() {
        let table = [
            ("kafila", "kafila"),
            ("kafila job", "kafila job"),
            (
                "kafila -address http://a:1 job run -detach f",
                "kafila job run",
            ),
            ("kafila frobnicate", "kafila"),
            ("kafila jbo status", "kafila"),
            ("kafila job run status", "kafila job run"),
            ("kafila logs -f a", "kafila logs"),
        ];
        for (line, expected) in table {
            assert_eq!(normalised(line).1, expected, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_not_text_pass_through() {
        use std::os::unix::ffi::OsStringExt as _;

        let odd = OsString::from_vec(b"-\xff".to_vec());
        let mut root = crate::args::command();
        root.build();
        let words = ["kafila", "job", "run"].map(OsString::from).into_iter();
        let normalised = normalise(words.chain([odd.clone()]), &root);
        assert_eq!(normalised.words.last(), Some(&odd));
    }
}
