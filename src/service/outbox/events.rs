//! Events for webhooks: each is written in the transaction of the change that it reports.

use std::net::SocketAddr;

use ringer_base::clock;
use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec, AgentType};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::result::ResultDoc;
use ringer_model::run::RunDoc;
use ringer_model::status::ResultStatus;
use ringer_model::webhook::{EventType, WebhookDoc};
use ringer_model::webhook_event::{AwaitedHuman, OutboundStarted, ResultEvaluated, SimulationEnded, call_evaluated};
use ringer_store::queue::outbox::Event;
use ringer_store::{Row, Session, to_text};
use serde::Serialize;
use uuid::Uuid;

use super::Outbox;
use super::addresses::{address_uri, address_user, number};

/// The webhooks of an event, and the folder of its agent.
struct Audience {
    webhooks: Vec<Uuid>,
    folder_id: Option<Uuid>,
}

impl Outbox {
    /// Tells webhooks that a result has entered CONVERSATION_ENDED.
    pub(crate) async fn tell_ended(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<()> {
        let audience = audience(db, EventType::SimulationEnded, row.doc.body.agent_id, None).await?;
        let event = SimulationEnded::of(row.id, &row.doc, row.created_ms);
        self.tell(db, &audience, EventType::SimulationEnded, Some(row.id), &event).await
    }

    /// Tells webhooks that a result has become terminal, or was evaluated again.
    pub(crate) async fn tell_evaluated(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<()> {
        let kind = EventType::SimulationResultEvaluated;
        let audience = audience(db, kind, row.doc.body.agent_id, None).await?;
        let event = ResultEvaluated::of(row.id, &row.doc, row.created_ms, audience.folder_id);
        self.tell(db, &audience, kind, Some(row.id), &event).await
    }

    /// Tells webhooks that a result has become READY: the first of its run tells it, when the agent is the one that
    /// calls.
    pub(crate) async fn tell_awaited(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<()> {
        let body = &row.doc.body;
        let mut run = db.get::<RunDoc>(body.simulation_run_id).await?;
        let agent = db.get::<AgentDoc>(body.agent_id).await?.doc;
        if run.doc.start_told || agent.spec.kind != AgentType::Outbound {
            return Ok(());
        }
        run.doc.start_told = true;
        db.update(run.id, &run.doc, self.clock.now_ms(), None).await?;
        let kind = EventType::OutboundSimulationStarted;
        let audience = audience(db, kind, body.agent_id, None).await?;
        let humans = awaited_humans(db, run.id, &agent.spec, self.live.sip_address()).await?;
        let event = OutboundStarted::of(body.agent_id, body.simulation_id, run.id, humans);
        self.tell(db, &audience, kind, None, &event).await
    }

    /// Tells webhooks that a call log has been evaluated, for the first time or again. `tag` is its `webhook_tag`,
    /// `call_log` what is read of it.
    pub async fn tell_call(&self, db: &mut Session, agent_id: i64, tag: Option<&str>, call_log: Object) -> Result<()> {
        let kind = EventType::ObservabilityCallEvaluated;
        let audience = audience(db, kind, agent_id, Some(tag)).await?;
        self.tell(db, &audience, kind, None, &call_evaluated(call_log)).await
    }

    async fn tell(
        &self,
        db: &mut Session,
        audience: &Audience,
        kind: EventType,
        result_id: Option<i64>,
        body: &(impl Serialize + Sync),
    ) -> Result<()> {
        if audience.webhooks.is_empty() {
            return Ok(());
        }
        let subject = result_id.map(|id| format!("result:{id}"));
        let event = Event { id: clock::new_id(), kind: kind.as_str(), subject, body: to_text(body)? };
        for webhook in &audience.webhooks {
            db.put_event(*webhook, &event, self.clock.now_ms()).await?;
        }
        Ok(())
    }
}

/// Returns the webhooks that want an event of an agent; `tag` is given for call logs alone.
async fn audience(db: &mut Session, kind: EventType, agent_id: i64, tag: Option<Option<&str>>) -> Result<Audience> {
    let rows = db.by::<WebhookDoc>("enabled", true).await?;
    if rows.is_empty() {
        return Ok(Audience { webhooks: Vec::new(), folder_id: None });
    }
    let folder_id = db.find::<AgentDoc>(agent_id).await?.and_then(|agent| agent.doc.folder_id);
    let tagged = |wanted: &Option<String>| match (wanted, tag) {
        (Some(wanted), Some(tag)) => tag == Some(wanted.as_str()),
        _ => true,
    };
    let wants = |row: &Row<WebhookDoc>| row.doc.spec.wants(kind, agent_id, folder_id) && tagged(&row.doc.spec.tag);
    // Oldest first.
    Ok(Audience { webhooks: rows.iter().rev().filter(|row| wants(row)).map(|row| row.id).collect(), folder_id })
}

/// Returns the Digital Humans of a run with their results, in order of their first. `at`: where calls come in.
async fn awaited_humans(
    db: &mut Session,
    run_id: i64,
    agent: &AgentSpec,
    at: Option<SocketAddr>,
) -> Result<Vec<AwaitedHuman>> {
    let mut humans: Vec<AwaitedHuman> = Vec::new();
    let results = db.results_of_run(run_id).await?;
    // A journey listens on the number of the step that has come.
    let awaited_step = |human: i64| {
        let of_human = results.iter().filter(|row| row.doc.body.digital_human_id == Some(human));
        let ready = of_human.clone().find(|row| row.doc.body.status == ResultStatus::Ready);
        ready.or(of_human.clone().next()).and_then(|row| row.doc.body.journey_step)
    };
    for result in &results {
        let Some(id) = result.doc.body.digital_human_id else { continue };
        if let Some(known) = humans.iter_mut().find(|human| human.id == id) {
            known.associated_simulation_result_ids.push(result.id);
            continue;
        }
        let spec = db.find::<DigitalHumanSpec>(id).await?.map(|row| row.doc).unwrap_or_default();
        let step = spec.step(awaited_step(id));
        let met = agent.met_in(step);
        let at = at.filter(|_| met.calls_by_sip());
        let phone_number = number(&met, &spec, step).unwrap_or_default().to_owned();
        let sip_uri = address_uri(&address_user(db.organization(), id, &spec, run_id), at);
        humans.push(AwaitedHuman {
            id,
            name: spec.name.unwrap_or_default(),
            phone_number,
            sip_uri,
            associated_simulation_result_ids: vec![result.id],
        });
    }
    Ok(humans)
}
