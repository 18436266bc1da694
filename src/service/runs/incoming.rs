//! Calls that come in: whom they are for, and the result that takes them.

use ringer_base::config::carrier;
use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::result::ResultDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_store::queue::CallJob;
use serde_json::json;

use super::Runs;
use crate::conversation::inbound_address::{Goal, InboundAddress, has_place, login, stage};
use crate::conversation::user_part::{called_number, dialled_digits, national_digits, of_national};

/// Receiver of an incoming call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reached {
    /// No result or Digital Human has this address.
    Nobody,
    /// The holder of this address, a result where it is one, is in a call.
    Busy(Option<i64>),
    /// The call is for this holder of the address.
    Address(InboundAddress),
}

impl Runs {
    /// Returns whom a call is for by the user parts of its Request-URI and its To header field. A trunk that calls the
    /// address that was registered names the number in To alone.
    pub async fn reached_by(&self, user: &str, to: &str) -> Result<Reached> {
        match self.receiver_of(user).await? {
            Reached::Nobody if self.called_number(to).await?.is_some() => self.receiver_of(to).await,
            reached => Ok(reached),
        }
    }

    /// Returns the receiver of a call to `user`, the user part of its Request-URI.
    pub async fn receiver_of(&self, user: &str) -> Result<Reached> {
        let mut busy = None;
        let mut forms = spellings(user);
        let called = self.called_number(user).await?;
        forms.extend(called.filter(|number| !forms.contains(number)));
        for address in &forms {
            let Some((organization, result_id)) = self.store.org("").read().await?.leg_holder(address).await? else {
                continue;
            };
            let mut db = self.store.org(&organization).read().await?;
            if db.is_foreign_number(address).await? {
                // It was registered while this result listened. Its calls are for its holder alone.
                continue;
            }
            let row = db.get::<ResultDoc>(result_id).await?;
            let stage = stage(&mut db, &row).await?;
            if stage.as_ref().is_some_and(|stage| stage.agent.is_over_websocket()) {
                // Its token is its address, and no user part of SIP.
                continue;
            }
            let unresponsive = stage.is_some_and(|stage| stage.is_unresponsive());
            let body = row.doc.body;
            if body.status == ResultStatus::Ready {
                let agent = db.get::<AgentDoc>(body.agent_id).await?.doc.spec;
                let (login, goal) = (login(&agent), Goal::Result(result_id));
                return Ok(Reached::Address(InboundAddress { organization, unresponsive, login, goal }));
            }
            busy = Some(result_id);
        }
        for address in &forms {
            if let Some(inbound) = self.always_on_address(address).await? {
                return Ok(Reached::Address(inbound));
            }
        }
        Ok(busy.map_or(Reached::Nobody, |result_id| Reached::Busy(Some(result_id))))
    }

    /// Returns the number of a trunk that a user part names: one that a trunk lists, or that was added and is carried.
    async fn called_number(&self, user: &str) -> Result<Option<String>> {
        let trunks = &self.settings.trunks;
        let listed = called_number(trunks, user);
        if listed.is_some() || trunks.values().all(|trunk| trunk.carries.is_empty()) {
            return Ok(listed);
        }
        let Some((user, _)) = dialled_digits(user) else { return Ok(None) };
        let Some(national) = national_digits(&user) else { return Ok(None) };
        let mut added = self.store.org("").read().await?.registered_numbers_with_end(national).await?;
        added.retain(|number| carrier(trunks, number).is_some());
        Ok(of_national(added.iter(), national))
    }

    /// Takes a call for whom it has reached: the result is DISPATCHED then. `None`: there is no place for it.
    pub async fn take_call(&self, inbound: &InboundAddress, about: Object) -> Result<Option<CallJob>> {
        let result_id = match inbound.goal {
            Goal::Result(result_id) => result_id,
            Goal::AlwaysOn { human_id, simulation_id } => {
                return self.take_always_on(&inbound.organization, human_id, simulation_id, about).await;
            }
        };
        let mut db = self.store.org(&inbound.organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let simulation = db.get::<SimulationSpec>(row.doc.body.simulation_id).await?.doc;
        if row.doc.body.status != ResultStatus::Ready
            || !has_place(&mut db, row.doc.body.simulation_run_id, &simulation).await?
        {
            return Ok(None);
        }
        self.conversations.begin_answered(&mut db, &mut row, about).await?;
        db.commit().await?;
        self.live.note_change(result_id);
        let (organization, attempt) = (inbound.organization.clone(), row.doc.body.attempt);
        Ok(Some(CallJob { organization, result_id, attempt }))
    }

    /// Notes a call to somebody who does not answer.
    pub async fn note_unanswered(&self, inbound: &InboundAddress, mut about: Object) -> Result<()> {
        let Goal::Result(result_id) = inbound.goal else { return Ok(()) };
        let mut db = self.store.org(&inbound.organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        if row.doc.body.status != ResultStatus::Ready {
            return Ok(());
        }
        about.insert("at".to_owned(), json!(Timestamp(self.clock.now_ms())));
        row.doc.unanswered.push(about);
        let all = json!(row.doc.unanswered);
        row.doc.note("unanswered_calls", all);
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await
    }
}

/// Returns the forms in which the user part of a Request-URI may name an address: as it is, and as a number in E.164.
fn spellings(user: &str) -> Vec<String> {
    let user = user.split(';').next().unwrap_or_default().replace("%2B", "+").replace("%2b", "+");
    let digits: String = user.chars().filter(|c| !matches!(c, '-' | '.' | '(' | ')' | ' ')).collect();
    let number = digits.strip_prefix('+').unwrap_or(&digits);
    let mut forms = vec![user.clone()];
    if (4..=15).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit()) {
        forms.push(format!("+{number}"));
    }
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_however_it_is_written() {
        for (user, expect) in [
            ("dh-7-0a1b2c3d", &["dh-7-0a1b2c3d"][..]),
            ("+15550001111", &["+15550001111"]),
            ("15550001111", &["15550001111", "+15550001111"]),
            ("+1-555-000.1111", &["+1-555-000.1111", "+15550001111"]),
            ("+15550001111;phone-context=x", &["+15550001111"]),
            ("%2B15550001111", &["+15550001111"]),
            ("123", &["123"]),
            ("", &[""]),
        ] {
            assert_eq!(spellings(user), expect, "{user}");
        }
    }
}
