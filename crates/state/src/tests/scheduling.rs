//! The stored and the effective scheduler configuration, with node pools.

use model::{Algorithm, NodePool, PoolConfiguration, SchedulerConfiguration};
use proptest::prelude::*;

use crate::{Change, Entity, Key, State, Table};

fn put_config(config: &SchedulerConfiguration, create_index: u64, modify_index: u64) -> Change {
    Change::Put {
        key: Key::SchedulerConfig,
        entity: Entity::SchedulerConfig(Box::new(config.clone())),
        create_index,
        modify_index,
    }
}

fn put_pool(name: &str, scheduler_config: PoolConfiguration, index: u64) -> Change {
    let pool = NodePool {
        scheduler_config,
        ..NodePool::named(name)
    };
    Change::Put {
        key: Key::NodePool(name.to_owned()),
        entity: Entity::NodePool(Box::new(pool)),
        create_index: index,
        modify_index: index,
    }
}

fn spreads() -> PoolConfiguration {
    PoolConfiguration {
        algorithm: Some(Algorithm::Spread),
        ..PoolConfiguration::default()
    }
}

#[test]
fn without_a_stored_configuration_the_defaults_apply() {
    let mut state = State::default();
    let snapshot = state.snapshot();
    assert_eq!(
        snapshot.scheduler_config(),
        &SchedulerConfiguration::default()
    );
    assert_eq!(snapshot.stored_scheduler_config(), None);

    let config = SchedulerConfiguration {
        algorithm: Algorithm::Spread,
        pause_eval_broker: true,
        ..SchedulerConfiguration::default()
    };
    state.apply(5, [put_config(&config, 3, 5)]);
    let stored = state.snapshot();
    assert_eq!(stored.scheduler_config(), &config);
    let row = stored.stored_scheduler_config().unwrap();
    assert_eq!((row.create_index, row.modify_index), (3, 5));
    assert_eq!(stored.table_index(Table::SchedulerConfig), 5);
    // A snapshot never changes.
    assert_eq!(snapshot.stored_scheduler_config(), None);

    let key = Key::SchedulerConfig;
    state.apply(6, [Change::Delete { key }]);
    let snapshot = state.snapshot();
    assert_eq!(
        snapshot.scheduler_config(),
        &SchedulerConfiguration::default()
    );
    assert_eq!(snapshot.stored_scheduler_config(), None);
}

#[test]
fn a_pools_overrides_apply_until_it_is_deleted() {
    let mut state = State::default();
    state.apply(1, [put_pool("gpu", spreads(), 1)]);
    // Cluster-wide changes do not touch it.
    state.apply(2, [put_config(&SchedulerConfiguration::default(), 2, 2)]);
    let snapshot = state.snapshot();
    let config = snapshot.scheduler_config();
    assert_eq!(config.algorithm("gpu"), Algorithm::Spread);
    assert_eq!(config.algorithm("default"), Algorithm::Binpack);
    // The stored cluster configuration does not contain it.
    let stored = snapshot.stored_scheduler_config().unwrap();
    assert!(stored.value.pools.is_empty());
    assert_eq!(snapshot.node_pool("gpu").unwrap().create_index, 1);
    assert_eq!(snapshot.node_pools().count(), 1);

    let key = Key::NodePool("gpu".to_owned());
    state.apply(3, [Change::Delete { key }]);
    let snapshot = state.snapshot();
    let config = snapshot.scheduler_config();
    assert_eq!(config.algorithm("gpu"), Algorithm::Binpack);
    assert!(config.pools.is_empty());
    assert!(snapshot.node_pool("gpu").is_none());
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// `None`: deleted.
#[derive(Clone, Debug)]
enum Step {
    Config(Option<bool>),
    Pool(usize, Option<PoolConfiguration>),
}

fn step() -> impl Strategy<Value = Step> {
    let algorithm = prop::option::of(prop::sample::select(Algorithm::ALL.to_vec()));
    let of_pool = (algorithm, prop::option::of(any::<bool>())).prop_map(|(algorithm, memory)| {
        PoolConfiguration {
            algorithm,
            memory_oversubscription_enabled: memory,
        }
    });
    prop_oneof![
        prop::option::of(any::<bool>()).prop_map(Step::Config),
        (0..NAMES.len(), prop::option::of(of_pool)).prop_map(|(name, pool)| Step::Pool(name, pool)),
    ]
}

proptest! {
    #[test]
    fn the_settings_in_force_are_the_stored_ones_after_any_history(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut state = State::default();
        for (position, step) in steps.iter().enumerate() {
            let revision = position as u64 + 1;
            let change = match step {
                Step::Config(Some(pause_eval_broker)) => {
                    let config = SchedulerConfiguration {
                        pause_eval_broker: *pause_eval_broker,
                        ..SchedulerConfiguration::default()
                    };
                    put_config(&config, revision, revision)
                }
                Step::Config(None) => Change::Delete { key: Key::SchedulerConfig },
                Step::Pool(name, Some(of_pool)) => put_pool(NAMES[*name], *of_pool, revision),
                Step::Pool(name, None) => Change::Delete {
                    key: Key::NodePool(NAMES[*name].to_owned()),
                },
            };
            state.apply(revision, [change]);
            let snapshot = state.snapshot();
            let mut expected = snapshot
                .stored_scheduler_config()
                .map(|row| row.value.clone())
                .unwrap_or_default();
            for pool in snapshot.node_pools() {
                let of_pool = pool.value.scheduler_config;
                if of_pool != PoolConfiguration::default() {
                    expected.pools.insert(pool.value.name.clone(), of_pool);
                }
            }
            prop_assert_eq!(snapshot.scheduler_config(), &expected);
        }
    }
}
