//! Retention of results, production calls and recordings, by age and by size.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use ringer_base::config::Retention;
use ringer_base::error::{Error, Result};
use ringer_model::result::ResultDoc;
use ringer_store::{Old, Store};
use uuid::Uuid;

use super::Runs;
use crate::Caller;
use crate::conversation::artifacts::{files, is_audio, remove_files, unfinished_id};
use crate::files::{CALLS_FOLDER, NOISES_FOLDER, RESULTS_FOLDER, call_owner, result_owner};
use crate::library::limits::limits_in_force;

const DAY_MS: i64 = 24 * 3600 * 1000;
/// An upload that was not taken by then never will be: it was refused, or the engine was ended in it.
const LOST_AFTER_MS: i64 = 3600 * 1000;
/// Results that are looked at in one piece.
const PIECE: i64 = 200;

/// Numbers of things that one pass of retention deleted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Results with all that belongs to them.
    pub results: u64,
    /// Production calls with all that belongs to them.
    pub calls: u64,
    /// Recordings of results and of production calls that stay.
    pub recordings: u64,
}

impl Runs {
    /// Deletes finished results, production calls and recordings that are older than `keep` says, and uploads that were
    /// never taken. Where recordings take more space than they may, the oldest of them are deleted too.
    pub async fn clear_old(&self, keep: &Retention) -> Result<Cleared> {
        let mut cleared = Cleared::default();
        let lost_ms = self.clock.now_ms() - LOST_AFTER_MS;
        for folder in [CALLS_FOLDER, NOISES_FOLDER] {
            remove_files(&self.settings.data.join(folder), |name| is_lost(name, lost_ms)).await?;
        }
        let terms = self.terms(keep).await?;
        if let Some(before) = terms.newest(|term| term.results_before_ms) {
            let mut old = Walk::before(before);
            while let Some(Oldest { what, organization, created_ms }) = old.next(&self.store).await? {
                if terms.of(&organization).results_before_ms.is_none_or(|before| created_ms >= before) {
                    continue;
                }
                let caller = Caller::engine(&organization);
                let (deleted, count) = match what {
                    What::Result(id) => (self.delete_result(&caller, id).await.map(drop), &mut cleared.results),
                    What::Call(id) => (
                        self.evaluations.delete_log(&caller, &id.to_string(), false).await.map(drop),
                        &mut cleared.calls,
                    ),
                };
                match deleted {
                    Ok(()) => *count += 1,
                    Err(Error::NotFound(_) | Error::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if let Some(before) = terms.newest(|term| term.recordings_before_ms) {
            let mut old = Walk::before(before);
            while let Some(oldest) = old.next(&self.store).await? {
                let term = terms.of(&oldest.organization);
                if term.recordings_before_ms.is_none_or(|before| oldest.created_ms >= before) {
                    continue;
                }
                cleared.recordings += u64::from(self.delete_sound(&oldest).await?);
            }
        }
        if keep.disk_quota_mb > 0 {
            let quota = u64::from(keep.disk_quota_mb) * 1_000_000;
            let mut taken = self.size_of_all().await?;
            let mut old = Walk::before(i64::MAX);
            while taken > quota
                && let Some(oldest) = old.next(&self.store).await?
            {
                let before = self.size_of_one(&oldest.what).await?;
                cleared.recordings += u64::from(self.delete_sound(&oldest).await?);
                let freed = before.saturating_sub(self.size_of_one(&oldest.what).await?);
                taken = taken.saturating_sub(freed);
            }
        }
        Ok(cleared)
    }

    /// Returns the bytes of all results and production calls: in the object store, where there is one.
    async fn size_of_all(&self) -> Result<u64> {
        if let Some(storage) = &self.settings.storage {
            return storage.bytes_of(None).await;
        }
        let mut taken = 0;
        for folder in [RESULTS_FOLDER, CALLS_FOLDER] {
            taken += size_of(self.settings.data.join(folder)).await?;
        }
        Ok(taken)
    }

    async fn size_of_one(&self, what: &What) -> Result<u64> {
        let (folder, owner) = match what {
            What::Result(id) => (self.settings.result_folder(*id), result_owner(*id)),
            What::Call(id) => (self.settings.call_folder(*id), call_owner(*id)),
        };
        match &self.settings.storage {
            Some(storage) => storage.bytes_of(Some(&owner)).await,
            None => size_of(folder).await,
        }
    }

    /// Returns the terms of every organization: its own limits, else those of `keep`.
    async fn terms(&self, keep: &Retention) -> Result<Terms> {
        let now = self.clock.now_ms();
        let before = |days: u32| (days > 0).then(|| now - i64::from(days) * DAY_MS);
        let term = |results_days: u32, recordings_days: u32| Term {
            results_before_ms: before(results_days),
            recordings_before_ms: before(recordings_days),
        };
        let mut own = HashMap::new();
        let organizations = self.store.org("").read().await?.organizations().await?;
        for (id, _) in organizations {
            let limits = limits_in_force(&self.settings, &mut self.store.org(&id).read().await?).await?;
            let days = [limits.results_days, limits.recordings_days];
            if days.iter().any(Option::is_some) {
                let [results, recordings] = days;
                let days = (results.unwrap_or(keep.results_days), recordings.unwrap_or(keep.recordings_days));
                own.insert(id, term(days.0, days.1));
            }
        }
        Ok(Terms { own, general: term(keep.results_days, keep.recordings_days) })
    }

    async fn delete_sound(&self, of: &Oldest) -> Result<bool> {
        match of.what {
            What::Result(id) => self.delete_recording(&of.organization, id).await,
            What::Call(id) => self.delete_call_recording(&of.organization, id).await,
        }
    }

    /// Deletes what was recorded of a production call; the call says no longer where it came from. False: nothing was
    /// there.
    async fn delete_call_recording(&self, organization: &str, call_id: Uuid) -> Result<bool> {
        let is_stored = match &self.settings.storage {
            Some(storage) => storage.holds(&call_owner(call_id)).await?,
            None => false,
        };
        if !is_stored && files(&self.settings.call_folder(call_id)).await?.is_empty() {
            return Ok(false);
        }
        match self.evaluations.delete_log(&Caller::engine(organization), &call_id.to_string(), true).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes what was recorded of a finished conversation; the result says no longer where it is. False: nothing was
    /// there.
    async fn delete_recording(&self, organization: &str, result_id: i64) -> Result<bool> {
        let mut db = self.store.org(organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(result_id).await? else { return Ok(false) };
        let was_linked = row.doc.body.audio_url.take().is_some();
        match was_linked {
            true => {
                db.update(result_id, &row.doc, self.clock.now_ms(), None).await?;
                db.commit().await?;
            }
            false => drop(db),
        }
        let was_there = remove_files(&self.settings.result_folder(result_id), is_audio).await?;
        let was_stored = self.settings.erase_some(&result_owner(result_id), is_audio).await?;
        Ok(was_linked || was_there || was_stored)
    }
}

/// Times before which results and recordings of an organization are old; `None`: they never are.
#[derive(Clone, Copy, Debug)]
struct Term {
    results_before_ms: Option<i64>,
    recordings_before_ms: Option<i64>,
}

/// Terms of all organizations.
struct Terms {
    own: HashMap<String, Term>,
    general: Term,
}

impl Terms {
    fn of(&self, organization: &str) -> Term {
        self.own.get(organization).copied().unwrap_or(self.general)
    }

    /// Returns the latest of the times that `which` takes from each term; `None`: nothing grows old.
    fn newest(&self, which: impl Fn(&Term) -> Option<i64>) -> Option<i64> {
        self.own.values().chain([&self.general]).filter_map(which).max()
    }
}

/// Result or production call, with its organization and time, in the walk from the oldest on.
#[derive(Clone, Debug)]
struct Oldest {
    what: What,
    organization: String,
    created_ms: i64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Result(i64),
    Call(Uuid),
}

/// Finished results and evaluated calls from the oldest on.
struct Walk {
    before_ms: i64,
    after_result: i64,
    results: VecDeque<Oldest>,
    after_call: (i64, Uuid),
    calls: VecDeque<Oldest>,
}

impl Walk {
    fn before(before_ms: i64) -> Walk {
        let after_call = (i64::MIN, Uuid::nil());
        Walk { before_ms, after_result: 0, results: VecDeque::new(), after_call, calls: VecDeque::new() }
    }

    async fn next(&mut self, store: &Store) -> Result<Option<Oldest>> {
        if self.results.is_empty() {
            let found = store.old_results(self.before_ms, self.after_result, PIECE).await?;
            self.after_result = found.last().map_or(self.after_result, |last| last.id);
            self.results = found.into_iter().map(|old| of(old, What::Result)).collect();
        }
        if self.calls.is_empty() {
            let found = store.old_calls(self.before_ms, self.after_call, PIECE).await?;
            self.after_call = found.last().map_or(self.after_call, |last| (last.created_ms, last.id));
            self.calls = found.into_iter().map(|old| of(old, What::Call)).collect();
        }
        let call_is_older = match (self.results.front(), self.calls.front()) {
            (Some(result), Some(call)) => call.created_ms < result.created_ms,
            (result, _) => result.is_none(),
        };
        Ok(if call_is_older { self.calls.pop_front() } else { self.results.pop_front() })
    }
}

fn of<Id>(old: Old<Id>, what: impl Fn(Id) -> What) -> Oldest {
    Oldest { what: what(old.id), organization: old.organization, created_ms: old.created_ms }
}

/// True for names of uploads (`ID.part`) whose id is older than `before_ms`.
fn is_lost(name: &str, before_ms: i64) -> bool {
    let made = unfinished_id(name).and_then(|id| id.get_timestamp()).map(|at| at.to_unix());
    made.is_some_and(|(seconds, _)| i64::try_from(seconds).is_ok_and(|seconds| seconds * 1000 < before_ms))
}

/// Returns the bytes of all files in a folder, and in those within it.
async fn size_of(folder: PathBuf) -> Result<u64> {
    let (mut folders, mut bytes) = (vec![folder], 0);
    while let Some(folder) = folders.pop() {
        for path in files(&folder).await? {
            match tokio::fs::symlink_metadata(&path).await {
                Ok(found) if found.is_dir() => folders.push(path),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    Ok(bytes)
}
