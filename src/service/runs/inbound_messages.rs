//! Messages that the platform of an agent posts into its conversations by itself.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentMode};
use ringer_model::result::ResultDoc;
use ringer_model::run::Accepted;
use ringer_model::status::ResultStatus;
use ringer_model::text::{Arrived, INBOX_MOST, conversation_address};
use ringer_store::{Row, Session};
use serde_json::json;
use subtle::ConstantTimeEq;

use super::Runs;

impl Runs {
    /// True if this is the token of an agent's posts. Takes as long for an agent that does not exist.
    pub async fn is_inbound_token(&self, agent_id: i64, given: &[u8]) -> Result<bool> {
        let owner = self.store.org("").read().await?.agent_owner(agent_id).await?;
        let token = match owner {
            Some(organization) => {
                let mut db = self.store.org(&organization).read().await?;
                db.find::<AgentDoc>(agent_id).await?.and_then(|row| row.doc.inbound_token)
            }
            None => None,
        };
        let known = token.clone().unwrap_or_else(|| "0".repeat(64));
        Ok(bool::from(known.as_bytes().ct_eq(given)) & token.is_some())
    }

    /// Takes a message that an agent's platform posts into its conversation. One that belongs to none is accepted all
    /// the same, and so is one that was taken before.
    pub async fn take_inbound(&self, agent_id: i64, message: Object) -> Result<Accepted> {
        let owner = self.store.org("").read().await?.agent_owner(agent_id).await?;
        let organization = owner.ok_or(Error::NotFound("Agent"))?;
        let mut db = self.store.org(&organization).write().await?;
        let agent = db.get::<AgentDoc>(agent_id).await?.doc.spec;
        let kind = agent.connection().filter(|_| agent.mode == AgentMode::Text);
        let adapter = kind.and_then(|kind| self.settings.adapters.get(kind.as_str()));
        let adapter = adapter.and_then(|adapter| adapter.writing()).filter(|adapter| adapter.is_asynchronous());
        let adapter =
            adapter.ok_or_else(|| Error::Refused("No adapter takes messages for this agent by itself".into()))?;
        let inbound = adapter.read_inbound(&json!(message));
        let inbound = inbound.map_err(|why| Error::Refused(format!("The message has {why}")))?;
        let Some(mut row) = open_of(&mut db, agent_id, &inbound.conversation).await? else {
            tracing::info!(agent_id, "inbound message matches no conversation");
            return Ok(acceptance());
        };
        let inbox = &mut row.doc.inbox;
        if inbox.ended || inbound.id.as_ref().is_some_and(|id| inbox.knows(id)) {
            return Ok(acceptance());
        }
        if inbox.messages.len() + inbox.call_ids.len() >= INBOX_MOST {
            return Err(Error::Refused("Conversation holds too many messages".into()));
        }
        let (at_ms, ends) = (self.clock.now_ms(), inbound.ends);
        inbox.messages.push(Arrived { at_ms, message_id: inbound.id, text: inbound.text, more: false, ends });
        inbox.closed |= ends;
        inbox.ended |= ends;
        db.update(row.id, &row.doc, at_ms, None).await?;
        db.commit().await?;
        self.live.note_change(row.id);
        Ok(acceptance())
    }
}

fn acceptance() -> Accepted {
    Accepted { status: "accepted".into() }
}

/// Returns the result of an agent whose conversation is open under a name: that of its session, the id of the result,
/// or the id with the number of the attempt.
async fn open_of(db: &mut Session, agent_id: i64, conversation: &str) -> Result<Option<Row<ResultDoc>>> {
    let address = conversation_address(agent_id, conversation);
    let organization = db.organization().to_owned();
    let held = db.leg_holder(&address).await?.filter(|(holder, _)| *holder == organization);
    let (id, attempt) = match (held, conversation.split_once('-')) {
        (Some((_, id)), _) => (Some(id), None),
        (None, Some((id, attempt))) => (id.parse().ok(), Some(attempt)),
        (None, None) => (conversation.parse().ok(), None),
    };
    let Some(id) = id else { return Ok(None) };
    let is_open = |row: &Row<ResultDoc>| {
        let body = &row.doc.body;
        let is_of_attempt = attempt.is_none_or(|attempt| attempt == body.attempt.to_string());
        let is_on = body.status.is_early() || body.status == ResultStatus::Running;
        is_of_attempt && is_on && body.agent_id == agent_id
    };
    Ok(db.find::<ResultDoc>(id).await?.filter(is_open))
}
