//! The one way out for telephone numbers: whoever names a number, it is admitted here before it is dialled, in the
//! transaction that counts it. A number that is refused is logged and counted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use ringer_base::config::{DialLimits, carrier};
use ringer_base::error::Result;
use ringer_engine::{DialGate, Forwarded};
use ringer_model::error_code::ErrorCode;
use ringer_model::phone_number::NumberDoc;
use ringer_model::result::ResultDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_sip::uri::{Scheme, Uri};
use ringer_store::{DialRow, DialScope, Row, Session};
use ringer_syntax::phone::e164;

use super::Placements;
use super::trunks::{default_name, trunk_at, why_not_added};
use crate::NotDone;
use crate::conversation::obstacle::Obstacle;
use crate::conversation::user_part::{UserPart, user_part};
use crate::library::limits::section_of;

/// Time that a claim outlives the longest call that it may be of, so that the end of the call ends it.
const GRACE_MS: i64 = 300_000;
/// Longest time that a dial counts for a rate: one call in 100 s is the least that can be set.
const RATE_MS: i64 = 100_000;
/// Days that minutes are kept for.
const KEPT_DAYS: i64 = 40;
const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;
/// Characters of a number that are logged: the sign, a country and an area.
const LOGGED_CHARS: usize = 5;

/// A number that is to be dialled through a trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// Name of the trunk.
    pub trunk: String,
    /// The number in E.164.
    pub number: String,
    /// Number that is called from.
    pub caller: CallerNumber,
    /// Milliseconds that it may ring.
    pub rings_ms: i64,
    /// Milliseconds of conversation that the call may take.
    pub lasts_ms: i64,
}

/// Number that a call shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CallerNumber {
    /// None of the trunk: an address is dialled as it is.
    #[default]
    Absent,
    /// Any number of the trunk, at best one that nobody uses.
    Any,
    /// This number, which is the caller's.
    Own(String),
}

/// Counts of refused numbers by the text of the error code and the name of the trunk.
pub type Refusals = BTreeMap<(String, String), u64>;

/// Refusals since the start of this process.
pub(crate) type RefusalCounts = Mutex<Refusals>;

/// One number that asks to be admitted.
struct Asked<'a> {
    result_id: i64,
    trunk: &'a str,
    number: &'a str,
    /// Milliseconds to reserve, and until when the call is counted; `None`: the place of a call that is counted is
    /// taken.
    adds: Option<(i64, i64)>,
}

/// An address that the other side of a call names.
struct Named {
    forwarded: Forwarded,
    target: Uri,
    /// Addresses of the hops to it.
    found: Vec<IpAddr>,
}

impl Placements {
    /// Admits the number of a result that is QUEUED, counts its call until the result is closed, and returns the
    /// caller's number. A result that has moved on meanwhile is left as it is: nothing is counted, and no number
    /// returned.
    ///
    /// # Errors
    /// The limit that refuses the number, or a fault of the store.
    #[cfg(any(test, feature = "testing"))]
    pub async fn admit_outgoing(
        &self,
        organization: &str,
        result_id: i64,
        outgoing: &Outgoing,
    ) -> Result<Option<String>, NotDone<Obstacle>> {
        let mut db = self.store.org(organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let caller = self.admit_queued(&mut db, &row, outgoing).await?;
        db.commit().await?;
        Ok(caller)
    }

    /// Admits the number of a result as [`Placements::admit_outgoing`] does, within a transaction. One that refuses the
    /// number is not to be committed.
    pub(super) async fn admit_queued(
        &self,
        db: &mut Session,
        row: &Row<ResultDoc>,
        outgoing: &Outgoing,
    ) -> Result<Option<String>, NotDone<Obstacle>> {
        if row.doc.body.status != ResultStatus::Queued {
            return Ok(None);
        }
        self.admit_under(db, row.id, outgoing).await
    }

    /// Admits a number under the id of a result, or one that no result has. A transaction that refuses the number is
    /// not to be committed.
    pub(super) async fn admit_under(
        &self,
        db: &mut Session,
        trial_id: i64,
        outgoing: &Outgoing,
    ) -> Result<Option<String>, NotDone<Obstacle>> {
        let Outgoing { trunk, number, rings_ms, lasts_ms, .. } = outgoing;
        let adds = Some((*lasts_ms, self.clock.now_ms() + rings_ms + lasts_ms + GRACE_MS));
        let caller = self.free_caller(db, outgoing).await?;
        let asked = Asked { result_id: trial_id, trunk, number, adds };
        if let Err(why) = self.admit_number(db, &asked, &caller).await {
            self.note_refusal(db.organization(), &asked, &why);
            return Err(why);
        }
        Ok(Some(caller).filter(|caller| !caller.is_empty()))
    }

    /// Returns the gate that a call asks when the other side names another address. `None` where no trunk is set up.
    pub(crate) fn dial_gate(&self, organization: &str, result_id: i64, trunk: Option<&str>) -> Option<DialGate> {
        if self.settings.trunks.is_empty() {
            return None;
        }
        let (service, organization) = (self.clone(), organization.to_owned());
        let trunk = trunk.or(default_name(&self.settings.trunks)).map(str::to_owned);
        Some(DialGate::new(move |forwarded, target, found| {
            let (service, organization, trunk) = (service.clone(), organization.clone(), trunk.clone());
            Box::pin(async move {
                let admitted = service
                    .admit_named(&organization, result_id, trunk.as_deref(), &Named { forwarded, target, found })
                    .await;
                match admitted {
                    Ok(()) => Ok(()),
                    Err(NotDone::Reason(obstacle)) => Err(format!("{}: {}", obstacle.code, obstacle.message)),
                    Err(NotDone::Fault(error)) => {
                        tracing::error!(%error, result_id, "failed to count a call to a number; it is not dialled");
                        Err("The number could not be counted".to_owned())
                    }
                }
            })
        }))
    }

    /// Admits an address that the other side of a call names. One that leads to no trunk is no number of this side.
    async fn admit_named(
        &self,
        organization: &str,
        result_id: i64,
        own_trunk: Option<&str>,
        Named { forwarded, target, found }: &Named,
    ) -> Result<(), NotDone<Obstacle>> {
        let trunks = &self.settings.trunks;
        let trunk = match target.scheme {
            Scheme::Tel => own_trunk,
            Scheme::Sip | Scheme::Sips => trunk_at(trunks, &target.host, found, &self.settings.names).await,
        };
        let user = target.user.as_deref().unwrap_or_default();
        let Some(outgoing) = trunk.and_then(|trunk| outgoing_at(trunk, user)) else { return Ok(()) };
        let mut db = self.store.org(organization).write().await?;
        let Some(row) = db.find::<ResultDoc>(result_id).await? else { return Ok(()) };
        let simulation = db.get::<SimulationSpec>(row.doc.body.simulation_id).await?.doc;
        let lasts_ms = simulation.max_duration_ms().max(0);
        let (rings_ms, now) = (simulation.ringing_timeout.saturating_mul(1000).max(0), self.clock.now_ms());
        let taken = db.has_dial(result_id, &outgoing.trunk).await?;
        let adds = (*forwarded == Forwarded::Transfer || !taken)
            .then(|| (lasts_ms, now.saturating_add(rings_ms).saturating_add(lasts_ms).saturating_add(GRACE_MS)));
        let asked = Asked { result_id, trunk: &outgoing.trunk, number: &outgoing.number, adds };
        match self.admit_number(&mut db, &asked, "").await {
            Ok(()) => Ok(db.commit().await?),
            Err(why) => {
                drop(db);
                self.note_refusal(organization, &asked, &why);
                Err(why)
            }
        }
    }

    /// Admits a number and counts it. Every number that leaves through a trunk passes here.
    async fn admit_number(&self, db: &mut Session, asked: &Asked<'_>, caller: &str) -> Result<(), NotDone<Obstacle>> {
        let (now, organization) = (self.clock.now_ms(), db.organization().to_owned());
        let day = day_of(now);
        let open = DialLimits::default();
        let Some(trunk) = self.settings.trunks.get(asked.trunk) else {
            let message = format!("There is no trunk {}", asked.trunk);
            return Err(Obstacle { code: ErrorCode::SipNotConfigured, message }.into());
        };
        let name = db.organization_name().await?.unwrap_or_default();
        let found = section_of(&self.settings, &name, &organization);
        let (own, of_organization) = found.map_or(("", &open), |(own, limits)| (own, &limits.dial));
        let scopes = [
            (DialScope::Trunk(asked.trunk), &trunk.limits, format!("sip.trunks.{}", asked.trunk)),
            (DialScope::Organization(&organization), of_organization, format!("limits.organizations.{own}")),
        ];
        for (scope, limits, section) in &scopes {
            let needs_prefix = matches!(scope, DialScope::Trunk(_));
            if let Err(why) = check_prefix(limits, asked.number, needs_prefix) {
                return Err(Obstacle { code: ErrorCode::DialPrefixRefused, message: format!("{section}.{why}") }.into());
            }
        }
        for (scope, limits, section) in &scopes {
            self.check_counts(db, *scope, limits, section, asked, &day).await?;
        }
        db.forget_dials(now - RATE_MS, now, &day_of(now - KEPT_DAYS * DAY_MS)).await?;
        let (reserved_ms, until_ms) = asked.adds.unwrap_or((0, now));
        let (result_id, trunk) = (asked.result_id, asked.trunk.to_owned());
        let dial = DialRow { result_id, trunk, caller: caller.to_owned(), day, reserved_ms };
        Ok(db.put_dial(&dial, asked.adds.is_some(), now, until_ms).await?)
    }

    async fn check_counts(
        &self,
        db: &mut Session,
        scope: DialScope<'_>,
        limits: &DialLimits,
        section: &str,
        asked: &Asked<'_>,
        day: &str,
    ) -> Result<(), NotDone<Obstacle>> {
        let now = self.clock.now_ms();
        let refused = |code, message: String| Err(Obstacle { code, message: format!("{section}.{message}") }.into());
        if let (Some(most), true) = (limits.max_calls, asked.adds.is_some()) {
            let live = db.live_dials(scope, now).await?;
            if live >= i64::from(most) {
                let message = format!("max_calls: {live} of at most {most} calls are being made or are up");
                return refused(ErrorCode::DialCallsRefused, message);
            }
        }
        if let Some(rate) = limits.max_cps {
            let (most, window_ms) = rate_window(rate);
            if db.dials_since(scope, now - window_ms).await? >= most {
                return refused(ErrorCode::DialRateRefused, format!("max_cps: no more than {rate} calls a second"));
            }
        }
        if let (Some(most), Some((lasts_ms, _))) = (limits.max_minutes_per_day, asked.adds) {
            let used_ms = db.dialled_ms(scope, day).await?;
            if used_ms.saturating_add(lasts_ms) > i64::from(most) * MINUTE_MS {
                let (used, lasts) = (minutes(used_ms), minutes(lasts_ms));
                let message = format!(
                    "max_minutes_per_day: {used} of {most} minutes of this day (UTC) are used or reserved, and the call may \
                     take {lasts}"
                );
                return refused(ErrorCode::DialMinutesRefused, message);
            }
        }
        Ok(())
    }

    /// Returns the number that a call is made from: one that nobody uses now, else the one that fewest calls use.
    /// Numbers that other organizations have registered are theirs.
    async fn free_caller(&self, db: &mut Session, outgoing: &Outgoing) -> Result<String, NotDone<Obstacle>> {
        match &outgoing.caller {
            CallerNumber::Absent => return Ok(String::new()),
            CallerNumber::Own(number) => {
                if let Some(obstacle) = foreign_number(db, number).await? {
                    return Err(obstacle.into());
                }
                let trunk = self.settings.trunks.get(&outgoing.trunk);
                let is_listed = trunk.is_some_and(|trunk| e164(number).is_some_and(|number| trunk.lists(&number)));
                if !is_listed && db.number_holder(number).await?.is_none() {
                    // It was given back after the trunk was chosen.
                    let message = why_not_added(number, &outgoing.trunk);
                    return Err(Obstacle { code: ErrorCode::UnusableCallerId, message }.into());
                }
                return Ok(number.clone());
            }
            CallerNumber::Any => {}
        }
        let Some(trunk) = self.settings.trunks.get(&outgoing.trunk) else { return Ok(String::new()) };
        let mut numbers = Vec::new();
        for number in &trunk.numbers {
            if !db.is_foreign_number(number).await? {
                numbers.push(number);
            }
        }
        let added = self.added_numbers(db, outgoing).await?;
        numbers.extend(&added);
        if numbers.is_empty() && !(trunk.numbers.is_empty() && trunk.carries.is_empty()) {
            let message = match trunk.numbers.is_empty() {
                true => format!("No number of sip.trunks.{}.carries was added to call from", outgoing.trunk),
                false => format!("Each number of the trunk {} belongs to another organization", outgoing.trunk),
            };
            return Err(Obstacle { code: ErrorCode::UnusableCallerId, message }.into());
        }
        let in_use: BTreeMap<String, i64> =
            db.callers_in_use(&outgoing.trunk, self.clock.now_ms()).await?.into_iter().collect();
        for number in numbers.iter().filter(|number| !in_use.contains_key(**number)) {
            // A number on which somebody waits for a call is shown to that agent alone.
            if db.leg_holder(number).await?.is_none() {
                return Ok((*number).clone());
            }
        }
        let least = numbers.into_iter().min_by_key(|number| in_use.get(*number).copied().unwrap_or(0));
        Ok(least.cloned().unwrap_or_default())
    }

    /// Returns the numbers that the organization has added and that the trunk of a call carries without listing them.
    async fn added_numbers(&self, db: &mut Session, outgoing: &Outgoing) -> Result<Vec<String>> {
        if self.settings.trunks.get(&outgoing.trunk).is_none_or(|trunk| trunk.carries.is_empty()) {
            return Ok(Vec::new());
        }
        let is_of_trunk = |number: &String| {
            carrier(&self.settings.trunks, number)
                .is_some_and(|(name, trunk)| name == outgoing.trunk && !trunk.lists(number))
        };
        let numbers = db.all::<NumberDoc>().await?.into_iter().map(|row| row.doc.phone_number);
        Ok(numbers.filter(is_of_trunk).collect())
    }

    /// Returns a line for each section `[limits.organizations.NAME]` that fits no organization, by name or id.
    pub async fn unmatched_limits(&self) -> Result<Vec<String>> {
        let organizations = self.store.org("").read().await?.organizations().await?;
        Ok(unmatched_limits(self.settings.organization_limits.keys(), &organizations))
    }

    /// Returns how often numbers were refused since the start, by error code and trunk.
    pub fn dial_refusals(&self) -> Refusals {
        self.refusals.lock().clone()
    }

    /// Logs and counts a number that the limits refuse; a fault of the store is told by its caller.
    fn note_refusal(&self, organization: &str, asked: &Asked<'_>, why: &NotDone<Obstacle>) {
        let NotDone::Reason(obstacle) = why else { return };
        let (trunk, code, result_id) = (asked.trunk, obstacle.code.as_str(), asked.result_id);
        let prefix: String = asked.number.chars().take(LOGGED_CHARS).collect();
        tracing::warn!(trunk, organization, code, prefix, result_id, "number refused by the dial limits");
        let mut counts = self.refusals.lock();
        *counts.entry((code.to_owned(), trunk.to_owned())).or_default() += 1;
    }
}

/// Returns the reason why a number may not be called from, if another organization has registered it.
pub(super) async fn foreign_number(db: &mut Session, number: &str) -> Result<Option<Obstacle>> {
    let message = || format!("The Digital Human's number {number} belongs to another organization");
    let is_foreign = db.is_foreign_number(number).await?;
    Ok(is_foreign.then(|| Obstacle { code: ErrorCode::UnusableCallerId, message: message() }))
}

/// Returns a line for each of these sections that is neither name nor id of an organization.
pub fn unmatched_limits<'s>(
    sections: impl Iterator<Item = &'s String>,
    organizations: &[(String, String)],
) -> Vec<String> {
    let is_known = |section: &&String| organizations.iter().any(|(id, name)| *section == id || *section == name);
    let describe =
        |section: &String| format!("[limits.organizations.{section:?}] limits nobody: no organization has this name");
    sections.filter(|section| !is_known(section)).map(describe).collect()
}

/// Returns the dial of a user part at a trunk's host; `None` for a name, which is no number. Digits that are no number
/// in E.164 are kept as they are: no prefix allows them.
pub(crate) fn outgoing_at(trunk: &str, user: &str) -> Option<Outgoing> {
    let number = match user_part(user) {
        UserPart::Number(number) => number,
        UserPart::Digits => String::new(),
        UserPart::Name => return None,
    };
    Some(Outgoing { trunk: trunk.to_owned(), number, ..Outgoing::default() })
}

/// Checks a number against prefixes; `needs_one`: without a list of allowed ones none is. The error begins with the
/// name of the setting.
fn check_prefix(limits: &DialLimits, number: &str, needs_one: bool) -> Result<(), String> {
    let begins = |prefixes: &[String]| prefixes.iter().any(|prefix| number.starts_with(prefix.as_str()));
    if number.is_empty() {
        return Err("allowed_prefixes: only numbers in E.164 are dialled".to_owned());
    }
    if begins(&limits.denied_prefixes) {
        return Err("denied_prefixes: numbers that begin so are not dialled".to_owned());
    }
    match &limits.allowed_prefixes {
        Some(allowed) if begins(allowed) => Ok(()),
        None if !needs_one => Ok(()),
        Some(allowed) if !allowed.is_empty() => Err("allowed_prefixes: numbers that begin so are not in it".to_owned()),
        Some(_) | None => Err("allowed_prefixes: it is empty, and no number is dialled".to_owned()),
    }
}

/// Returns how many calls may begin within how many milliseconds, for a rate in calls a second.
fn rate_window(rate: f64) -> (i64, i64) {
    let most = rate.floor().max(1.0);
    (most as i64, (most * 1000.0 / rate).ceil() as i64)
}

/// Returns the day of a moment in UTC, as `2026-01-05`.
fn day_of(now_ms: i64) -> String {
    Timestamp(now_ms).to_string().chars().take(10).collect()
}

/// Returns minutes with one decimal.
fn minutes(ms: i64) -> f64 {
    (ms as f64 / MINUTE_MS as f64 * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
