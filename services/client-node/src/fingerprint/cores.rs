//! The cores that tasks may have for themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::cpu;
use crate::config::Config;
use crate::error::Error;

/// Core → MHz.
pub(super) type Cores = BTreeMap<u16, u32>;

/// What is found of the machine's cores.
pub(super) struct Found {
    /// Those that tasks may have for themselves.
    pub(super) reservable: Cores,
    /// What those come to that are not for tasks at all, in MHz.
    pub(super) reserved_mhz: u64,
}

/// Returns the cores that the agent may run on itself, but for what the operator keeps back.
///
/// `total_mhz` is what all of them together have: where that is less than they are worth, because
/// the operator says so or a container is given less, each is worth less.
pub(super) fn fingerprint(config: &Config, total_mhz: u64) -> Found {
    let allowed = cpu::allowed_cores();
    // What makes no sense was refused when the agent started.
    let wanted = parse(&config.reservable_cores).unwrap_or_default();
    let reserved = parse(&config.reserved.cores).unwrap_or_default();
    found(&allowed, &wanted, &reserved, total_mhz, cpu::mhz_of)
}

fn found(
    allowed: &BTreeSet<u16>,
    wanted: &BTreeSet<u16>,
    reserved: &BTreeSet<u16>,
    total_mhz: u64,
    mhz_of: impl Fn(u16) -> u64,
) -> Found {
    let most = total_mhz / (allowed.len() as u64).max(1);
    let worth = |id: u16| u32::try_from(mhz_of(id).min(most)).unwrap_or(u32::MAX);
    let is_kept_back = |id: &u16| reserved.contains(id);
    let is_wanted = |id: &u16| wanted.is_empty() || wanted.contains(id);
    let free = allowed
        .iter()
        .filter(|id| !is_kept_back(id) && is_wanted(id));
    let kept_back = allowed.iter().filter(|id| is_kept_back(id));
    Found {
        reservable: free.map(|id| (*id, worth(*id))).collect(),
        reserved_mhz: kept_back.map(|id| u64::from(worth(*id))).sum(),
    }
}

/// # Errors
/// The first setting that is no list of cores.
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    for (field, list) in [
        ("reservable_cores", &config.reservable_cores),
        ("reserved.cores", &config.reserved.cores),
    ] {
        if parse(list).is_none() {
            let problem = format!("{list:?} is no list of cores: write it as in \"0-3,7\"");
            let field = field.to_owned();
            return Err(Error::Setting { field, problem });
        }
    }
    Ok(())
}

/// Reads a list as the kernel writes it, as in `0-3,7`.
pub(super) fn parse(list: &str) -> Option<BTreeSet<u16>> {
    let mut ids = BTreeSet::new();
    for range in list
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u16 = first.trim().parse().ok()?;
        let last: u16 = last.trim().parse().ok()?;
        if first > last {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[u16]) -> BTreeSet<u16> {
        ids.iter().copied().collect()
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0-2, 7\n"), Some(set(&[0, 1, 2, 7])));
        assert_eq!(parse(""), Some(set(&[])));
        for text in ["a", "3-1", "1-", "-1", "70000"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn tasks_get_what_the_operator_leaves_and_no_more_than_the_whole() {
        let allowed = set(&[0, 1, 2, 3]);
        let speed = |id: u16| if id < 2 { 3_000 } else { 2_000 };
        let all = found(&allowed, &set(&[]), &set(&[]), 10_000, speed);
        // 2,500 each is what the whole has room for.
        let want = [(0, 2_500), (1, 2_500), (2, 2_000), (3, 2_000)];
        assert_eq!(all.reservable, Cores::from(want));
        assert_eq!(all.reserved_mhz, 0);
        let some = found(&allowed, &set(&[1, 2, 9]), &set(&[2, 3]), 100_000, speed);
        assert_eq!(some.reservable, Cores::from([(1, 3_000)]));
        assert_eq!(some.reserved_mhz, 4_000);
    }
}
