//! Core lists in the kernel's format, as in `0-2,5`.

/// Formats ascending core ids.
pub fn format(cores: &[u16]) -> String {
    let mut ranges = Vec::<(u16, u16)>::new();
    for id in cores {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*id) => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    let shown = ranges.into_iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

/// Reads the core ids of a list, in its order; `None`: not a core list. Blanks around ids and empty
/// parts are allowed.
pub fn parse(list: &str) -> Option<Vec<u16>> {
    let mut ids = Vec::new();
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

    #[test]
    fn cores_are_listed_as_the_kernel_does() {
        assert_eq!(format(&[]), "");
        assert_eq!(format(&[3]), "3");
        assert_eq!(format(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(format(&[65_535]), "65535");
        assert_eq!(parse("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0-2, 7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(parse(""), Some(Vec::new()));
        for text in ["a", "0-x", "3-1", "1-", "-1", "70000"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
