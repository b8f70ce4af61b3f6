//! Kill -9 of every service in turn, at random instants, while jobs are registered and stopped.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::load::{SLEEPER, User, check_promises, promised_tasks};
use integration_tests::suite::{Options, SERVICES, Suite};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep};

/// The number of kills: each process six times, in three minutes; `KAFILA_KILL_ROUNDS` asks for
/// more.
const ROUNDS: u32 = 50;

/// Everything must be as promised so long after the last kill: an election (3 s), the nack timeout
/// of a killed worker's evaluations, and room for a busy machine.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(150);

/// Slow enough that jobs get to run before they are changed, fast enough that something is always
/// under way.
const BETWEEN_ACTIONS: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn killing_each_service_in_turn_breaks_no_promise() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let seed = setting("KAFILA_SEED").unwrap_or_else(rand::random);
    let rounds = setting("KAFILA_KILL_ROUNDS").unwrap_or(u64::from(ROUNDS));
    println!("seed {seed}, {rounds} rounds (KAFILA_SEED, KAFILA_KILL_ROUNDS)");
    let mut suite = Suite::start(Options {
        nodes: 2,
        ..Options::default()
    })
    .await?;
    let result = play(&mut suite, seed, rounds).await;
    result.with_context(|| format!("seed {seed}\n{}", suite.log_tails()))?;
    suite.stop().await
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

async fn play(suite: &mut Suite, seed: u64, rounds: u64) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut user = User::new(suite.api()?, "job", rng.random());
    let victims: Vec<String> = suite.names();
    for round in 0..rounds {
        let victim = &victims[usize::try_from(round)? % victims.len()];
        let wait = Duration::from_millis(rng.random_range(0..400));
        let away = Duration::from_millis(rng.random_range(0..600));
        // Now too short for an election (3 s), now long enough for work to get done.
        let calm = Duration::from_millis(rng.random_range(0..6_000));
        let acting = async {
            let until = Instant::now() + wait + away + calm;
            while Instant::now() < until {
                user.act().await?;
                sleep(BETWEEN_ACTIONS).await;
            }
            anyhow::Ok(())
        };
        let killing = async {
            sleep(wait).await;
            suite.kill(victim);
            sleep(away).await;
            suite.start_process(victim)
        };
        let (acted, killed) = tokio::join!(acting, killing);
        acted.with_context(|| format!("round {round}, {victim} killed"))?;
        killed?;
    }
    println!("{} actions, {} jobs", user.actions, user.promises.len());

    let api = suite.api()?;
    eventually(SETTLE_TIMEOUT, || check_promises(&api, &user.promises)).await?;
    let promised = promised_tasks(&user.promises);
    ensure!(promised > 0, "nothing runs, so nothing was tested");
    eventually(Duration::from_secs(20), || async {
        let tasks = suite.task_processes();
        let tasks = tasks
            .iter()
            .filter(|(_, command)| command.starts_with(SLEEPER));
        let running = tasks.count();
        ensure!(running == promised, "{running} processes run of {promised}");
        Ok(())
    })
    .await?;
    user.stop_all().await?;
    eventually(SETTLE_TIMEOUT, || check_promises(&api, &user.promises)).await?;
    eventually(Duration::from_secs(20), || async {
        let left = suite.task_processes();
        ensure!(left.is_empty(), "processes left behind: {left:?}");
        Ok(())
    })
    .await?;

    let report = suite.check_history().await?;
    println!("{report}");
    ensure!(
        report.allocations as u64 >= 2 * rounds,
        "so few placements that little was tested: {report}"
    );
    ensure!(
        SERVICES.len() + 2 == victims.len(),
        "every service was a victim"
    );
    Ok(())
}
