//! `ringer storage`: checks the object store, and moves files from one store to another.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use super::out::Out;
use super::progress::Progress;
use super::{Place, count, local, open_store, service_settings};
use crate::clock::Clock;
use crate::config::{Config, Storage};
use crate::error::{Error, Result};
use crate::service::{NoLiveCalls, Service};
use crate::store::artifacts::{Bucket, End, Move, Moved};

/// Word for the data folder.
const LOCAL: &str = "local";

/// Flags of `ringer storage`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer storage check                                is the store of the settings there, with these credentials?
  ringer storage move local s3://calls/ringer         the files of the data folder to a bucket
  ringer storage move s3://calls/ringer az://calls    from one store to another; the files of the first stay
  ringer storage move s3://calls/ringer local         back to the data folder

A move that was broken off goes on where it was. Move, then change storage.url and start the engine anew, then move once
more for what came meanwhile.")]
pub struct Args {
    /// Location of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Action that is carried out.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions of `ringer storage`.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Action {
    /// Check that the store answers, with the credentials of the settings
    Check,
    /// Copy all files of the database from one store to another
    Move {
        /// Store that has the files: local, or an address like s3://BUCKET/PREFIX
        from: String,
        /// Store that gets them
        to: String,
        /// Settings file whose [storage] is that of the other store. Without it a store takes what [storage] says where
        /// it is of the same kind, else its credentials from the environment
        #[arg(long, value_name = "FILE")]
        with: Option<PathBuf>,
    },
}

/// Carries out the action.
pub async fn run(args: Args) -> ExitCode {
    let config = match args.place.settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let out = Out::standard();
    let done = match args.action {
        Action::Check => check(&config, &out).await,
        Action::Move { from, to, with } => move_all(&config, (&from, &to), with, &out).await,
    };
    out.finish(done)
}

async fn check(config: &Config, out: &Out) -> Result<()> {
    let roots = local::roots(config).map_err(Error::Refused)?;
    let bucket = Bucket::open(&config.storage, &roots).map_err(Error::Refused)?;
    let bucket =
        bucket.ok_or_else(|| Error::Refused("storage.url is not set: files stay in the data folder".into()))?;
    bucket.check().await?;
    out.line(format_args!("{} answers", bucket.name()));
    Ok(())
}

/// Returns the settings of a store by its address.
fn settings_of(url: &str, config: &Config, other: Option<&Storage>) -> Storage {
    let is_it = |storage: &&Storage| {
        let own = storage.url.as_deref().map(|own| own.trim_end_matches('/'));
        own == Some(url.trim_end_matches('/'))
    };
    if let Some(found) = [Some(&config.storage), other].into_iter().flatten().find(is_it) {
        return found.clone();
    }
    let scheme = |text: &str| text.split_once("://").map(|(scheme, _)| scheme.to_owned());
    let is_alike = config.storage.url.as_deref().is_some_and(|own| scheme(own) == scheme(url));
    let base = if is_alike { config.storage.clone() } else { without_credentials(&config.storage) };
    Storage { url: Some(url.to_owned()), redirect: false, ..base }
}

fn without_credentials(storage: &Storage) -> Storage {
    Storage {
        allow_http: storage.allow_http,
        part_mb: storage.part_mb,
        timeout_s: storage.timeout_s,
        retry_s: storage.retry_s,
        ..Storage::default()
    }
}

fn end_of(text: &str, config: &Config, other: Option<&Storage>) -> Result<End> {
    if text == LOCAL {
        return Ok(End::Local);
    }
    let roots = local::roots(config).map_err(Error::Refused)?;
    let opened = Bucket::open(&settings_of(text, config, other), &roots);
    let opened = opened.map_err(|why| Error::Refused(format!("{text}: {why}")))?;
    opened.map(End::Bucket).ok_or_else(|| Error::Refused(format!("{text:?} is no address of a store")))
}

async fn move_all(config: &Config, (from, to): (&str, &str), with: Option<PathBuf>, out: &Out) -> Result<()> {
    let other = match with {
        Some(path) => {
            Some(Config::load(Some(&path), &[]).map_err(|problem| Error::Refused(problem.to_string()))?.storage)
        }
        None => None,
    };
    let (from, to) = (end_of(from, config, other.as_ref())?, end_of(to, config, other.as_ref())?);
    if from.name() == to.name() {
        return Err(Error::Refused(format!("{} is both sides of the move", from.name())));
    }
    for end in [&from, &to] {
        if let End::Bucket(bucket) = end {
            bucket.check().await?;
        }
    }
    let store = open_store(config).await?;
    let service = Service::new(store.clone(), Clock::Real, service_settings(config), Arc::new(NoLiveCalls));
    let moving = Move { store: store.clone(), clock: Clock::Real, data: config.data.clone(), from, to };
    let (owners, open) = match &moving.from {
        End::Local => service.conversations().movable(moving.owners().await?).await?,
        End::Bucket(_) => (Vec::new(), 0),
    };
    let progress = Progress::of_things("moving files");
    let moved = moving.run((&owners, open), |path, so_far| {
        progress.set(so_far.copied, path);
        tracing::info!(path, copied = so_far.copied, missing = so_far.missing, "moving");
    });
    let moved = moved.await;
    drop(progress);
    store.close().await;
    let moved = moved?;
    report(&moving, moved, out);
    match moved.missing {
        0 => Ok(()),
        missing => Err(Error::Refused(format!("{} missing in {}", files(missing), moving.from.name()))),
    }
}

fn files(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "file")
}

fn report(moving: &Move, moved: Moved, out: &Out) {
    let Moved { copied, bytes, present, open, .. } = moved;
    out.line(format_args!(
        "{} copied from {} to {} ({bytes} bytes), {present} there already",
        files(copied),
        moving.from.name(),
        moving.to.name()
    ));
    if open > 0 {
        out.line(format_args!("{open} not over yet: move once more when they are"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn a_store_of_another_kind_does_not_get_these_credentials() {
        let secret = Some(Secret::new("k".into()));
        let storage = Storage {
            url: Some("s3://calls/a".into()),
            access_key_id: secret.clone(),
            secret_access_key: secret.clone(),
            endpoint: Some("https://s3.example".into()),
            ..Storage::default()
        };
        let config = Config { storage, ..Config::default() };
        let other = Storage { url: Some("gs://old".into()), service_account: Some("x".into()), ..Storage::default() };
        for (url, credentials, account) in [
            ("s3://calls/a/", true, false),
            ("s3://calls/b", true, false),
            ("az://calls", false, false),
            ("gs://new", false, false),
            ("gs://old", false, true),
        ] {
            let found = settings_of(url, &config, Some(&other));
            assert_eq!(found.access_key_id.is_some(), credentials, "{url}");
            assert_eq!(found.endpoint.is_some(), credentials, "{url}");
            assert_eq!(found.service_account.is_some(), account, "{url}");
        }
    }
}
