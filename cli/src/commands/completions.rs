//! `kafila completions`: prints the completion script of a shell, for users to install. For ids and names the script
//! calls `kafila complete` (`complete.rs`).

use clap::{Command, ValueHint};
use clap_complete::Shell;

use super::complete;
use crate::args::{self, Completions};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) fn run(context: &Context, args: &Completions) -> Result<Exit, Error> {
    let mut root = args::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut root, "kafila", &mut script);
    let text = String::from_utf8_lossy(&script);
    match args.shell {
        Shell::Bash => script = in_bash(&text, &root).into_bytes(),
        Shell::Zsh => script = in_zsh(&text).into_bytes(),
        Shell::Fish => script = in_fish(&text, &root).into_bytes(),
        _ => {}
    }
    context.printer.out_bytes(&script)?;
    Ok(Exit::Success)
}

/// Adds ids and names to clap's completions in fish. Files are offered only where one is wanted.
const FISH: &str = r#"function __fish_kafila_wants_file
    string match -qr -- ' (@FILES@) ' " "(string join ' ' -- (commandline -opc)[2..])" "
end
function __fish_kafila_ids
    kafila -stale -timeout 1s complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c kafila -n "not __fish_kafila_wants_file" -f -a "(__fish_kafila_ids)"
"#;

/// Returns clap's script for fish with [`FISH`], and with flags of one dash beside those of two.
fn in_fish(script: &str, root: &Command) -> String {
    let mut commands = Vec::new();
    file_commands(root, "", &mut commands);
    let mut text = String::new();
    for line in script.lines() {
        match line.split_once(" -l ") {
            Some((before, after)) if line.starts_with("complete ") => {
                let name = after.split(' ').next().unwrap_or_default();
                text.push_str(&format!("{before} -o {name} -l {after}"));
                if line.ends_with(" -r") && complete::takes_an_id(name) {
                    text.push_str(" -f -a \"(__fish_kafila_ids)\"");
                }
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text + &FISH.replace("@FILES@", &commands.join("|"))
}

/// A wrapper of clap's completion function: flags of one dash or two, ids and names, and then clap's completions, which
/// would offer files in place of ids.
const ZSH: &str = r#"
_kafila() {
    local -a found
    found=("${(@f)$(kafila -stale -timeout 1s complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -a found
    else
        _kafila_clap "$@"
    fi
}
"#;

/// Returns clap's script for zsh with [`ZSH`] in place of its completion function. An autoloaded file defines the
/// function of its own name, which zsh calls from then on: the wrapper has to have that name.
fn in_zsh(script: &str) -> String {
    let entry = "if [ \"$funcstack[1]\" = \"_kafila\" ]; then";
    let Some(start) = script.find(entry) else {
        // Another release of clap ends differently: its own completions are left.
        return script.to_owned();
    };
    let (functions, entry) = script.split_at(start);
    let functions = functions.replace("\n_kafila() {", "\n_kafila_clap() {");
    format!("{functions}{ZSH}{entry}")
}

/// A wrapper of clap's completion function, which knows long flags with two dashes only and offers
/// flags in place of files and of ids.
const BASH: &str = r#"
_kafila_words() {
    local cur="$2" prev="$3" long="" found=() line=" ${COMP_WORDS[*]:0:COMP_CWORD} "
    # Flags have one dash or two, as they were begun: clap's function is asked with two.
    [[ "${prev}" == -[a-z][a-z]* ]] && prev="-${prev}"
    _kafila "$1" "${cur}" "${prev}"
    # Ids and names, at the cost of a call that is given up after a second.
    if [[ "${cur}" != -* ]]; then
        mapfile -t found < <(kafila -stale -timeout 1s complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
        if [[ ${#found[@]} -gt 0 ]]; then
            COMPREPLY=("${found[@]}")
            return
        fi
    fi
    if [[ "${cur}" == -[a-z]* ]]; then
        found=("${COMPREPLY[@]}")
        COMP_WORDS[COMP_CWORD]="-${cur}"
        _kafila "$1" "-${cur}" "${prev}"
        for long in "${COMPREPLY[@]}"; do
            found+=("${long#-}")
        done
        COMPREPLY=("${found[@]}")
    elif [[ "${cur}" != -* ]]; then
        case "${line}" in
            # A file is wanted: no flags, so that bash completes its own.
            @FILES@)
                for long in "${COMPREPLY[@]}"; do
                    [[ "${long}" == -* ]] || found+=("${long}")
                done
                COMPREPLY=("${found[@]}")
                ;;
        esac
    fi
}
"#;

/// Returns clap's script for bash with [`BASH`] as its entry point.
fn in_bash(script: &str, root: &Command) -> String {
    let mut commands = Vec::new();
    file_commands(root, "", &mut commands);
    let patterns: Vec<String> = commands
        .iter()
        .map(|name| format!("*\" {name} \"*"))
        .collect();
    let words = BASH.replace("@FILES@", &patterns.join(" | "));
    let script = script.replace("complete -F _kafila ", "complete -F _kafila_words ");
    match script.find("\nif [[ \"${BASH_VERSINFO[0]}\" -eq 4") {
        Some(end) => format!("{}{words}{}", &script[..end], &script[end..]),
        // Other releases of clap end differently; a function may be defined anywhere before its use.
        None => format!("{words}{script}"),
    }
}

/// Collects the commands with a file argument, such as `job run`.
fn file_commands(command: &Command, name: &str, found: &mut Vec<String>) {
    let mut positionals = command.get_positionals();
    let is_path = positionals.any(|arg| {
        matches!(
            arg.get_value_hint(),
            ValueHint::AnyPath | ValueHint::FilePath
        )
    });
    if is_path {
        found.push(name.trim_start().to_owned());
    }
    for subcommand in command.get_subcommands() {
        let name = format!("{name} {}", subcommand.get_name());
        file_commands(subcommand, &name, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_job_files_are_those_that_take_a_file() {
        let mut root = args::command();
        root.build();
        let mut found = Vec::new();
        file_commands(&root, "", &mut found);
        for name in ["job run", "run", "job validate", "validate"] {
            assert!(found.iter().any(|it| it == name), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|it| it == "job stop"), "{found:?}");
    }
}
