//! Versions, in the order of `version` and `semver` constraints.
//!
//! Parsing is lenient (`1.2`, `v1.2.3-beta1+build`, leading zeros, `~`), because fingerprints
//! contain the output of programs; the crate `semver` rejects these. Build metadata never counts.
//! Source: Nomad's public behaviour.

use std::cmp::Ordering;

/// A version: numbers, then its pre-release part.
#[derive(Clone, Debug)]
pub struct Version {
    numbers: Vec<u64>,
    /// Empty: a release.
    prerelease: String,
}

impl Version {
    /// Reads `v1.2.3-beta1+build`; any count of numbers, and `1.2beta1` too.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let numbers = numbers
            .split('.')
            .map(|part| part.parse().ok())
            .collect::<Option<Vec<u64>>>()?;
        let (prerelease, metadata) = rest
            .split_once('+')
            .map_or((rest, None), |(a, b)| (a, Some(b)));
        let prerelease = match prerelease.strip_prefix('-') {
            Some("") => return None,
            Some(tail) => tail,
            None => prerelease,
        };
        if metadata == Some("") || !is_label(prerelease) || !is_label(metadata.unwrap_or_default())
        {
            return None;
        }
        Some(Self {
            numbers,
            prerelease: prerelease.to_owned(),
        })
    }

    fn number(&self, position: usize) -> u64 {
        self.numbers.get(position).copied().unwrap_or(0)
    }

    fn has_numbers_of(&self, other: &Self) -> bool {
        self.cmp_numbers(other) == Ordering::Equal
    }

    fn cmp_numbers(&self, other: &Self) -> Ordering {
        let len = self.numbers.len().max(other.numbers.len());
        (0..len)
            .map(|position| self.number(position).cmp(&other.number(position)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As in SemVer 2.0: a release is after its pre-releases; missing numbers are 0.
impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_numbers(other).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => cmp_prerelease(&self.prerelease, &other.prerelease),
            }
        })
    }
}

fn is_label(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '~'))
}

/// Compares identifier by identifier: numbers below words, fewer identifiers first.
fn cmp_prerelease(left: &str, right: &str) -> Ordering {
    let mut left = left.split('.');
    let mut right = right.split('.');
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// The comparison of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `version`: a pre-release satisfies only bounds that name a pre-release of the same numbers.
    Lenient,
    /// `semver`: pre-releases are ordered like everything else, and there is no `~>`.
    Semver,
}

/// A comma-separated list of bounds, all of which a version must satisfy.
#[derive(Clone, Debug)]
pub struct Bounds {
    style: Style,
    bounds: Vec<(Bound, Version)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `~> 1.2.3`: at least that, and equal in all numbers given but the last.
    Pessimistic,
}

/// Longer signs before those they start with.
const SIGNS: [(&str, Bound); 7] = [
    (">=", Bound::GreaterOrEqual),
    ("<=", Bound::LessOrEqual),
    ("!=", Bound::NotEqual),
    ("~>", Bound::Pessimistic),
    (">", Bound::Greater),
    ("<", Bound::Less),
    ("=", Bound::Equal),
];

impl Bounds {
    /// Reads `>= 1.0, < 2.0`; `None` when any part is not a bound.
    pub fn parse(style: Style, text: &str) -> Option<Self> {
        let mut bounds = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let (bound, version) = SIGNS
                .iter()
                .find_map(|(sign, bound)| part.strip_prefix(sign).map(|rest| (*bound, rest)))
                .unwrap_or((Bound::Equal, part));
            if style == Style::Semver && bound == Bound::Pessimistic {
                return None;
            }
            bounds.push((bound, Version::parse(version)?));
        }
        Some(Self { style, bounds })
    }

    pub fn admit(&self, version: &Version) -> bool {
        self.bounds
            .iter()
            .all(|(bound, limit)| self.admits_one(version, *bound, limit))
    }

    fn admits_one(&self, version: &Version, bound: Bound, limit: &Version) -> bool {
        match bound {
            Bound::Equal => return version == limit,
            Bound::NotEqual => return version != limit,
            _ => {}
        }
        if self.style == Style::Lenient && !version.prerelease.is_empty() {
            let comparable = !limit.prerelease.is_empty() && version.has_numbers_of(limit);
            if !comparable {
                return false;
            }
        }
        match bound {
            Bound::Less => version < limit,
            Bound::LessOrEqual => version <= limit,
            Bound::Greater => version > limit,
            Bound::GreaterOrEqual => version >= limit,
            Bound::Pessimistic => {
                let fixed = limit.numbers.len().saturating_sub(1);
                version >= limit
                    && (0..fixed).all(|position| version.number(position) == limit.number(position))
            }
            Bound::Equal | Bound::NotEqual => unreachable!("answered above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(style: Style, version: &str, bounds: &str) -> bool {
        let bounds = Bounds::parse(style, bounds);
        let version = Version::parse(version);
        matches!((bounds, version), (Some(bounds), Some(version)) if bounds.admit(&version))
    }

    #[test]
    fn scenario_104_version_bounds() {
        for (version, bounds, want) in [
            ("1.2.3", "~> 1.0", true),
            ("2.0", "~> 1.0", false),
            ("1.3.0", "~> 1.2.3", false),
            ("1.2.9", "~> 1.2.3", true),
            ("1.4", ">= 1.0, < 1.4", false),
            ("1.3.0-beta1", ">= 0.6.1", false),
            ("1.7.0-alpha1", ">= 1.6.0-beta1", false),
            ("1.6.0-beta2", ">= 1.6.0-beta1", true),
            ("1.3.0-beta1+ent", "= 1.3.0-beta1", true),
            ("1.3", "1.3.0", true),
            ("v1.3", "!= 1.3", false),
            ("5.10.0-21-amd64", "= 5.10.0-21-amd64", true),
            ("garbage", ">= 0", false),
            ("1.0", ">= garbage", false),
            ("1.0", "", false),
        ] {
            assert_eq!(
                admits(Style::Lenient, version, bounds),
                want,
                "{version} {bounds}"
            );
        }
    }

    #[test]
    fn scenario_105_semver_bounds() {
        for (version, bounds, want) in [
            ("1.2.3", "~> 1.0", false),
            ("1.3.0-beta1", ">= 0.6.1", true),
            ("1.7.0-beta", ">= 1.7.0", false),
            ("1.7.0", ">= 1.7.0-dev", true),
            ("1.7.0-rc.2", "> 1.7.0-rc.1", true),
            ("1.7.0-rc.10", "> 1.7.0-rc.9", true),
            ("1.7.0-1", "< 1.7.0-alpha", true),
            ("1.7.0+a", "= 1.7.0+b", true),
        ] {
            assert_eq!(
                admits(Style::Semver, version, bounds),
                want,
                "{version} {bounds}"
            );
        }
    }
}
