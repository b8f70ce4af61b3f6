//! Signing keys of identity tokens.

use proto::v1;

use super::Style;
use crate::output::table::Table;

pub(crate) fn table(keys: &[v1::SigningKey], style: &Style) -> Table {
    let mut table = Table::new([
        "Key ID",
        "State",
        "Algorithm",
        "Active From",
        "Published Until",
    ]);
    for key in keys {
        let until = match key.published_until_ns {
            0 => String::new(),
            until => style.time(until),
        };
        table.row([
            style.id(&key.id),
            key.state.clone(),
            key.algorithm.clone(),
            style.time(key.active_from_ns),
            until,
        ]);
    }
    table
}

/// One line for each key that seals variables.
pub(crate) fn variables(listed: &v1::ListSigningKeysResponse) -> Vec<String> {
    let line = |(key, count): (&str, &u64)| {
        let variables = if *count == 1 {
            "variable is"
        } else {
            "variables are"
        };
        if key == listed.sealing_key {
            format!("{count} {variables} sealed with key {key}, the first of keyring_key_file")
        } else {
            format!("{count} {variables} sealed with key {key}: keep it in keyring_key_file")
        }
    };
    super::sorted(&listed.variables)
        .into_iter()
        .map(line)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_keys_of_variables_are_to_be_kept() {
        let listed = v1::ListSigningKeysResponse {
            variables: [("0a".to_owned(), 12), ("7c".to_owned(), 1)].into(),
            sealing_key: "0a".to_owned(),
            ..v1::ListSigningKeysResponse::default()
        };
        assert_eq!(
            variables(&listed),
            [
                "12 variables are sealed with key 0a, the first of keyring_key_file",
                "1 variable is sealed with key 7c: keep it in keyring_key_file",
            ]
        );
    }
}
