//! Rules of `iptables` that let packets of the bridge pass. A Docker Engine drops packets that the
//! machine forwards for others, and no rule of another table can overrule a drop.

use crate::error::Error;
use crate::program;

/// Chain of our own, which `FORWARD` jumps to first.
const CHAIN: &str = "KAFILA-FORWARD";
/// Seconds to wait for the lock of iptables.
const LOCK_WAIT: &str = "10";

/// Adds the rules of a bridge where they are missing. A machine without iptables has no other program's
/// rules either.
///
/// # Errors
/// The message of the program.
pub(crate) fn ensure(bridge: &str, has_ipv6: bool) -> Result<(), Error> {
    let programs = if has_ipv6 {
        &["iptables", "ip6tables"][..]
    } else {
        &["iptables"]
    };
    for program in programs {
        let Some(listed) = run(program, &["-S"])? else {
            continue;
        };
        for rule in missing(&listed, bridge) {
            let rule: Vec<&str> = rule.split(' ').collect();
            // Another allocation may have made the chain meanwhile.
            let is_chain = rule.first() == Some(&"-N");
            if run(program, &rule)?.is_none() && !is_chain {
                let message = format!("{program} {} failed", rule.join(" "));
                return Err(Error::Nft(message));
            }
        }
    }
    Ok(())
}

/// Returns the missing commands, by the listing of the table. No I/O.
fn missing(listed: &str, bridge: &str) -> Vec<String> {
    let has = |rule: &str| listed.lines().any(|line| line.trim() == rule);
    let mut commands = Vec::new();
    if !has(&format!("-N {CHAIN}")) {
        commands.push(format!("-N {CHAIN}"));
    }
    for rule in [
        // Packets that allocations send, also to each other.
        format!("-A {CHAIN} -i {bridge} -j ACCEPT"),
        // Answers, and what a mapped port leads to.
        format!("-A {CHAIN} -o {bridge} -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT"),
    ] {
        if !has(&rule) {
            commands.push(rule);
        }
    }
    if !has(&format!("-A FORWARD -j {CHAIN}")) {
        commands.push(format!("-I FORWARD -j {CHAIN}"));
    }
    commands
}

/// Returns the output; `None`: the program failed or is missing.
fn run(program: &str, args: &[&str]) -> Result<Option<String>, Error> {
    let mut command = program::command(program);
    command.args(["-w", LOCK_WAIT]).args(args);
    match program::run(&mut command, Vec::new()) {
        Ok(output) => Ok(output.is_success.then_some(output.stdout)),
        Err(Error::Run { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_added_once() {
        let all = missing("-P FORWARD DROP", "kafila");
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!(all[0], "-N KAFILA-FORWARD");
        assert_eq!(all[3], "-I FORWARD -j KAFILA-FORWARD");
        let mut listed = all.join("\n").replace("-I FORWARD", "-A FORWARD");
        assert_eq!(missing(&listed, "kafila"), Vec::<String>::new());
        // Another bridge has rules of its own.
        assert_eq!(missing(&listed, "other").len(), 2);
        // Another program's flush of FORWARD.
        listed = listed.replace("-A FORWARD -j KAFILA-FORWARD", "");
        assert_eq!(missing(&listed, "kafila"), ["-I FORWARD -j KAFILA-FORWARD"]);
    }
}
