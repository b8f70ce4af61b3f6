//! `kafila completions`

use clap::{Command, ValueHint};
use clap_complete::Shell;

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
        Shell::Fish => script = format!("{text}{FISH}").into_bytes(),
        _ => {}
    }
    context.printer.out_bytes(&script)?;
    Ok(Exit::Success)
}

/// Adds ids and names to clap's completions in fish.
const FISH: &str = r#"complete -c kafila -f -a "(kafila -stale -timeout 1s complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)"
"#;

/// A wrapper of clap's completion function, which adds ids and names.
const ZSH: &str = r#"
_kafila_words() {
    _kafila "$@"
    local found
    found=("${(@f)$(kafila -stale -timeout 1s complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] && compadd -a found
}
"#;

/// Returns clap's script for zsh with [`ZSH`] as its entry point.
fn in_zsh(script: &str) -> String {
    let entry = "if [ \"$funcstack[1]\" = \"_kafila\" ]; then";
    let Some(start) = script.find(entry) else {
        // Another release of clap ends differently: its own completions are left.
        return script.to_owned();
    };
    let (functions, entry) = script.split_at(start);
    let entry = entry
        .replace("    _kafila \"$@\"", "    _kafila_words \"$@\"")
        .replace("compdef _kafila kafila", "compdef _kafila_words kafila");
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
