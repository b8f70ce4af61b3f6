//! Sizes of memory and disk, from MiB.

const UNITS: [&str; 4] = ["MiB", "GiB", "TiB", "PiB"];

/// Returns `mib` in the largest unit that leaves at least 1: `256 MiB`, `7.8 GiB`.
pub(crate) fn mib(mib: u64) -> String {
    let (mut divisor, mut unit) = (1_u64, UNITS[0]);
    for larger in &UNITS[1..] {
        if mib / divisor < 1024 {
            break;
        }
        divisor *= 1024;
        unit = larger;
    }
    if mib.is_multiple_of(divisor) {
        return format!("{} {unit}", mib / divisor);
    }
    // In tenths, rounded; far from overflow.
    let tenths = (u128::from(mib) * 10 + u128::from(divisor) / 2) / u128::from(divisor);
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
}
