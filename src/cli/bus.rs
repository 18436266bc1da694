//! The messages between the engines of a database, as the settings have them.

use std::sync::Arc;

use ringer_base::tls::Roots;

use super::count;
use crate::bus::{AGAIN, Channel, NatsBus, Terms};
use crate::config::Config;
use crate::service::{Running, Service};
use crate::tasks::Tasks;

/// Connects the engine to the others of its database, where the settings name a bus; what it starts ends with the
/// tasks that are returned. A bus that cannot be reached now is logged, and tried again.
///
/// # Errors
/// The settings cannot be used, or the database does not give the key.
pub(super) async fn connect(
    config: &Config,
    service: &Service,
    roots: &Roots,
    running: &Running,
) -> Result<Tasks, String> {
    let (tasks, store) = (Tasks::new(), service.store());
    match (store.is_shared(), config.bus.is_set()) {
        (true, true) => {}
        (true, false) => {
            warn_of_others(service).await?;
            return Ok(tasks);
        }
        (false, true) => {
            tracing::warn!("bus.url is not used: the database is a file, which one engine works on");
            return Ok(tasks);
        }
        (false, false) => return Ok(tasks),
    }
    let fault = |error: crate::error::Error| error.to_string();
    let key = store.bus_key().await.map_err(fault)?;
    let name = store.engine().await.map_err(fault)?.to_owned();
    let bus = NatsBus::connect(&config.bus, roots, &service.settings().engine, &tasks).await?;
    let (prefix, clock) = (config.bus.prefix.clone(), service.clock().clone());
    let channel = Channel::new(Arc::new(bus), Terms { prefix, name, key, again: AGAIN, clock });
    running.talk_by(channel, store, &tasks);
    Ok(tasks)
}

/// Says that other engines work on the database, and that there is no way to them.
async fn warn_of_others(service: &Service) -> Result<(), String> {
    let mut db = service.store().org("").read().await.map_err(|error| error.to_string())?;
    let others = db.engines().await.map_err(|error| error.to_string())?;
    let engines = 1 + others.iter().filter(|engine| engine.is_alive).count();
    if engines > 1 {
        tracing::warn!(
            "{}, no [bus]: what runs on another one cannot be watched or hung up here",
            count(engines, "engine")
        );
    }
    Ok(())
}
