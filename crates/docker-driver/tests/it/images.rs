//! Removal of pulled images that no task uses, with a registry on this machine.

use std::fs;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, CreateImageOptionsBuilder, RemoveContainerOptions,
    TagImageOptionsBuilder,
};
use futures::StreamExt;
use serde_json::json;
use task_drivers::{Driver, Recovery, TaskConfig};

use crate::bench::{self, Bench, IMAGE};
use crate::registry::Registry;

const GRACE: Duration = Duration::from_millis(100);

/// Makes a bench whose images are removed at the first look after their last use, and an image for it.
async fn bench(podman: bool) -> Option<(Bench, Registry, String)> {
    let registry = Registry::start();
    let mut bench = match podman {
        true => Bench::podman_with(Some(&registry.address)).await?,
        false => Bench::new().await?,
    };
    bench.settings.config.image_delay = Duration::ZERO;
    bench.restart_agent();
    let name = registry.put("app", "1", &bench::archive());
    bench.images.push(name.clone());
    Some((bench, registry, name))
}

fn task(bench: &Bench, attempt: u32, image: &str) -> TaskConfig {
    let mut task = bench.shell(attempt, "while :; do sleep 0.1; done");
    task.config.insert("image".to_owned(), json!(image));
    task
}

async fn has(bench: &Bench, image: &str) -> bool {
    bench.client.inspect_image(image).await.is_ok()
}

async fn run_and_forget(bench: &Bench, attempt: u32, image: &str) {
    bench
        .driver
        .start(task(bench, attempt, image))
        .await
        .unwrap();
    bench.stop(attempt, "SIGKILL", GRACE).await;
    bench.driver.forget(&bench.id(attempt)).await.unwrap();
}

async fn an_image_is_removed(podman: bool) {
    let Some((mut bench, _registry, image)) = bench(podman).await else {
        return;
    };
    bench.driver.start(task(&bench, 1, &image)).await.unwrap();
    bench.driver.refresh().await;
    assert!(has(&bench, &image).await, "it runs");
    bench.restart_agent();
    assert_eq!(bench.recover(1).await, Recovery::Running { note: None });
    bench.driver.refresh().await;
    assert!(has(&bench, &image).await, "it runs");
    bench.stop(1, "SIGKILL", GRACE).await;
    bench.driver.refresh().await;
    assert!(has(&bench, &image).await, "its container is kept");
    bench.driver.forget(&bench.id(1)).await.unwrap();
    // The next run of the agent finds it.
    bench.restart_agent();
    bench.driver.refresh().await;
    assert!(!has(&bench, &image).await);
    // It is pulled again.
    run_and_forget(&bench, 2, &image).await;
    bench.driver.refresh().await;
    assert!(!has(&bench, &image).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pulled_image_is_removed_after_its_last_container() {
    an_image_is_removed(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_removes_a_pulled_image_after_its_last_container() {
    an_image_is_removed(true).await;
}

async fn others_are_kept(podman: bool) {
    let Some((mut bench, registry, image)) = bench(podman).await else {
        return;
    };
    // An image that was made on the node.
    let own = format!("localhost/kafila-kept-{:x}", rand::random::<u64>());
    let options = TagImageOptionsBuilder::default()
        .repo(&own)
        .tag("1")
        .build();
    bench.client.tag_image(IMAGE, Some(options)).await.unwrap();
    let own = format!("{own}:1");
    bench.images.push(own.clone());
    run_and_forget(&bench, 1, &own).await;
    // An image that an operator pulled.
    let pulled = registry.put("tools", "2", &bench::archive());
    bench.images.push(pulled.clone());
    pull(&bench, &pulled).await;
    let mut again = task(&bench, 2, &pulled);
    again.config.insert("force_pull".to_owned(), json!(true));
    bench.driver.start(again).await.unwrap();
    bench.stop(2, "SIGKILL", GRACE).await;
    bench.driver.forget(&bench.id(2)).await.unwrap();
    // The agent's, with another name of an operator's.
    run_and_forget(&bench, 3, &image).await;
    let named = format!("localhost/kafila-named-{:x}", rand::random::<u64>());
    let options = TagImageOptionsBuilder::default()
        .repo(&named)
        .tag("1")
        .build();
    bench.client.tag_image(&image, Some(options)).await.unwrap();
    let named = format!("{named}:1");
    bench.images.push(named.clone());

    bench.driver.refresh().await;
    assert!(has(&bench, &own).await);
    assert!(has(&bench, &pulled).await);
    assert!(has(&bench, &named).await);
    assert!(!has(&bench, &image).await, "the name goes");
}

async fn pull(bench: &Bench, image: &str) {
    let (repository, tag) = image.rsplit_once(':').unwrap();
    let options = CreateImageOptionsBuilder::default()
        .from_image(repository)
        .tag(tag)
        .build();
    let mut steps = Box::pin(bench.client.create_image(Some(options), None, None));
    while let Some(step) = steps.next().await {
        step.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_the_agent_did_not_pull_are_kept() {
    others_are_kept(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_keeps_images_that_the_agent_did_not_pull() {
    others_are_kept(true).await;
}

async fn a_container_of_another_program_keeps_its_image(podman: bool) {
    let Some((bench, _registry, image)) = bench(podman).await else {
        return;
    };
    run_and_forget(&bench, 1, &image).await;
    let body = ContainerCreateBody {
        image: Some(image.clone()),
        cmd: Some(vec!["/bin/sh".to_owned()]),
        ..ContainerCreateBody::default()
    };
    let made = bench
        .client
        .create_container(None::<CreateContainerOptions>, body);
    let made = made.await.unwrap().id;
    bench.driver.refresh().await;
    assert!(has(&bench, &image).await);
    let removed = bench
        .client
        .remove_container(&made, None::<RemoveContainerOptions>);
    removed.await.unwrap();
    bench.driver.refresh().await;
    assert!(!has(&bench, &image).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_another_programs_container_is_kept() {
    a_container_of_another_program_keeps_its_image(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_keeps_an_image_of_another_programs_container() {
    a_container_of_another_program_keeps_its_image(true).await;
}

/// The agent died after the engine had pulled the image, and before it wrote that down.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_whose_agent_died_is_settled_by_the_next() {
    let Some((mut bench, _registry, image)) = bench(false).await else {
        return;
    };
    pull(&bench, &image).await;
    fs::create_dir_all(&bench.settings.state_dir).unwrap();
    let text = json!({"open_pulls": {&image: null}}).to_string();
    fs::write(bench.settings.state_dir.join("images.json"), text).unwrap();
    bench.restart_agent();
    bench.driver.refresh().await;
    assert!(!has(&bench, &image).await);
}

/// The tag moves to another image at the second start.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_tag_has_moved_is_removed() {
    let Some((mut bench, registry, _)) = bench(false).await else {
        return;
    };
    let image = registry.put("moving", "latest", &bench::archive());
    bench.images.push(image.clone());
    let id = async |bench: &Bench| {
        bench
            .client
            .inspect_image(&image)
            .await
            .unwrap()
            .id
            .unwrap()
    };
    bench.driver.start(task(&bench, 1, &image)).await.unwrap();
    let first = id(&bench).await;
    registry.put("moving", "latest", &bench::archive());
    bench.stop(1, "SIGKILL", GRACE).await;
    bench.driver.start(task(&bench, 2, &image)).await.unwrap();
    let second = id(&bench).await;
    assert_ne!(first, second);
    bench.driver.refresh().await;
    assert!(!has(&bench, &first).await, "its container was replaced");
    assert!(has(&bench, &second).await);
}

/// Looks at all times, each of which removes the image if it can, and starts in between.
#[tokio::test(flavor = "multi_thread")]
async fn starts_and_removals_at_the_same_time_lose_no_start() {
    let Some((bench, _registry, image)) = bench(false).await else {
        return;
    };
    let starts = async {
        for attempt in 1..=8 {
            run_and_forget(&bench, attempt, &image).await;
        }
    };
    let looks = async {
        loop {
            bench.driver.refresh().await;
        }
    };
    tokio::select! {
        () = starts => {}
        () = looks => {}
    }
    bench.driver.refresh().await;
    assert!(!has(&bench, &image).await);
}
