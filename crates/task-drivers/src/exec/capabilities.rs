//! The capabilities of a task.

use model::capability;

/// The capabilities of a task, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// The most that a process of the task can get.
    pub(super) bounding: u64,
    /// The capabilities of its first process.
    pub(super) held: u64,
}

/// Returns the capabilities of a task: the node's defaults without `drop`, and `add`.
///
/// Root has all of them. Another user has those of `add`, and `NET_BIND_SERVICE`: the others would
/// make it root to the node's files, which are the node's own and no copies.
///
/// # Errors
/// The node does not allow a capability of `add`, or there is none of a name.
pub(super) fn decide(
    defaults: &[&str],
    allowed: &[String],
    add: &[String],
    drop: &[String],
    is_root: bool,
) -> Result<Capabilities, String> {
    let allowed = set("allow_caps", allowed)?;
    let added = set("cap_add", add)?;
    let dropped = set("cap_drop", drop)?;
    if added & !allowed != 0 {
        let refused = capability::NAMES
            .iter()
            .enumerate()
            .filter(|(number, _)| added & !allowed & (1 << number) != 0)
            .map(|(_, name)| *name);
        let refused: Vec<_> = refused.collect();
        return Err(format!(
            "cap_add: this node does not allow {}: it can be added to allow_caps in the node's \
             configuration",
            refused.join(", ")
        ));
    }
    let defaults: Vec<String> = defaults.iter().map(|name| (*name).to_owned()).collect();
    let bounding = (set("the defaults", &defaults)? & allowed & !dropped) | added;
    let bind = set("the defaults", &["net_bind_service".to_owned()])?;
    Ok(Capabilities {
        bounding,
        held: if is_root {
            bounding
        } else {
            bounding & (added | bind)
        },
    })
}

fn set(option: &str, names: &[String]) -> Result<u64, String> {
    let mut set = 0;
    for name in names {
        if name.trim().eq_ignore_ascii_case("all") {
            set |= (1 << capability::NAMES.len()) - 1;
            continue;
        }
        let number = capability::number(name);
        let number =
            number.ok_or_else(|| format!("{option}: {name:?} is not a capability of Linux"))?;
        set |= 1 << number;
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn decided(allowed: &[&str], add: &[&str], drop: &[&str], is_root: bool) -> Capabilities {
        let defaults = ["chown", "kill", "net_bind_service"];
        let (allowed, add, drop) = (texts(allowed), texts(add), texts(drop));
        super::decide(&defaults, &allowed, &add, &drop, is_root).unwrap()
    }

    #[test]
    fn a_task_has_the_defaults_that_the_node_allows() {
        const CHOWN: u64 = 1;
        const KILL: u64 = 1 << 5;
        const BIND: u64 = 1 << 10;
        const RAW: u64 = 1 << 13;
        let all = CHOWN | KILL | BIND;
        for (allowed, add, drop, bounding, user) in [
            (&["all"][..], &[][..], &[][..], all, BIND),
            (&["kill"], &[], &[], KILL, 0),
            (
                &["all"],
                &["CAP_NET_RAW"],
                &["chown"],
                KILL | BIND | RAW,
                BIND | RAW,
            ),
            // Added capabilities are not dropped.
            (&["all"], &["kill"], &["all"], KILL, KILL),
        ] {
            let root = decided(allowed, add, drop, true);
            assert_eq!((root.bounding, root.held), (bounding, bounding));
            let other = decided(allowed, add, drop, false);
            assert_eq!((other.bounding, other.held), (bounding, user));
        }
    }

    #[test]
    fn a_capability_that_the_node_does_not_allow_is_refused() {
        let kill = texts(&["kill"]);
        let decide = |add: &[&str]| super::decide(&["kill"], &kill, &texts(add), &[], true);
        let error = decide(&["sys_admin", "kill", "net_raw"]).unwrap_err();
        assert!(error.starts_with("cap_add: this node does not allow net_raw, sys_admin"));
        assert!(decide(&["all"]).is_err());
        let error = decide(&["fly"]).unwrap_err();
        assert_eq!(error, "cap_add: \"fly\" is not a capability of Linux");
    }
}
