//! An engine without calls, which is asked whether it takes the resources of a run: `--dry-run` refuses what the run
//! refuses.

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::plan::Plan;
use super::{Args, Stop, settings, tempfolder};
use crate::api::{self, Setup};
use crate::cli::{dialects, open_store, service_settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::service::{NoLiveCalls, Service, Settings};
use crate::tasks::Tasks;

/// Makes the resources of a run at an engine of its own that makes no calls, in a folder that is gone afterwards.
///
/// # Errors
/// The engine of the run would refuse a resource, or the trial cannot be set up.
pub(crate) async fn make(args: &Args, plan: &Plan) -> Result<(), Stop> {
    let mut config = match args.server {
        // The settings of a server are its own.
        Some(_) => Config::default(),
        None => settings(args)?,
    };
    let folder = tempfolder()?;
    config.data = folder.join("data");
    config.database.url = None;
    (config.security.allow_private_agents, config.security.allow_private_targets) = (true, true);
    let made = at_engine(&config, plan).await;
    let _ = std::fs::remove_dir_all(&folder);
    made
}

async fn at_engine(config: &Config, plan: &Plan) -> Result<(), Stop> {
    let describe = |why: &dyn std::fmt::Display| Stop::bad(why.to_string());
    std::fs::create_dir_all(&config.data).map_err(|error| describe(&error))?;
    let store = open_store(config).await.map_err(|error| describe(&error))?;
    let dialects = dialects(config).map_err(|why| describe(&why))?.into();
    let settings = Settings { dialects, ..service_settings(config) };
    let service = Service::new(store, Clock::Real, settings, std::sync::Arc::new(NoLiveCalls));
    service.library().bootstrap("run", &plan.key).await.map_err(|error| describe(&error))?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| describe(&error))?;
    let address = listener.local_addr().map_err(|error| describe(&error))?;
    let client = Client::new(&format!("http://{address}"), &plan.key).map_err(Stop::bad)?;
    let (stop, tasks) = (CancellationToken::new(), Tasks::new());
    let server = api::serve(listener, service.clone(), Setup::default(), stop.clone().cancelled_owned());
    tasks.spawn("trial", async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the API server stopped");
        }
    });
    let made = plan.make(&client, &[], None, true).await;
    stop.cancel();
    tasks.stop().await;
    service.store().close().await;
    made.map(drop)
}
