//! The scheduler configuration: replaced as a whole, at the index that was read.

use model::SchedulerConfiguration;
use state::{Entity, Key, Snapshot, Write};

use super::change::OneWrite;
use model::refusal::{Kind, Refusal};

/// The reason why the configuration stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerConfigRefusal {
    #[error(
        "the scheduler configuration has modify index {found}, not {want}: it has changed since it \
         was read; read it again and retry"
    )]
    CheckIndex { want: u64, found: u64 },
}

impl Refusal for SchedulerConfigRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::CheckIndex { .. } => Kind::Outdated,
        }
    }
}

/// Returns the index of the stored configuration; 0: none is stored, so the defaults hold.
pub fn modify_index(snapshot: &Snapshot) -> u64 {
    snapshot
        .stored_scheduler_config()
        .map_or(0, |stored| stored.modify_index)
}

/// Decides on replacing the configuration, with a `check_index` only if it has this modify index.
///
/// # Errors
/// See [`SchedulerConfigRefusal`].
pub fn set(
    snapshot: &Snapshot,
    config: &SchedulerConfiguration,
    check_index: Option<u64>,
) -> Result<OneWrite, SchedulerConfigRefusal> {
    let found = modify_index(snapshot);
    if let Some(want) = check_index.filter(|want| *want != found) {
        return Err(SchedulerConfigRefusal::CheckIndex { want, found });
    }
    let key = Key::SchedulerConfig;
    let entity = Entity::SchedulerConfig(Box::new(config.clone()));
    Ok(match snapshot.stored_scheduler_config() {
        Some(stored) if stored.value == *config => OneWrite::Unchanged {
            modify_index: found,
        },
        Some(_) => OneWrite::Write(Box::new(Write::Update {
            key,
            modify_index: found,
            entity,
        })),
        None => OneWrite::Write(Box::new(Write::Create { key, entity })),
    })
}

/// Returns the compare of a transaction that relies on the configuration.
pub fn guard(snapshot: &Snapshot) -> Write {
    Write::require(Key::SchedulerConfig, modify_index(snapshot))
}

#[cfg(test)]
mod tests {
    use model::Algorithm;
    use test_kit::Stored;

    use super::*;

    fn spread() -> SchedulerConfiguration {
        SchedulerConfiguration {
            algorithm: Algorithm::Spread,
            ..SchedulerConfiguration::default()
        }
    }

    fn entity(config: SchedulerConfiguration) -> Entity {
        Entity::SchedulerConfig(Box::new(config))
    }

    #[test]
    fn a_missing_configuration_is_created_and_a_stored_one_updated() {
        let mut stored = Stored::default();
        stored.advance(41);
        let key = Key::SchedulerConfig;
        for check_index in [None, Some(0)] {
            let change = set(&stored.snapshot(), &spread(), check_index).unwrap();
            let entity = entity(spread());
            let key = key.clone();
            assert_eq!(
                change,
                OneWrite::Write(Box::new(Write::Create { key, entity }))
            );
        }
        stored.put(key.clone(), entity(spread()));
        for check_index in [None, Some(42)] {
            let config = SchedulerConfiguration::default();
            let change = set(&stored.snapshot(), &config, check_index).unwrap();
            let write = Write::Update {
                key: key.clone(),
                modify_index: 42,
                entity: entity(config),
            };
            assert_eq!(change, OneWrite::Write(Box::new(write)));
        }
    }

    #[test]
    fn the_defaults_can_be_chosen_and_are_stored_then() {
        let default = SchedulerConfiguration::default();
        let change = set(&Stored::default().snapshot(), &default, None).unwrap();
        assert!(matches!(change, OneWrite::Write(_)));
    }

    #[test]
    fn an_unchanged_configuration_is_not_written() {
        let mut stored = Stored::default();
        let modify_index = stored.put(Key::SchedulerConfig, entity(spread()));
        let change = set(&stored.snapshot(), &spread(), None).unwrap();
        assert_eq!(change, OneWrite::Unchanged { modify_index });
    }

    #[test]
    fn another_index_is_a_refusal_that_names_both() {
        let mut stored = Stored::default();
        let refusal = set(&stored.snapshot(), &spread(), Some(7)).unwrap_err();
        assert_eq!(
            refusal,
            SchedulerConfigRefusal::CheckIndex { want: 7, found: 0 }
        );
        stored.advance(8);
        stored.put(Key::SchedulerConfig, entity(spread()));
        for want in [0, 8, 10] {
            let refusal = set(&stored.snapshot(), &spread(), Some(want)).unwrap_err();
            assert_eq!(
                refusal,
                SchedulerConfigRefusal::CheckIndex { want, found: 9 }
            );
        }
    }
}
