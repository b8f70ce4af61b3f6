//! Items of variables, sealed with the key-encryption keys.

use model::{SealedText, VariableItems, VariableKey};
use ring::rand::SecureRandom;

use crate::sealing::{KeyEncryptionKeys, KeyError, OpenFailure};

/// Seals the items of a variable.
///
/// # Errors
/// The machine has no randomness.
pub fn seal(
    variable: &VariableKey,
    items: &VariableItems,
    keys: &KeyEncryptionKeys,
    random: &dyn SecureRandom,
) -> Result<SealedText, KeyError> {
    // Texts have no form that JSON lacks.
    let text = serde_json::to_vec(items).unwrap_or_default();
    Ok(keys.seal_as(&name(variable), &text, random)?)
}

/// Opens the items of a variable.
///
/// # Errors
/// The key that sealed them is not known, or they are damaged.
pub fn open(
    variable: &VariableKey,
    sealed: &SealedText,
    keys: &KeyEncryptionKeys,
) -> Result<VariableItems, KeyError> {
    let damaged = || KeyError::DamagedVariable {
        variable: variable.clone(),
    };
    let text = keys.open_as(&name(variable), sealed);
    let text = text.map_err(|failure| match failure {
        OpenFailure::Unknown => KeyError::UnknownOfVariable {
            variable: variable.clone(),
            sealed_with: sealed.sealed_with.clone(),
        },
        OpenFailure::Damaged => damaged(),
    })?;
    serde_json::from_slice(&text).map_err(|_| damaged())
}

/// The name that is sealed with the items. Namespaces have no slashes, so names are distinct.
fn name(variable: &VariableKey) -> Vec<u8> {
    format!("variable/{}/{}", variable.namespace, variable.path).into_bytes()
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;

    use super::*;

    fn items() -> VariableItems {
        [("password".to_owned(), "hunter2".to_owned())].into()
    }

    fn keys(lines: &[u8]) -> KeyEncryptionKeys {
        let lines: Vec<_> = lines
            .iter()
            .map(|byte| format!("{byte:02x}").repeat(32))
            .collect();
        KeyEncryptionKeys::parse(&lines.join("\n")).unwrap()
    }

    #[test]
    fn items_open_under_their_own_name_alone() {
        let keys = keys(&[1]);
        let db = VariableKey::new("default", "app/db");
        let sealed = seal(&db, &items(), &keys, &SystemRandom::new()).unwrap();
        assert_eq!(open(&db, &sealed, &keys), Ok(items()));
        assert!(!format!("{sealed:?}{}", sealed.ciphertext).contains("hunter2"));
        for other in [("default", "app/db2"), ("prod", "app/db")] {
            let other = VariableKey::new(other.0, other.1);
            let refused = open(&other, &sealed, &keys).unwrap_err();
            assert_eq!(refused, KeyError::DamagedVariable { variable: other });
        }
    }

    #[test]
    fn an_old_key_opens_until_it_leaves_the_file() {
        let db = VariableKey::new("default", "app/db");
        let sealed = seal(&db, &items(), &keys(&[1]), &SystemRandom::new()).unwrap();
        assert_eq!(open(&db, &sealed, &keys(&[2, 1])), Ok(items()));
        let refused = open(&db, &sealed, &keys(&[2])).unwrap_err().to_string();
        assert!(refused.contains("keep an old key until"), "{refused}");
    }
}
