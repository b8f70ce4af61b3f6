//! Every script in `scripts/`, as a test of its own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::script::play;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scripts")
}

fn check(name: &str) {
    let path = folder().join(name).with_extension("txt");
    let written = fs::read_to_string(&path).unwrap();
    let played = play(&written);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &played).unwrap();
        return;
    }
    assert!(played == written, "{name} now plays as:\n{played}");
}

macro_rules! scripts {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_script_is_a_test() {
            let tests = [$(stringify!($name)),*];
            for entry in fs::read_dir(folder()).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert!(tests.contains(&name), "{name} is not listed in goldens.rs");
            }
        }
    };
}

scripts! {
    scenario_005_no_nodes,
    scenario_006_still_no_room,
    scenario_007_room_for_one_of_three,
    scenario_011_count_up_from_nothing,
    scenario_012_the_missing_are_placed,
    scenario_013_the_excess_is_stopped,
    scenario_014_scale_down_in_place,
    scenario_015_scale_to_zero,
    scenario_016_destructive_update_without_strategy,
    scenario_017_destructive_update_and_growth,
    scenario_018_destructive_update_and_shrinking,
    scenario_019_rolling_update_begins,
    scenario_020_rolling_update_goes_on_with_health,
    scenario_021_missing_ones_count_against_the_limit,
    scenario_024_stopping_cancels_the_deployment,
    scenario_025_a_purged_job_is_stopped,
    scenario_026_a_group_is_removed,
    scenario_027_nothing_changed,
    scenario_028_an_update_in_place_keeps_the_share,
    scenario_029_a_constraint_that_its_node_fails,
    scenario_030_another_pool,
    scenario_031_batch_runs_again_for_a_new_version,
    scenario_032_finished_batch_work_is_left_alone,
    scenario_033_batch_purged_and_registered_again,
    scenario_034_lost_allocations_are_replaced,
    scenario_045_a_failure_is_rescheduled_later,
    scenario_048_failures_are_batched,
    scenario_049_out_of_attempts,
    scenario_050_a_service_that_ends_is_missing,
    scenario_055_rescheduling_without_room,
    scenario_056_the_deployment_decides_about_its_failures,
    scenario_057_a_failed_deployment_keeps_its_failures,
    scenario_058_forced_rescheduling,
    scenario_072_the_deployment_succeeds,
    scenario_109_a_stop_makes_room_for_its_property,
    scenario_116_a_static_port_is_given_out_once,
    scenario_117_the_last_dynamic_port_is_found,
    scenario_124_affinities,
    scenario_125_a_spread_with_a_share_left_over,
    scenario_126_two_spreads,
    scenario_127_an_even_spread,
    scenario_128_what_no_target_names,
    scenario_129_a_share_of_nothing,
    scenario_131_every_node_is_scored,
    scenario_133_a_pool_with_its_own_algorithm,
    scenario_150_an_affinity_counts_even_where_it_says_nothing,
    scenario_151_sticky_data_and_where_it_can_stay,
    scenario_154_finished_batch_work_beyond_the_count,
    scenario_155_failed_ones_are_stopped_first,
    scenario_156_a_failed_one_too_many,
    canaries_are_refused,
    distinct_hosts_and_properties,
    draining_and_down_nodes,
    failed_and_paused_deployments,
    groups_with_preferences,
    ports_are_handed_out_once,
    two_groups,
}
