//! Health of a process: its fingerprints, messages and output, and calls that find a silent one.

use std::collections::BTreeMap;
use std::convert::Infallible;

use backoff::Backoff;
use task_drivers::Fingerprint;
use tokio::time::sleep;
use tracing::debug;

use crate::calls::{bounded, of_status, within};
use crate::instance::Instance;
use crate::plugin::Plugin;
use crate::wire::base::PluginInfoRequest;
use crate::wire::base::base_plugin_client::BasePluginClient;
use crate::wire::drivers::fingerprint_response::HealthState;
use crate::wire::drivers::{FingerprintRequest, FingerprintResponse, TaskEventsRequest};
use crate::wire::go_plugin::grpc_stdio_client::GrpcStdioClient;
use crate::wire::structs::{Attribute, attribute};

/// Attributes of a driver, and the length of a name and of a value. Nodes of clusters are held in memory.
const ATTRIBUTES_MAX: usize = 128;
const NAME_MAX: usize = 128;
const VALUE_MAX: usize = 512;

/// Follows a process until it does not answer. Returns that as a reason.
pub(crate) async fn follow(plugin: &Plugin, instance: &Instance) -> String {
    tokio::select! {
        reason = ping(instance) => reason,
        never = fingerprints(plugin, instance) => match never {},
        never = messages(plugin, instance) => match never {},
        never = output(plugin, instance) => match never {},
    }
}

/// Asks again and again, and returns when there was no answer some times in a row.
async fn ping(instance: &Instance) -> String {
    let timing = instance.timing;
    let mut missed = 0;
    loop {
        sleep(timing.ping_interval).await;
        let mut base = BasePluginClient::new(instance.channel.clone());
        let asked = base.plugin_info(PluginInfoRequest {});
        match within("PluginInfo", timing.quick_limit, asked).await {
            Err(error) if error.is_unknown() => {
                missed += 1;
                if missed >= timing.pings_missed_max {
                    return format!("it does not answer: {error}");
                }
            }
            // An error is an answer.
            _ => missed = 0,
        }
    }
}

async fn fingerprints(plugin: &Plugin, instance: &Instance) -> Infallible {
    let mut backoff = Backoff::new(instance.timing.backoff.0, instance.timing.backoff.1);
    loop {
        let reason = match instance.driver().fingerprint(FingerprintRequest {}).await {
            Ok(stream) => {
                let mut stream = stream.into_inner();
                loop {
                    match stream.message().await {
                        Ok(Some(found)) => {
                            backoff.reset();
                            plugin.set_fingerprint(read(plugin.name, found));
                        }
                        Ok(None) => break "it ended its fingerprints".to_owned(),
                        Err(status) => break of_status(&status).to_string(),
                    }
                }
            }
            Err(status) => of_status(&status).to_string(),
        };
        plugin.set_unhealthy(&format!("there is no fingerprint: {reason}"));
        let pause = backoff.next(&mut rand::rng());
        sleep(pause).await;
    }
}

fn read(driver: &str, found: FingerprintResponse) -> Fingerprint {
    let (detected, healthy) = match found.health() {
        HealthState::Undetected => (false, false),
        HealthState::Unhealthy => (true, false),
        HealthState::Healthy => (true, true),
    };
    let description = match found.health_description.as_str() {
        "" if healthy => "Healthy".to_owned(),
        "" => "the plugin gives no reason".to_owned(),
        text => bounded(text),
    };
    let own = format!("driver.{driver}");
    let mut attributes = BTreeMap::new();
    if detected {
        attributes.insert(own.clone(), "1".to_owned());
    }
    let mut dropped = 0;
    for (name, value) in &found.attributes {
        let rest = name.strip_prefix(&own);
        let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let has_room = attributes.len() < ATTRIBUTES_MAX && name.len() <= NAME_MAX;
        match text(value).filter(|_| is_own && has_room) {
            Some(value) => drop(attributes.insert(name.clone(), value)),
            None => dropped += 1,
        }
    }
    if dropped > 0 {
        debug!(
            driver,
            dropped, "attributes of a plugin are not used: they have other names, or are too many"
        );
    }
    Fingerprint {
        detected,
        healthy,
        description,
        attributes,
    }
}

fn text(attribute: &Attribute) -> Option<String> {
    let mut text = match attribute.value.as_ref()? {
        attribute::Value::FloatVal(number) => number.to_string(),
        attribute::Value::IntVal(number) => number.to_string(),
        attribute::Value::StringVal(text) => text.clone(),
        attribute::Value::BoolVal(flag) => flag.to_string(),
    };
    text.push_str(&attribute.unit);
    Some(text.chars().take(VALUE_MAX).collect())
}

/// Passes messages about tasks on. Not every plugin has some.
async fn messages(plugin: &Plugin, instance: &Instance) -> Infallible {
    let mut backoff = Backoff::new(instance.timing.backoff.0, instance.timing.backoff.1);
    loop {
        if let Ok(stream) = instance.driver().task_events(TaskEventsRequest {}).await {
            let mut stream = stream.into_inner();
            while let Ok(Some(event)) = stream.message().await {
                backoff.reset();
                plugin.send_message(&event.task_id, &event.message);
            }
        }
        let pause = backoff.next(&mut rand::rng());
        sleep(pause).await;
    }
}

/// Reads what a plugin prints through go-plugin's library, which otherwise makes it wait.
async fn output(plugin: &Plugin, instance: &Instance) -> Infallible {
    let mut client = GrpcStdioClient::new(instance.channel.clone());
    if let Ok(stream) = client.stream_stdio(()).await {
        let mut stream = stream.into_inner();
        while let Ok(Some(part)) = stream.message().await {
            let text = String::from_utf8_lossy(&part.data);
            debug!(plugin = plugin.program.file, "{}", bounded(text.trim_end()));
        }
    } else {
        debug!(
            plugin = plugin.program.file,
            "the plugin has no stream of its output"
        );
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(
        health: HealthState,
        attributes: &[(&str, attribute::Value)],
    ) -> FingerprintResponse {
        let attributes = attributes.iter().map(|(name, value)| {
            let value = Attribute {
                value: Some(value.clone()),
                unit: String::new(),
            };
            ((*name).to_owned(), value)
        });
        FingerprintResponse {
            attributes: attributes.collect(),
            health: health.into(),
            health_description: String::new(),
        }
    }

    #[test]
    fn attributes_are_bounded_and_below_the_driver_s_name() {
        let text = |text: &str| attribute::Value::StringVal(text.to_owned());
        let long = "v".repeat(9_000);
        let found = read(
            "x",
            response(
                HealthState::Healthy,
                &[
                    ("driver.x.version", text("1.2")),
                    ("driver.x.flag", attribute::Value::BoolVal(true)),
                    ("driver.x.long", text(&long)),
                    ("driver.xy", text("other")),
                    ("kernel.name", text("plan9")),
                ],
            ),
        );
        let names: Vec<&str> = found.attributes.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "driver.x",
                "driver.x.flag",
                "driver.x.long",
                "driver.x.version"
            ]
        );
        assert_eq!(found.attributes["driver.x.long"].len(), VALUE_MAX);
        assert!(found.detected && found.healthy);
        let many: Vec<String> = (0..1_000).map(|it| format!("driver.x.{it}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), text("1"))).collect();
        let found = read("x", response(HealthState::Unhealthy, &many));
        assert_eq!(found.attributes.len(), ATTRIBUTES_MAX);
        assert_eq!((found.detected, found.healthy), (true, false));
        let found = read("x", response(HealthState::Undetected, &[]));
        assert!(found.attributes.is_empty() && !found.detected);
    }
}
