//! Whole ids in requests: changes accept no prefixes.

use std::str::FromStr;

use model::FieldErrors;
use model::ids::InvalidId;

/// Parses the id in a field.
///
/// # Errors
/// The text is not a UUID.
pub fn whole_id<I: FromStr<Err = InvalidId>>(field: &str, text: &str) -> Result<I, FieldErrors> {
    text.parse().map_err(|error: InvalidId| {
        let mut errors = FieldErrors::default();
        errors.push(field, error.to_string());
        errors
    })
}

/// Parses the ids in a repeated field, in order.
///
/// # Errors
/// One for each text that is not a UUID, with its position.
pub fn whole_ids<'t, I: FromStr<Err = InvalidId>>(
    field: &str,
    texts: impl IntoIterator<Item = &'t String>,
) -> Result<Vec<I>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut ids = Vec::new();
    for (position, text) in texts.into_iter().enumerate() {
        match text.parse::<I>() {
            Ok(id) => ids.push(id),
            Err(error) => errors.push(format!("{field}[{position}]"), error.to_string()),
        }
    }
    errors.into_result(ids)
}

#[cfg(test)]
mod tests {
    use model::{AllocId, DeploymentId};

    use super::*;

    #[test]
    fn each_text_that_is_no_whole_id_is_named_with_its_position() {
        let whole = AllocId::from_random(1);
        let texts = [whole.to_string(), "5e6f".to_owned()];
        assert_eq!(whole_ids::<AllocId>("ids", &texts[..1]), Ok(vec![whole]));
        let errors = whole_ids::<AllocId>("ids", &texts).unwrap_err();
        assert_eq!(errors.0.len(), 1);
        assert_eq!(errors.0[0].field, "ids[1]");
        let errors = whole_id::<DeploymentId>("deployment_id", "5e6f").unwrap_err();
        let message = &errors.0[0].message;
        let expected = "\"5e6f\" is not the id of a deployment: want a whole UUID";
        assert!(message.starts_with(expected), "{message}");
    }
}
