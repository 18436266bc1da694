//! Conversations by text messages: queueing them, and what the carrier delivers into them.

use ringer_base::config::carrier;
use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_model::Object;
use ringer_model::result::ResultDoc;
use ringer_model::run::{Accepted, AgentWanted, Purpose, QueueAnswer};
use ringer_model::status::ResultStatus;
use ringer_model::text::{Arrived, INBOX_MOST, SmsQueueSpec, pair_address};
use ringer_sip::header::NameAddr;
use ringer_store::{Row, Session};
use ringer_transport::sip::address::called_user;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Runs;
use crate::Caller;
use crate::conversation::user_part::{UserPart, called_number, user_part};

/// Response to queueing a run of conversations by text messages.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SmsQueued {
    /// Fields of the answer for every run.
    #[serde(flatten)]
    pub queued: QueueAnswer,
    /// Conversations that were ended for it; null when none.
    pub terminated_conversations: Option<Vec<Terminated>>,
}

/// A conversation that was ended for another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Terminated {
    /// Id of the conversation's result.
    pub simulation_result_id: String,
    /// 0 when it was deleted.
    pub digital_human_id: i64,
    /// The Digital Human's number.
    pub phone_number: String,
}

/// Numbers of a text message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressedText {
    /// Number of the sender.
    pub from: String,
    /// Number of the receiver.
    pub to: String,
    /// Name of the trunk that owns the receiver's number; `None`: none does.
    pub trunk: Option<String>,
}

impl Runs {
    /// Queues a run as [`Runs::queue_simulation_run`] does, for agents that text. Two numbers hold one conversation
    /// at a time.
    pub async fn queue_sms_run(&self, caller: &Caller, spec: SmsQueueSpec) -> Result<SmsQueued> {
        let (terminate, spec) = (spec.terminate_overlapping_simulations, spec.run.general());
        let purpose = Purpose { agent: AgentWanted::Sms, ..Purpose::default() };
        let mut db = self.store.org(&caller.organization).write().await?;
        let pairs = self.pairs(&mut db, spec.clone(), purpose).await?;
        let (mut terminated, mut running) = (Vec::new(), Vec::new());
        for [phone_number, agent] in pairs {
            let Some(mut row) = open_between(&mut db, [&phone_number, &agent]).await? else { continue };
            if !terminate {
                return Err(Error::Conflict("Another conversation is running between these numbers".into()));
            }
            if running.contains(&(row.id, row.doc.body.status)) {
                continue;
            }
            let digital_human_id = row.doc.body.digital_human_id.unwrap_or_default();
            terminated.push(Terminated { simulation_result_id: row.id.to_string(), digital_human_id, phone_number });
            running.push((row.id, row.doc.body.status));
            if row.doc.body.status.is_early() {
                self.conversations.cancel(&mut db, &mut row).await?;
            }
        }
        let queued = self.queue_in(&mut db, caller, spec, purpose).await?;
        let terminated_conversations = Some(terminated).filter(|ended| !ended.is_empty());
        let answer = db.answer(SmsQueued { queued, terminated_conversations }).await?;
        for (id, status) in running {
            self.live.note_change(id);
            let reason = if status.is_early() { EndReason::Cancelled } else { EndReason::ApiHangup };
            self.conversations.hang_up_cancelled(id, reason).await;
        }
        Ok(answer)
    }

    /// Takes a message that the carrier delivers into the conversation between its two numbers, or beside the call that
    /// it follows. One that belongs to none is accepted all the same. `fields`: texts, under the carrier's own names.
    pub async fn take_sms(&self, fields: &Object) -> Result<Accepted> {
        let sms = self.settings.sms.clone();
        let given = |name: &str| fields.get(sms.inbound_field(name)).and_then(Value::as_str).map(str::to_owned);
        let [from, to, text] = ["from", "to", "text"].map(|name| given(name).unwrap_or_default());
        self.take_text(&from, &to, &text, given("message_id")).await?;
        Ok(acceptance())
    }

    /// Takes a text message into the conversation between its two numbers, or beside the call that it follows. One that
    /// belongs to none is logged.
    pub async fn take_text(&self, from: &str, to: &str, text: &str, message_id: Option<String>) -> Result<()> {
        let holder = self.store.org("").read().await?.leg_holder(&pair_address([to, from])).await?;
        if let Some((organization, _)) = holder {
            let mut db = self.store.org(&organization).write().await?;
            if !db.is_foreign_number(to).await?
                && let Some(mut row) = open_between(&mut db, [to, from]).await?
            {
                let inbox = &mut row.doc.inbox;
                let repeated = message_id.as_ref().is_some_and(|id| inbox.knows(id));
                if !repeated && !inbox.closed && !inbox.ended && inbox.messages.len() < INBOX_MOST {
                    let (at_ms, text) = (self.clock.now_ms(), text.to_owned());
                    inbox.messages.push(Arrived { at_ms, message_id, text, more: false, ends: false });
                    db.update(row.id, &row.doc, at_ms, None).await?;
                    db.commit().await?;
                    self.live.note_change(row.id);
                }
                return Ok(());
            }
        }
        if !self.evaluations.take_follow_up(from, to, text).await? {
            tracing::info!("text message matches no conversation");
        }
        Ok(())
    }

    /// Returns the numbers of a text message over SIP, and the trunk that owns its receiver's. `receivers`: Request-URI
    /// and To; a trunk that writes to the address that was registered names the number in To alone.
    pub fn addressed_text(&self, from: &str, headers: &[(String, String)], receivers: [&str; 2]) -> AddressedText {
        let trunks = &self.settings.trunks;
        let users = receivers.map(called_user);
        let own = users.iter().find_map(|user| called_number(trunks, user));
        let owner = own.as_ref().and_then(|own| carrier(trunks, own));
        let asserted = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("P-Asserted-Identity"));
        let asserted = asserted.and_then(|(_, value)| NameAddr::parse(value)).map(|name| name.uri).unwrap_or_default();
        let senders = [from, &asserted].map(called_user);
        let sender = senders.iter().find_map(|user| match user_part(user) {
            UserPart::Number(number) => Some(number),
            UserPart::Digits | UserPart::Name => None,
        });
        let [user, _] = users;
        let [name, _] = senders;
        AddressedText {
            from: sender.unwrap_or(name),
            trunk: owner.map(|(name, _)| name.to_owned()),
            to: own.unwrap_or(user),
        }
    }
}

fn acceptance() -> Accepted {
    Accepted { status: "accepted".into() }
}

fn is_open(status: ResultStatus) -> bool {
    matches!(status, ResultStatus::Ready | ResultStatus::Dispatched | ResultStatus::Running)
}

/// Returns the result of the organization whose conversation is open between two numbers, the Digital Human's and the
/// agent's.
async fn open_between(db: &mut Session, numbers: [&str; 2]) -> Result<Option<Row<ResultDoc>>> {
    let Some((_, result_id)) = db.leg_holder(&pair_address(numbers)).await? else { return Ok(None) };
    Ok(db.find::<ResultDoc>(result_id).await?.filter(|row| is_open(row.doc.body.status)))
}
