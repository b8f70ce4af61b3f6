//! Completions in the shells themselves: bash, zsh and fish, each with the script of `kafila completions`.
//! Shells that are not installed (`scripts/install-shells`) are skipped with a notice, unless `KAFILA_REQUIRE_SHELLS`
//! is set.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::command::{UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::state::FakeState;

/// A folder with the scripts of one shell, and the address of the gateway that they ask.
struct Shell {
    name: &'static str,
    folder: tempfile::TempDir,
    address: String,
}

impl Shell {
    /// Returns `None` if the shell is neither installed nor required, and says so.
    async fn find(name: &'static str, address: &str) -> Option<Self> {
        let version = Command::new(name).arg("--version").output().await;
        if !version.is_ok_and(|output| output.status.success()) {
            assert!(
                std::env::var_os("KAFILA_REQUIRE_SHELLS").is_none(),
                "{name} is required and not installed: run scripts/install-shells"
            );
            eprintln!("SKIPPED: {name} is not installed: scripts/install-shells installs it");
            return None;
        }
        let shell = Self {
            name,
            folder: tempfile::tempdir().unwrap(),
            address: address.to_owned(),
        };
        let script = kafila("completions").arg(name).at(UNREACHABLE).await.stdout;
        shell.write("_kafila", &script);
        // A file that must not stand between ids.
        shell.write("web.hcl", "");
        Some(shell)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs a script of the shell with `kafila` on its path, and returns its output.
    async fn run(&self, arguments: &[&str], script: &str) -> String {
        let file = self.write("script", script);
        let program = Path::new(env!("CARGO_BIN_EXE_kafila")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new(self.name)
            .args(arguments)
            .arg(file)
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", program.display()))
            .env("KAFILA_ADDR", &self.address)
            .env("HOME", self.folder.path())
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!errors.contains("line"), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns what could stand at the end of `line`, sorted.
    async fn complete(&self, line: &[&str]) -> Vec<String> {
        let said = match self.name {
            "bash" => self.run(&["--norc"], &bash(line)).await,
            "zsh" => self.run(&["-f"], &zsh(line)).await,
            _ => self.run(&["--no-config"], &fish(line)).await,
        };
        let mut words: Vec<String> = said
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default().trim())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

fn bash(line: &[&str]) -> String {
    let last = line.len() - 1;
    let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    format!(
        "source ./_kafila\nCOMP_WORDS=({})\nCOMP_CWORD={last}\n\
         _kafila_words kafila \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{}]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        last - 1
    )
}

fn fish(line: &[&str]) -> String {
    format!("source ./_kafila\ncomplete -C '{}'\n", line.join(" "))
}

/// Completions of zsh work in its line editor alone: in a terminal of its own, where a widget prints the candidates.
/// The function is loaded as from `$fpath`, and asked twice: its file defines it anew at the first use.
fn zsh(line: &[&str]) -> String {
    let line = line.join(" ");
    format!(
        r#"zmodload zsh/zpty
zpty editor zsh -f -i
put() {{ zpty -w editor "$1" }}
put 'PS1=; stty -echo columns 500; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D'
put 'compadd() {{ local -a hits; builtin compadd -O hits "$@"; print -rl -- "BEGIN" "${{hits[@]}}" "END"; builtin compadd "$@" }}'
put 'zstyle ":completion:*" list-prompt ""; setopt no_beep; unsetopt list_ambiguous; LISTMAX=0'
put 'show() {{ print -r -- FIRST; zle complete-word; BUFFER=; print -r -- "LAST" }}; zle -N show; bindkey "^I" show; print -r -- RE''ADY'
zpty -r -m editor found '*READY*' || exit 1
zpty -w -n editor $'kafila job sta\t'
zpty -r -m editor found '*LAST*' || exit 1
zpty -w -n editor {line:?}$'\t'
zpty -r -m editor found '*LAST*' || exit 1
zpty -d editor
inside=0
for word in "${{(@f)found//$'\r'/}}"; do
    case $word in
        *BEGIN) inside=1 ;;
        END*) inside=0 ;;
        *) (( inside )) && print -r -- "$word" ;;
    esac
done
"#
    )
}

/// The same lines in every shell. The gateway has a second for its answer, which a busy machine may need longer.
async fn completes(shell: &str, lines: &[(&[&str], &[&str])]) {
    let gateway = Gateway::start(FakeState::running()).await;
    let name = ["bash", "zsh", "fish"].into_iter().find(|it| *it == shell);
    let Some(shell) = Shell::find(name.unwrap(), &gateway.address).await else {
        return;
    };
    for (line, expected) in lines {
        let mut found = Vec::new();
        for _ in 0..10 {
            found = shell.complete(line).await;
            if found == *expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(found, *expected, "{}: {line:?}", shell.name);
    }
}

const IDS_AND_FLAGS: &[(&[&str], &[&str])] = &[
    (&["kafila", "job", "status", "w"], &["web"]),
    (&["kafila", "job", "status", ""], &["web"]),
    (&["kafila", "alloc", "logs", "-job", "w"], &["web"]),
    (
        &["kafila", "alloc", "status", "8"],
        // The failed one and its replacement.
        &[
            "8a3f2c1e-0000-4000-8000-000000000003",
            "8a3f9999-0000-4000-8000-000000000004",
        ],
    ),
    (&["kafila", "job", "run", "-det"], &["-detach"]),
    (&["kafila", "job", "run", "--det"], &["--detach"]),
    (&["kafila", "job", "run", "-ch"], &["-check-index"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn bash_completes_ids_that_the_gateway_knows() {
    completes("bash", IDS_AND_FLAGS).await;
    // Nothing of ours: bash then completes files.
    let files: &[(&[&str], &[&str])] = &[
        (&["kafila", "job", "run", ""], &[]),
        (&["kafila", "run", "-detach", ""], &[]),
        (&["kafila", "job", "run", "-hcl2-strict", "t"], &["true"]),
    ];
    completes("bash", files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zsh_completes_ids_that_the_gateway_knows() {
    completes("zsh", IDS_AND_FLAGS).await;
    completes("zsh", &[(&["kafila", "job", "run", "w"], &["web.hcl"])]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fish_completes_ids_that_the_gateway_knows() {
    completes("fish", IDS_AND_FLAGS).await;
    completes("fish", &[(&["kafila", "job", "run", "w"], &["web.hcl"])]).await;
}
