//! Port lists in settings, as in `22,8000-8010`.

use crate::error::Error;

/// Returns the ports in ascending order, each once; `field` is the name of the setting.
pub(super) fn parse(field: &str, text: &str) -> Result<Vec<u16>, Error> {
    let mut ports = Vec::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().ok();
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => ports.extend(first..=last),
            _ => {
                let problem = format!(
                    "{part:?} is neither a port nor a port range: write ports from 0 to 65535, \
                     as in 22,8000-8010"
                );
                return Err(Error::setting(field, problem));
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_ranges_make_a_list() {
        for (text, want) in [
            ("", vec![]),
            ("22", vec![22]),
            (" 80 , 22,80,", vec![22, 80]),
            ("8000-8002,8001,65535", vec![8_000, 8_001, 8_002, 65_535]),
        ] {
            assert_eq!(parse("x", text).unwrap(), want, "{text:?}");
        }
        for text in ["ssh", "80-", "-80", "81-80", "65536", "1-2-3"] {
            let message = parse("reserved.reserved_ports", text)
                .unwrap_err()
                .to_string();
            let want = format!("`reserved.reserved_ports`: {text:?} is neither a port nor");
            assert!(message.starts_with(&want), "{message}");
        }
    }
}
