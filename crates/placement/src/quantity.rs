//! Values with units, as attributes of devices have them: `8 GiB`, `1.5GHz`, `true`, `k80`.

use std::cmp::Ordering;

/// A value, parsed for comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity<'a> {
    Number { amount: Amount, base: Base },
    Flag(bool),
    Text(&'a str),
}

/// The amount, in the base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    Whole(i128),
    Decimal(f64),
}

/// The dimension; amounts of different dimensions are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Nothing,
    Bytes,
    BytesPerSecond,
    Hertz,
    Milliwatts,
}

/// Unit → base and factor. Source: Nomad's public list of units of device attributes.
const UNITS: [(&str, Base, i64); 20] = [
    ("KiB", Base::Bytes, 1 << 10),
    ("MiB", Base::Bytes, 1 << 20),
    ("GiB", Base::Bytes, 1 << 30),
    ("TiB", Base::Bytes, 1 << 40),
    ("PiB", Base::Bytes, 1 << 50),
    ("EiB", Base::Bytes, 1 << 60),
    ("kB", Base::Bytes, 1_000),
    ("KB", Base::Bytes, 1_000),
    ("MB", Base::Bytes, 1_000_000),
    ("GB", Base::Bytes, 1_000_000_000),
    ("TB", Base::Bytes, 1_000_000_000_000),
    ("PB", Base::Bytes, 1_000_000_000_000_000),
    ("EB", Base::Bytes, 1_000_000_000_000_000_000),
    ("MHz", Base::Hertz, 1_000_000),
    ("GHz", Base::Hertz, 1_000_000_000),
    ("mW", Base::Milliwatts, 1),
    ("W", Base::Milliwatts, 1_000),
    ("kW", Base::Milliwatts, 1_000_000),
    ("MW", Base::Milliwatts, 1_000_000_000),
    ("GW", Base::Milliwatts, 1_000_000_000_000),
];

impl<'a> Quantity<'a> {
    /// Parses `text`; everything but numbers, with or without a known unit, and truth values is a
    /// text.
    pub(crate) fn parse(text: &'a str) -> Self {
        let trimmed = text.trim();
        match trimmed {
            "true" => return Self::Flag(true),
            "false" => return Self::Flag(false),
            _ => {}
        }
        number(trimmed).unwrap_or(Self::Text(text))
    }

    /// Compares two values; `None`: they are not comparable.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (
                Self::Number { amount, base },
                Self::Number {
                    amount: other,
                    base: other_base,
                },
            ) if base == other_base => amount.compare(other),
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    /// Tells whether two values are equal; `None`: they are not comparable.
    pub(crate) fn equals(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Flag(left), Self::Flag(right)) => Some(left == right),
            _ => self.compare(other).map(Ordering::is_eq),
        }
    }
}

impl Amount {
    fn times(self, factor: i64) -> Self {
        match self {
            Self::Whole(whole) => Self::Whole(whole * i128::from(factor)),
            #[expect(clippy::cast_precision_loss, reason = "a decimal is not exact anyway")]
            Self::Decimal(decimal) => Self::Decimal(decimal * factor as f64),
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => Some(left.cmp(&right)),
            _ => self.decimal().partial_cmp(&other.decimal()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a decimal is not exact anyway")]
    fn decimal(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Decimal(decimal) => decimal,
        }
    }
}

fn number(text: &str) -> Option<Quantity<'_>> {
    let end = text
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+'))
        .unwrap_or(text.len());
    let (digits, unit) = (&text[..end], text[end..].trim());
    let amount = match digits.parse::<i64>() {
        Ok(whole) => Amount::Whole(whole.into()),
        Err(_) => Amount::Decimal(digits.parse().ok()?),
    };
    if unit.is_empty() {
        return Some(Quantity::Number {
            amount,
            base: Base::Nothing,
        });
    }
    let (unit, is_rate) = match unit.strip_suffix("/s") {
        Some(unit) => (unit, true),
        None => (unit, false),
    };
    let (_, base, factor) = UNITS.iter().find(|(name, _, _)| *name == unit)?;
    let base = match (base, is_rate) {
        (Base::Bytes, true) => Base::BytesPerSecond,
        (_, true) => return None,
        (base, false) => *base,
    };
    Some(Quantity::Number {
        amount: amount.times(*factor),
        base,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(left: &str, right: &str) -> Option<Ordering> {
        Quantity::parse(left).compare(Quantity::parse(right))
    }

    #[test]
    fn amounts_are_compared_across_units_of_one_thing() {
        for (left, right, want) in [
            ("8 GiB", "8192 MiB", Some(Ordering::Equal)),
            ("8GiB", "8 GB", Some(Ordering::Greater)),
            ("1.5 GHz", "1500 MHz", Some(Ordering::Equal)),
            ("1 kW", "999 W", Some(Ordering::Greater)),
            ("1 MB/s", "1 KB/s", Some(Ordering::Greater)),
            ("9", "10", Some(Ordering::Less)),
            ("-1", "0.5", Some(Ordering::Less)),
            // The largest that can be written, exactly.
            (
                "9223372036854775807 EiB",
                "9223372036854775806 EiB",
                Some(Ordering::Greater),
            ),
            ("k80", "k9", Some(Ordering::Less)),
            ("8 GiB", "8", None),
            ("8 GiB", "8 GHz", None),
            ("8 GiB", "8 GiB/s", None),
            ("8", "k80", None),
            ("true", "false", None),
            // A rate of what is none, an unknown unit and a number that is none are texts.
            ("1 W/s", "1", None),
            ("1 parsec", "1", None),
            ("1.2.3", "1", None),
        ] {
            assert_eq!(compare(left, right), want, "{left:?} {right:?}");
        }
    }

    #[test]
    fn truth_values_are_the_same_or_not() {
        let equals = |left, right| Quantity::parse(left).equals(Quantity::parse(right));
        assert_eq!(equals("true", "true"), Some(true));
        assert_eq!(equals("true", "false"), Some(false));
        assert_eq!(equals("true", "1"), None);
        assert_eq!(equals("1 GiB", "1024 MiB"), Some(true));
    }
}
