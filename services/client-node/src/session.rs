//! Session with the gateways: registration, heartbeats, the watch of allocations, and reports.
//!
//! Five loops run side by side, so that none waits for another's call: [`register`] (again whenever a
//! gateway does not know the node, or the machine has changed), [`heartbeat`], [`watch`], and the
//! loop of [`reports`]. All but the registration wait for the first registration. The crate
//! `gateway_calls` calls the gateways; the subscription to services is in `gateway_sources`. [`shared`] is
//! the loops' state.

mod heartbeat;
mod register;
mod reports;
pub(crate) mod shared;
mod watch;

use gateway_sources::Subscription;
use service_kit::CancellationToken;

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
