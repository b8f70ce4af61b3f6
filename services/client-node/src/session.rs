//! Session with the gateways: registration, heartbeats, the watch of allocations, and reports.
//!
//! Five loops run side by side, so that none waits for another's call: [`register`] (again whenever a
//! gateway does not know the node, or the machine has changed), [`heartbeat`], [`watch`], and the
//! loop of [`reports`]. All but the registration wait for the first registration. The crate
//! `gateway_calls` calls the gateways. In reading order: [`shared`] is the loops' state; [`tokens`]
//! gets the identity tokens of tasks, [`look_ups`] the data of their templates, [`services`] the instances
//! of the services that the node looks up, [`volumes`] the volumes to mount.

mod heartbeat;
pub(crate) mod look_ups;
mod register;
mod reports;
mod services;
pub(crate) mod shared;
pub(crate) mod tokens;
pub(crate) mod volumes;
mod watch;

use service_kit::CancellationToken;

use self::shared::Session;

/// Runs until `ended`.
pub(crate) async fn run(session: &Session, ended: CancellationToken) {
    tokio::join!(
        register::run(session, ended.clone()),
        heartbeat::run(session, ended.clone()),
        watch::run(session, ended.clone()),
        reports::run(&session.context, &session.gateways, ended.clone()),
        services::run(session, ended.clone()),
    );
}
