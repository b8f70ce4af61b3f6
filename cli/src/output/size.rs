//! Sizes of memory and disk.

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
/// Position of the unit MiB.
const MIB: usize = 2;

/// Returns `mib` in the largest unit that leaves at least 1: `256 MiB`, `7.8 GiB`.
pub(crate) fn mib(mib: u64) -> String {
    shown(mib, &UNITS[MIB..])
}

/// Returns `bytes` in the largest unit that leaves at least 1: `17 B`, `7.8 KiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    shown(bytes, &UNITS)
}

/// `amount` is in the first of the units; each is 1,024 of the one before.
fn shown(amount: u64, units: &[&str]) -> String {
    let (mut divisor, mut unit) = (1_u64, units[0]);
    for larger in &units[1..] {
        if amount / divisor < 1024 {
            break;
        }
        divisor *= 1024;
        unit = larger;
    }
    if amount.is_multiple_of(divisor) {
        return format!("{} {unit}", amount / divisor);
    }
    // In tenths, rounded; far from overflow.
    let tenths = (u128::from(amount) * 10 + u128::from(divisor) / 2) / u128::from(divisor);
    if tenths >= 100 {
        format!("{} {unit}", (tenths + 5) / 10)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_grows_with_the_amount() {
        let table = [
            (0, "0 MiB"),
            (300, "300 MiB"),
            (1_023, "1023 MiB"),
            (1_024, "1 GiB"),
            (7_965, "7.8 GiB"),
            (15_900, "16 GiB"),
            (1_048_576, "1 TiB"),
            (u64::MAX, "17179869184 PiB"),
        ];
        for (amount, expected) in table {
            assert_eq!(mib(amount), expected);
        }
    }

    #[test]
    fn small_amounts_are_in_bytes() {
        for (amount, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_536, "1.5 KiB"),
            (256 << 20, "256 MiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(bytes(amount), expected);
        }
    }
}
