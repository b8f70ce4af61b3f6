//! Session with the gateways: registration, heartbeats, the watch of allocations, and reports.
//!
//! Five loops run side by side, so that none waits for another's call: [`register`] (again whenever a
//! gateway does not know the node, or the machine has changed), [`heartbeat`], [`watch`], and the
//! loop of [`reports`]. All but the registration wait for the first registration. The crate
//! `gateway_calls` calls the gateways; the subscription to services is in `gateway_sources`, the connections that
//! the node opens are in `dial_out`. [`shared`] is the loops' state.

mod heartbeat;
mod register;
mod reports;
pub(crate) mod shared;
mod watch;

use dial_out::DialOut;
use gateway_sources::Subscription;
use identity::Peer;
use service_kit::{CancellationToken, Opened};
use tokio::sync::mpsc;

use self::shared::Session;

/// Runs until `ended`.
pub(crate) async fn run(session: &Session, ended: CancellationToken) {
    tokio::join!(
        register::run(session, ended.clone()),
        heartbeat::run(session, ended.clone()),
        watch::run(session, ended.clone()),
        reports::run(&session.context, &session.gateways, ended.clone()),
        look_services_up(session, ended.clone()),
    );
}

/// Opens connections for gateways until `drain`; `server` serves on them, and gateways are `peer` to it.
pub(crate) async fn dial_out(
    session: &Session,
    (server, peer): (mpsc::Sender<Opened>, Peer),
    drain: CancellationToken,
) {
    if session.registered(&drain).await.is_none() {
        return;
    }
    let context = &session.context;
    let dialing = DialOut {
        gateways: &session.gateways,
        identity: &context.identity,
        server,
        peer,
        metrics: &context.metrics.dial_out,
    };
    dialing.run(context.tasks.ids.rng(), drain).await;
}

/// Keeps the services that the node looks up until `ended`.
async fn look_services_up(session: &Session, ended: CancellationToken) {
    if session.registered(&ended).await.is_none() {
        return;
    }
    let context = &session.context;
    let subscription = Subscription {
        gateways: &session.gateways,
        identity: &context.identity,
        services: &context.services,
        unknown: &session.unknown,
    };
    subscription.run(context.tasks.ids.rng(), ended).await;
}
