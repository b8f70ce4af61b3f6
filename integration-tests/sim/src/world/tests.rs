//! Two machines: one answers each byte with its uptime in milliseconds, the other asks.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use net::Network as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::network::{self, Simulated};
use super::{HostId, Power, Software, World};

const PORT: u16 = 80;

/// What the asking machine saw: when it asked and when it heard, by its own clock, or what went
/// wrong.
type Seen = Arc<Mutex<Vec<Result<(u128, u128), std::io::ErrorKind>>>>;

fn answering() -> Software {
    Box::new(|| {
        Box::pin(async {
            let address = SocketAddr::from(([0, 0, 0, 0], PORT));
            let mut listener = net::bind(address)
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

/// Asks every 100 ms, on one connection as long as it holds.
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

fn pair() -> (World, HostId, HostId, Seen) {
    let mut world = World::new(1);
    let answering = world.add("answers", answering());
    let seen = Seen::default();
    let to = SocketAddr::new(world.address(answering), PORT);
    let asks = world.add("asks", asking(to, Arc::clone(&seen)));
    (world, answering, asks, seen)
}

/// What was seen since the last call.
fn news(seen: &Seen) -> Vec<Result<(u128, u128), std::io::ErrorKind>> {
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn an_answer_takes_two_moments_at_least_and_few_at_most() {
    let (mut world, _, _, seen) = pair();
    world.run(2_000).unwrap();
    let news = news(&seen);
    assert!(news.len() >= 15, "{news:?}");
    for (sent, heard) in news.into_iter().map(Result::unwrap) {
        assert!((2..=22).contains(&(heard - sent)), "{sent} {heard}");
    }
}

#[test]
fn what_a_cut_line_holds_arrives_once_it_is_mended() {
    let (mut world, answers, asks, seen) = pair();
    world.run(1_000).unwrap();
    network::cut(answers, asks);
    news(&seen);
    world.run(3_000).unwrap();
    let meanwhile = news(&seen);
    assert!(meanwhile.len() <= 1, "{meanwhile:?}");
    network::mend(answers, asks);
    world.run(500).unwrap();
    let (sent, heard) = news(&seen)[0].unwrap();
    assert!(heard - sent >= 2_900, "{sent} {heard}");
}

#[test]
fn a_killed_process_closes_its_connections_and_a_machine_without_power_does_not() {
    let (mut world, answers, _, seen) = pair();
    world.run(1_000).unwrap();
    news(&seen);
    world.crash(answers, Power::On);
    world.run(1_000).unwrap();
    let told = news(&seen);
    assert_eq!(
        told.last(),
        Some(&Err(std::io::ErrorKind::ConnectionRefused))
    );
    world.restart(answers);
    world.run(1_000).unwrap();
    assert!(news(&seen).last().unwrap().is_ok());

    world.crash(answers, Power::Off);
    world.run(5_000).unwrap();
    let told = news(&seen);
    assert!(
        told.iter().all(Result::is_ok) && told.len() <= 1,
        "{told:?}"
    );
    // The one that asks waits for an answer that never comes: it is up to it to give up.
    world.restart(answers);
    world.run(1_000).unwrap();
    assert_eq!(news(&seen), []);
}

#[test]
fn a_paused_machine_sees_its_clock_jump() {
    let (mut world, _, asks, seen) = pair();
    world.run(1_000).unwrap();
    news(&seen);
    world.pause(asks, 2_000);
    world.run(1_900).unwrap();
    let meanwhile = news(&seen);
    assert!(meanwhile.len() <= 1, "{meanwhile:?}");
    world.run(500).unwrap();
    let (_, heard) = news(&seen).last().unwrap().unwrap();
    assert!((3_000..=3_400).contains(&heard), "{heard}");
}

#[test]
fn a_seed_repeats() {
    let play = || {
        let (mut world, answers, asks, seen) = pair();
        network::impair(asks, answers, 50, 100);
        world.run(5_000).unwrap();
        news(&seen)
    };
    assert_eq!(play(), play());
}

#[test]
fn worlds_of_several_threads_begin_at_once() {
    let together = Arc::new(std::sync::Barrier::new(16));
    let threads = std::array::from_fn::<_, 16, _>(|_| {
        let together = Arc::clone(&together);
        std::thread::spawn(move || {
            together.wait();
            World::new(1);
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}
