//! Agents on platforms that are written to over HTTP: session and token of a conversation, and its place among those
//! whose answers come as posts of the platform.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringer_base::post::Poster;
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::{ErrorCode, PlatformFault};
use ringer_provider::messages::{
    Called, Contact, Message, PlatformAgent, PlatformCodes, PlatformProtocol, PlatformRequest, Reply, Trouble,
};
use ringer_transport::websocket::platform::adapter::SessionReply;
use ringer_transport::websocket::platform::chat::ChatMessage;
use serde_json::Value;
use tokio::sync::Mutex;

use super::{Facts, SessionPlan, adapter_of, facts, known_platform};
use crate::placement::platform::NOT_SUPPORTED;
use crate::placement::{CallRows, Obstacle, Placements};

/// Session and token that the requests of a conversation need beside its messages.
#[derive(Clone, Default)]
struct Opened {
    facts: Facts,
    reply: SessionReply,
}

/// Conversation with an agent on a platform.
struct Conversation {
    placements: Placements,
    plan: SessionPlan,
    poster: Arc<Poster>,
    organization: String,
    result_id: i64,
    agent_id: i64,
    /// Session and token; `None` before the first message.
    opened: Mutex<Option<Opened>>,
}

/// Returns the way to an agent on a platform; `None` for an agent that is reached otherwise.
///
/// # Errors
/// A setting that is missing, and an adapter that cannot write.
pub(in crate::placement) fn contact(
    placements: &Placements,
    rows: &CallRows,
    organization: &str,
    attempt: i64,
) -> Result<Option<Contact>, Obstacle> {
    let Some(kind) = rows.agent.spec.connection() else { return Ok(None) };
    let Some((_, platform, ids, key)) = known_platform(kind) else { return Ok(None) };
    let Some(adapter) = adapter_of(kind, &placements.settings) else { return Ok(None) };
    if let Some(lack) = rows.missing(kind) {
        return Err(lack);
    }
    let Some(adapter) = adapter.writing() else { return Err(Obstacle::new(NOT_SUPPORTED, only_calls(kind))) };
    if rows.agent_calls() && !adapter.is_asynchronous() {
        let message = format!("An agent of {} that begins is not written to in this version", kind.as_str());
        return Err(Obstacle::new(NOT_SUPPORTED, message));
    }
    let mut facts = facts(rows, ids, key);
    facts.conversation = format!("{}-{attempt}", rows.result_id);
    let conversation = Conversation {
        placements: placements.clone(),
        poster: placements.poster.clone(),
        organization: organization.to_owned(),
        result_id: rows.result_id,
        agent_id: rows.agent_id,
        opened: Mutex::new(None),
        plan: SessionPlan::new(Arc::new(adapter.clone()), facts, *platform),
    };
    Ok(Some(Contact::Platform(PlatformAgent {
        poster: placements.poster.clone(),
        protocol: Arc::new(conversation),
        conversation: rows.result_id.to_string(),
        name: adapter.preset().to_owned(),
    })))
}

fn only_calls(kind: ConnectionType) -> String {
    format!(
        "The adapter of {} makes calls: an agent of mode TEXT needs one with transport = \"http_chat\", or a table `chat`",
        kind.as_str()
    )
}

impl Conversation {
    /// Returns session and token, and true if they are older than this request.
    async fn open(&self, renewed: bool) -> Result<(Opened, bool), Obstacle> {
        let mut opened = self.opened.lock().await;
        let known = opened.as_ref().filter(|_| !renewed).cloned();
        let mut plan = self.plan.clone();
        let is_kept = self.placements.asker().authorize(&mut plan, &self.poster, renewed).await?;
        let has_session = plan.adapter.needs_session();
        if let Some(known) = known {
            return Ok((Opened { facts: plan.facts, reply: known.reply }, is_kept || has_session));
        }
        let reply = self.placements.asker().ask(&mut plan, &self.poster, is_kept).await?;
        if plan.adapter.is_asynchronous()
            && let Some(id) = &reply.id
        {
            let conversations = &self.placements.conversations;
            let kept = conversations.hold_inbound(&self.organization, self.result_id, self.agent_id, id).await;
            kept.map_err(|error| {
                tracing::error!(%error, "failed to keep the name of a conversation");
                Obstacle::new(ErrorCode::BridgePreStartFailed, "The engine could not keep the session's id")
            })?;
        }
        let made = Opened { facts: plan.facts, reply };
        *opened = Some(made.clone());
        Ok((made, is_kept))
    }

    fn trouble(&self, obstacle: Obstacle) -> Trouble {
        let codes = self.codes();
        let codes = match &obstacle.code {
            ErrorCode::Platform(_, PlatformFault::AuthFailed) => [codes.auth; 2],
            ErrorCode::CustomerConcurrencyLimit => ["CUSTOMER_CONCURRENCY_LIMIT"; 2],
            ErrorCode::BridgePreStartFailed => ["BRIDGE_PRE_START_FAILED", "INTERNAL_ERROR"],
            _ => [codes.setup, codes.agent],
        };
        Trouble { codes, message: obstacle.message, again: None, is_late: false, status: None }
    }
}

impl PlatformProtocol for Conversation {
    fn codes(&self) -> PlatformCodes {
        let code = |fault: PlatformFault| fault.of(self.plan.platform);
        PlatformCodes {
            auth: code(PlatformFault::AuthFailed),
            connect: code(PlatformFault::BridgeConnectFailed),
            setup: code(PlatformFault::SessionSetupFailed),
            agent: code(PlatformFault::AgentError),
        }
    }

    fn request<'a>(&'a self, message: &'a Message, renewed: bool) -> BoxFuture<'a, Result<PlatformRequest, Trouble>> {
        Box::pin(async move {
            let opened = self.open(renewed).await;
            let (Opened { facts, reply }, may_have_expired) = opened.map_err(|obstacle| self.trouble(obstacle))?;
            let id = message.id.to_string();
            let is_first = message.history.is_empty();
            let part = ChatMessage { id: &id, text: &message.text, ends: message.ends, is_first };
            let made = self.plan.adapter.chat_request(&facts, &reply, part);
            let made = made.map_err(|why| self.trouble(self.plan.obstacle(PlatformFault::SessionSetupFailed, why)))?;
            let (method, url, headers, body) = (made.method, made.url, made.headers, made.body);
            Ok(PlatformRequest { method, url, headers, body, may_have_expired: may_have_expired && !renewed })
        })
    }

    fn parse(&self, answer: &Value) -> Result<Reply, String> {
        let read = self.plan.adapter.read_reply(answer)?;
        let calls = read.calls.into_iter();
        let calls = calls.map(|call| Called { name: call.name, parameters: call.parameters, output: call.output });
        Ok(Reply { text: read.text, ends: read.ends, calls: calls.collect(), id: None })
    }

    fn is_asynchronous(&self) -> bool {
        self.plan.adapter.is_asynchronous()
    }

    fn can_ask_to_begin(&self) -> bool {
        self.plan.adapter.can_ask_to_begin()
    }

    fn target(&self) -> Option<String> {
        self.plan.adapter.chat_target(&self.plan.facts)
    }
}
