//! The commands of docs/operations.md and docs/runbooks exist, with the flags that are written there.

use std::path::{Path, PathBuf};

use clap::{Arg, Command};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The documents, with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut paths = vec![repository().join("docs/operations.md")];
    for entry in std::fs::read_dir(repository().join("docs/runbooks")).unwrap() {
        paths.push(entry.unwrap().path());
    }
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

/// A command line of a document. `is_whole`: it stands in a block of commands, and not between words, where its
/// arguments may be left out.
#[derive(Debug, PartialEq)]
struct Line {
    words: Vec<String>,
    is_whole: bool,
}

/// Returns all lines of `kafila` in a document.
fn lines(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        let line = line.trim();
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (None, line) => {
                let quoted = line.split('`').skip(1).step_by(2);
                found.extend(quoted.flat_map(|text| commands(text, false)));
            }
            (Some(commands_of), "```") => {
                found.extend(commands(commands_of, true));
                block = None;
            }
            (Some(text), line) => match line.strip_suffix('\\') {
                Some(begun) => text.push_str(&format!("{begun} ")),
                None => text.push_str(&format!("{line}\n")),
            },
        }
    }
    found
}

/// Splits a text as a shell does, and keeps the commands that begin with `kafila`.
fn commands(text: &str, is_whole: bool) -> Vec<Line> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut is_comment = false;
    for character in text.chars().chain(['\n']) {
        if is_comment && character != '\n' {
            continue;
        }
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => is_comment = true,
            (None, ' ' | '\n' | '|' | ';' | '&' | '>' | '<' | ')') => {
                words.extend(word.take());
                if character != ' ' {
                    let line = std::mem::take(&mut words);
                    if line.first().is_some_and(|first| first == "kafila") {
                        let words = line;
                        found.push(Line { words, is_whole });
                    }
                    is_comment = false;
                }
            }
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    found
}

/// Checks that a line names a command that exists, and flags that it has; a whole line is parsed, too.
fn check(root: &Command, line: &Line) -> Result<(), String> {
    let mut command = root;
    for word in &line.words[1..] {
        if let Some(flag) = word.strip_prefix('-').filter(|_| word.len() > 1) {
            let name = flag
                .trim_start_matches('-')
                .split('=')
                .next()
                .unwrap_or_default();
            let has_it = |arg: &Arg| {
                arg.get_long() == Some(name)
                    || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
                    || arg
                        .get_short()
                        .is_some_and(|short| name == short.to_string())
            };
            if !command.get_arguments().any(has_it) {
                return Err(format!("{} has no flag {word}", command.get_name()));
            }
        } else if let Some(child) = command.find_subcommand(word) {
            command = child;
        } else if command.has_subcommands() && command.get_positionals().next().is_none() {
            return Err(format!("{} has no command {word}", command.get_name()));
        }
    }
    // Variables of the shell stand for values that are not known here.
    if !line.is_whole || line.words.iter().any(|word| word.contains("=$")) {
        return Ok(());
    }
    let words = line.words.iter().map(std::ffi::OsString::from);
    let normalised = kafila_cli::argv::normalise(words, root);
    let parsed = root.clone().try_get_matches_from(normalised.words);
    parsed.map(drop).map_err(|error| error.to_string())
}

#[test]
fn every_command_of_the_runbooks_exists_with_its_flags() {
    let mut root = kafila_cli::args::command();
    root.build();
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in documents() {
        for line in lines(&text) {
            count += 1;
            if let Err(problem) = check(&root, &line) {
                wrong.push(format!(
                    "{}: {}: {problem}",
                    path.display(),
                    line.words.join(" ")
                ));
            }
        }
        for script in text
            .split(['`', ' ', '\n', '('])
            .filter(|it| it.starts_with("scripts/"))
        {
            if !repository().join(script).exists() {
                wrong.push(format!("{}: there is no {script}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "only {count} commands were found");
}

#[test]
fn commands_and_flags_that_do_not_exist_are_found() {
    let mut root = kafila_cli::args::command();
    root.build();
    let text = "a `kafila job status -nothing` b `kafila nothing`\n```sh\nkafila node drain ID  # -x\n\
                kafila node \\\n  drain -enable -bad ID | kafila job run\n```\n";
    let found = lines(text);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(
        found.iter().all(|line| check(&root, line).is_err()),
        "{found:?}"
    );
    let good =
        lines("`kafila job status -verbose`\n```sh\nx=$(kafila node drain -enable -yes ID)\n```\n");
    // The first word of the second is an assignment: left to the shell.
    assert_eq!(good.len(), 1);
    assert_eq!(check(&root, &good[0]), Ok(()));
}
