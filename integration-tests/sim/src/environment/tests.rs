//! Network and clocks, with one machine that echoes bytes and one that sends them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use connections::Network as _;
use futures::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::network;
use super::simulated::Simulated;
use super::{Environment, HostId, Power, Software};

const PORT: u16 = 80;

/// Observations of the sending machine: times of sending and receiving on its own clock, or an error.
type Seen = Arc<Mutex<Vec<Result<(u128, u128), std::io::ErrorKind>>>>;

fn answering() -> Software {
    Box::new(|| {
        Box::pin(async {
            let address = SocketAddr::from(([0, 0, 0, 0], PORT));
            let mut listener = connections::bind(address)
                .await
                .map_err(|error| error.to_string())?;
            while let Some(Ok(mut stream)) = listener.next().await {
                tokio::spawn(async move {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).await.is_ok() {
                        if stream.write_all(&byte).await.is_err() {
                            break;
                        }
                    }
                });
            }
            Ok(())
        })
    })
}

/// Sends every 100 ms, on one connection while it lasts.
fn asking(to: SocketAddr, seen: Seen) -> Software {
    Box::new(move || {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let began = Instant::now();
            loop {
                let asked = async {
                    let mut stream = Simulated.connect(&to.to_string()).await?;
                    loop {
                        let sent = began.elapsed().as_millis();
                        stream.write_all(&[1]).await?;
                        stream.read_u8().await?;
                        let heard = began.elapsed().as_millis();
                        seen.lock().unwrap().push(Ok((sent, heard)));
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                };
                let ended: std::io::Result<()> = asked.await;
                if let Err(error) = ended {
                    seen.lock().unwrap().push(Err(error.kind()));
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    })
}

fn pair() -> (Environment, HostId, HostId, Seen) {
    let mut environment = Environment::new(1);
    let answering = environment.add("answers", answering());
    let seen = Seen::default();
    let to = SocketAddr::new(environment.address(answering), PORT);
    let asks = environment.add("asks", asking(to, Arc::clone(&seen)));
    (environment, answering, asks, seen)
}

/// Returns the observations since the last call.
fn news(seen: &Seen) -> Vec<Result<(u128, u128), std::io::ErrorKind>> {
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn an_answer_takes_at_least_two_steps_and_at_most_a_few() {
    let (mut environment, _, _, seen) = pair();
    environment.run(2_000).unwrap();
    let news = news(&seen);
    assert!(news.len() >= 15, "{news:?}");
    for (sent, heard) in news.into_iter().map(Result::unwrap) {
        assert!((2..=22).contains(&(heard - sent)), "{sent} {heard}");
    }
}

#[test]
fn messages_held_back_by_a_cut_arrive_after_its_repair() {
    let (mut environment, answers, asks, seen) = pair();
    environment.run(1_000).unwrap();
    network::cut(answers, asks);
    news(&seen);
    environment.run(3_000).unwrap();
    let meanwhile = news(&seen);
    assert!(meanwhile.len() <= 1, "{meanwhile:?}");
    network::repair(answers, asks);
    environment.run(500).unwrap();
    let (sent, heard) = news(&seen)[0].unwrap();
    assert!(heard - sent >= 2_900, "{sent} {heard}");
}

#[test]
fn a_killed_process_closes_its_connections_and_a_machine_without_power_does_not() {
    let (mut environment, answers, _, seen) = pair();
    environment.run(1_000).unwrap();
    news(&seen);
    environment.crash(answers, Power::On);
    environment.run(1_000).unwrap();
    let seen_last = news(&seen);
    assert_eq!(
        seen_last.last(),
        Some(&Err(std::io::ErrorKind::ConnectionRefused))
    );
    environment.restart(answers);
    environment.run(1_000).unwrap();
    assert!(news(&seen).last().unwrap().is_ok());

    environment.crash(answers, Power::Off);
    environment.run(5_000).unwrap();
    let seen_last = news(&seen);
    assert!(
        seen_last.iter().all(Result::is_ok) && seen_last.len() <= 1,
        "{seen_last:?}"
    );
    // The sender waits for an answer that never comes; giving up is its own decision.
    environment.restart(answers);
    environment.run(1_000).unwrap();
    assert_eq!(news(&seen), []);
}

#[test]
fn a_paused_machine_sees_its_clock_jump() {
    let (mut environment, _, asks, seen) = pair();
    environment.run(1_000).unwrap();
    news(&seen);
    environment.pause(asks, 2_000);
    environment.run(1_900).unwrap();
    let meanwhile = news(&seen);
    assert!(meanwhile.len() <= 1, "{meanwhile:?}");
    environment.run(500).unwrap();
    let (_, heard) = news(&seen).last().unwrap().unwrap();
    assert!((3_000..=3_400).contains(&heard), "{heard}");
}

#[test]
fn a_seed_repeats() {
    let play = || {
        let (mut environment, answers, asks, seen) = pair();
        network::impair(asks, answers, 50, 100);
        environment.run(5_000).unwrap();
        news(&seen)
    };
    assert_eq!(play(), play());
}

#[test]
fn environments_of_several_threads_start_at_once() {
    let together = Arc::new(std::sync::Barrier::new(16));
    let threads = std::array::from_fn::<_, 16, _>(|_| {
        let together = Arc::clone(&together);
        std::thread::spawn(move || {
            together.wait();
            Environment::new(1);
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}
