//! Reservable cores: cores that may be dedicated to a task.

use std::collections::{BTreeMap, BTreeSet};

use task_drivers::core_list;

use crate::config::Config;
use crate::cpu;
use crate::error::Error;

/// Core → MHz.
pub(crate) type Cores = BTreeMap<u16, u32>;

/// The machine's cores, by purpose.
pub(crate) struct Found {
    /// Cores that may be dedicated to a task.
    pub(crate) reservable: Cores,
    /// Compute of the operator's reserved cores, in MHz.
    pub(crate) reserved_mhz: u64,
}

/// Returns the cores in the agent's affinity mask, without the operator's reserved ones.
///
/// `total_mhz` bounds the sum over all cores: when the operator or a container quota sets a lower
/// total, each core's speed is lowered to its equal share.
pub(crate) fn fingerprint(config: &Config, total_mhz: u64) -> Found {
    let allowed = cpu::allowed_cores();
    // An invalid list was refused when the agent started.
    let wanted = core_set(&config.reservable_cores).unwrap_or_default();
    let reserved = core_set(&config.reserved.cores).unwrap_or_default();
    found(&allowed, &wanted, &reserved, total_mhz, cpu::mhz_of)
}

fn found(
    allowed: &BTreeSet<u16>,
    wanted: &BTreeSet<u16>,
    reserved: &BTreeSet<u16>,
    total_mhz: u64,
    mhz_of: impl Fn(u16) -> u64,
) -> Found {
    let equal_share = total_mhz / (allowed.len() as u64).max(1);
    let mhz = |id: u16| u32::try_from(mhz_of(id).min(equal_share)).unwrap_or(u32::MAX);
    let is_reserved = |id: &u16| reserved.contains(id);
    let is_wanted = |id: &u16| wanted.is_empty() || wanted.contains(id);
    let free = allowed
        .iter()
        .filter(|id| !is_reserved(id) && is_wanted(id));
    let reserved = allowed.iter().filter(|id| is_reserved(id));
    Found {
        reservable: free.map(|id| (*id, mhz(*id))).collect(),
        reserved_mhz: reserved.map(|id| u64::from(mhz(*id))).sum(),
    }
}

/// # Errors
/// The first setting that is not a core list.
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    for (field, list) in [
        ("reservable_cores", &config.reservable_cores),
        ("reserved.cores", &config.reserved.cores),
    ] {
        if core_set(list).is_none() {
            let problem = format!("{list:?} is not a core list: write it as in \"0-3,7\"");
            return Err(Error::setting(field, problem));
        }
    }
    Ok(())
}

fn core_set(list: &str) -> Option<BTreeSet<u16>> {
    Some(core_list::parse(list)?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[u16]) -> BTreeSet<u16> {
        ids.iter().copied().collect()
    }

    #[test]
    fn a_setting_that_is_not_a_core_list_is_refused_by_name() {
        let mut config = Config::default();
        check(&config).unwrap();
        config.reserved.cores = "0..1".to_owned();
        let error = check(&config).unwrap_err().to_string();
        assert!(error.starts_with("`reserved.cores`"), "{error}");
        assert!(error.contains("\"0-3,7\""), "{error}");
    }

    #[test]
    fn reserved_cores_are_left_out_and_the_sum_stays_within_the_total() {
        let allowed = set(&[0, 1, 2, 3]);
        let speed = |id: u16| if id < 2 { 3_000 } else { 2_000 };
        let all = found(&allowed, &set(&[]), &set(&[]), 10_000, speed);
        // 10,000 MHz over four cores is 2,500 each.
        let want = [(0, 2_500), (1, 2_500), (2, 2_000), (3, 2_000)];
        assert_eq!(all.reservable, Cores::from(want));
        assert_eq!(all.reserved_mhz, 0);
        let some = found(&allowed, &set(&[1, 2, 9]), &set(&[2, 3]), 100_000, speed);
        assert_eq!(some.reservable, Cores::from([(1, 3_000)]));
        assert_eq!(some.reserved_mhz, 4_000);
    }
}
