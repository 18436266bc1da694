//! Agents: who is tested, how it is reached, and its signing key.

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_media::seed::Seed;
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentRecord, AgentSpec, AgentType};
use ringer_model::agent_version::LATEST;
use ringer_model::alert::AlertDoc;
use ringer_model::api_key::Scope;
use ringer_model::call_log::CallLogDoc;
use ringer_model::id::IdString;
use ringer_model::monitor::MonitorDoc;
use ringer_model::secret::masked_debug;
use ringer_model::time::Timestamp;
use ringer_model::webhook::WebhookDoc;
use ringer_store::{Owner, Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Library;
use super::field_rules::{self, apply_patch};
use super::versions::{Draft, first_version, versions_of};
use crate::{Caller, Settings};

/// Response to adding or deleting an agent.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentAdded {
    /// Id of the agent.
    pub agent_id: i64,
    /// Always the text `200`.
    pub status: String,
    /// Signing key, when one was made.
    pub http_webhook_key: Option<String>,
    /// Members of `red_team_profile` and `workflow` that are stored and not used; left out when all are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Response to changing an agent.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentUpdated {
    /// Fields of the agent that the request set.
    pub agent: AgentGiven,
    /// Always the text `200`.
    pub status: String,
    /// Signing key, when one was made.
    pub http_webhook_key: Option<String>,
    /// Members of the given `red_team_profile` and `workflow` that are stored and not used; left out when all are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The agent that was named for a change, and the given fields as they now are.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("required" = ["agent_id"]))]
pub struct AgentGiven {
    /// Id as it was sent; that of the agent where it was named by `external_agent_id` alone. Null when null was sent.
    pub agent_id: Option<String>,
    /// Fields as they stood in the request.
    #[serde(flatten)]
    pub fields: Object,
}

/// Outcome of a change of an agent.
pub(crate) struct AgentAmended {
    /// Agent after the change.
    pub spec: AgentSpec,
    /// Signing key, when one was made.
    pub new_key: Option<String>,
    /// True if something differs from what was stored.
    pub changed: bool,
}

/// A signing key in plain.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct SigningKey {
    /// Signing key, 64 hexadecimal characters.
    pub signing_key: String,
    /// Confirmation in words, for display.
    pub message: String,
}

masked_debug!(AgentAdded, AgentGiven, AgentUpdated, SigningKey);

impl Library {
    /// Makes an agent with version 1 of its prompt, labelled production, latest and as asked.
    pub async fn add_agent(&self, caller: &Caller, spec: AgentSpec) -> Result<AgentAdded> {
        self.look_at_urls(spec.posted_to()).await?;
        let warning = spec.unused_members();
        let mut db = self.store.org(&caller.organization).write().await?;
        let (agent_id, http_webhook_key) = self.insert_agent(&mut db, caller, spec).await?;
        db.answer(AgentAdded { agent_id, status: "200".into(), http_webhook_key, warning }).await
    }

    /// Checks and inserts an agent; answers its id and its signing key.
    pub(crate) async fn insert_agent(
        &self,
        db: &mut Session,
        caller: &Caller,
        mut spec: AgentSpec,
    ) -> Result<(i64, Option<String>)> {
        let now = self.clock.now_ms();
        self.check_agent(db, &mut spec, None).await?;
        let http_webhook_key = spec.http_webhook.as_ref().map(|_| signing_key());
        let folder_id = self.folder_named(db, caller, spec.folder.as_deref()).await?;
        let (prompt, labels) = (std::mem::take(&mut spec.system_prompt), std::mem::take(&mut spec.labels));
        let doc = AgentDoc {
            folder_id,
            http_webhook_key: http_webhook_key.clone(),
            inbound_token: spec.p11_bot_id.as_ref().map(|_| signing_key()),
            deleted_version: 0,
            spec,
        };
        let agent_id = db.insert(&doc, now, Some(caller.author())).await?;
        db.insert(&first_version(agent_id, prompt, &labels), now, Some(caller.author())).await?;
        self.keep_labels(db, caller, agent_id, &labels).await?;
        Ok((agent_id, http_webhook_key))
    }

    /// Returns one agent of the caller's organization.
    pub async fn agent(&self, caller: &Caller, agent_id: i64) -> Result<AgentRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let found = db.agents_with_texts(Some(("id", agent_id.into()))).await?;
        found.into_iter().next().map(|found| read_agent(caller, found)).ok_or(Error::NotFound("Agent"))
    }

    /// Returns a stored agent with everything that its calls need.
    pub async fn stored_agent(&self, caller: &Caller, agent_id: i64) -> Result<AgentDoc> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.find::<AgentDoc>(agent_id).await?.map(|row| row.doc).ok_or(Error::NotFound("Agent"))
    }

    /// Returns an agent as it would be stored; every rule on its fields is checked.
    pub async fn agent_to_be(&self, mut spec: AgentSpec) -> Result<AgentDoc> {
        self.look_at_urls(spec.posted_to()).await?;
        field_rules::first(broken_rules(&mut spec, &self.settings))?;
        let http_webhook_key = spec.http_webhook.as_ref().map(|_| signing_key());
        Ok(AgentDoc { spec, http_webhook_key, ..AgentDoc::default() })
    }

    /// Returns the agent with the customer's own identifier.
    pub async fn agent_by_external_id(&self, caller: &Caller, external_id: &str) -> Result<AgentRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let found = db.agents_with_texts(Some(("external_id", external_id.into()))).await?;
        found.into_iter().next().map(|found| read_agent(caller, found)).ok_or(Error::NotFound("Agent"))
    }

    /// Returns all agents, newest first.
    pub async fn all_agents(&self, caller: &Caller) -> Result<Vec<AgentRecord>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let found = db.agents_with_texts(None).await?;
        Ok(found.into_iter().map(|found| read_agent(caller, found)).collect())
    }

    /// Changes the given fields. Without an id the agent is found by the given `external_agent_id`.
    pub async fn update_agent(
        &self,
        caller: &Caller,
        agent_id: Option<&IdString>,
        patch: Object,
    ) -> Result<AgentUpdated> {
        let looked = self.look_at_urls(AgentSpec::posted_to_in(&patch)).await;
        let mut db = self.store.org(&caller.organization).write().await?;
        let external = patch.get("external_agent_id").and_then(Value::as_str);
        let row = find_agent(&mut db, agent_id, external).await?;
        looked?;
        let named = AgentGiven { agent_id: agent_id.map(|id| id.0.clone()), fields: Object::new() };
        self.change_agent(db, caller, row, patch, named).await
    }

    /// Changes an agent as [`Library::update_agent`] does, found by the customer's own identifier.
    pub async fn update_agent_by_external_id(
        &self,
        caller: &Caller,
        external_id: &str,
        patch: Object,
    ) -> Result<AgentUpdated> {
        let looked = self.look_at_urls(AgentSpec::posted_to_in(&patch)).await;
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = by_external_id(&mut db, external_id).await?;
        looked?;
        let fields = Object::from_iter([("external_agent_id".to_owned(), external_id.into())]);
        let named = AgentGiven { agent_id: Some(row.id.to_string()), fields };
        self.change_agent(db, caller, row, patch, named).await
    }

    /// Deletes an agent with its simulations, runs, results, versions, monitors, issues and call logs. Alerts and
    /// webhooks name it no more.
    pub async fn delete_agent(&self, caller: &Caller, agent_id: i64) -> Result<AgentAdded> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<AgentDoc>(agent_id).await?;
        if db.has_open_results(Owner::Agent, agent_id).await? {
            return Err(Error::Conflict("Agent has running simulations".into()));
        }
        let results = db.result_ids(Owner::Agent, agent_id).await?;
        let calls: Vec<Row<CallLogDoc>> = db.by("agent_id", agent_id).await?;
        for mut monitor in db.by::<MonitorDoc>("agent_id", agent_id).await? {
            self.outbox.close_incident(&mut db, &mut monitor, "the agent was deleted").await?;
        }
        let humans = db.digital_humans_of_agent(agent_id).await?;
        self.strike(&mut db, caller, &[agent_id], |alert: &mut AlertDoc| &mut alert.spec.agent_ids).await?;
        self.strike(&mut db, caller, &[agent_id], |webhook: &mut WebhookDoc| &mut webhook.spec.agent_ids).await?;
        db.delete::<AgentDoc>(agent_id).await?;
        self.silence(&mut db, caller, humans).await?;
        db.commit().await?;
        self.settings.remove_result_files(&results).await;
        for call in calls {
            self.settings.remove_call_files(call.id).await;
        }
        Ok(AgentAdded { agent_id, status: "200".into(), http_webhook_key: None, warning: None })
    }

    /// Makes a signing key; the old one is no longer valid.
    pub async fn generate_http_webhook_key(
        &self,
        caller: &Caller,
        agent_id: Option<&IdString>,
        external_agent_id: Option<&str>,
    ) -> Result<SigningKey> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = find_agent(&mut db, agent_id, external_agent_id).await?;
        let key = signing_key();
        row.doc.http_webhook_key = Some(key.clone());
        db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.answer(SigningKey { signing_key: key, message: "Signing key generated".into() }).await
    }

    /// Returns the signing key in force.
    pub async fn get_http_webhook_key(
        &self,
        caller: &Caller,
        agent_id: Option<&IdString>,
        external_agent_id: Option<&str>,
    ) -> Result<SigningKey> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = find_agent(&mut db, agent_id, external_agent_id).await?;
        let key = row.doc.http_webhook_key.ok_or(Error::NotFound("Signing key"))?;
        Ok(SigningKey { signing_key: key, message: "Signing key retrieved".into() })
    }

    async fn change_agent(
        &self,
        mut db: Session,
        caller: &Caller,
        row: Row<AgentDoc>,
        patch: Object,
        mut agent: AgentGiven,
    ) -> Result<AgentUpdated> {
        let changed = self.amend_agent(&mut db, caller, row, &patch).await?;
        agent.fields.extend(fields_of_patch(&patch, &changed.spec)?);
        let (status, warning) = ("200".into(), changed.spec.unused_in(&patch));
        db.answer(AgentUpdated { agent, status, http_webhook_key: changed.new_key, warning }).await
    }

    /// Lays the given fields over an agent, checks what comes out and stores it when it differs.
    pub(crate) async fn amend_agent(
        &self,
        db: &mut Session,
        caller: &Caller,
        row: Row<AgentDoc>,
        patch: &Object,
    ) -> Result<AgentAmended> {
        let old = row.doc.clone();
        let mut doc = row.doc;
        let mut spec = apply_patch(&doc.spec, patch)?;
        self.check_agent(db, &mut spec, Some(row.id)).await?;
        if patch.contains_key("folder") {
            doc.folder_id = self.folder_named(db, caller, spec.folder.as_deref()).await?;
        }
        let new_key = (spec.http_webhook.is_some() && doc.http_webhook_key.is_none()).then(signing_key);
        doc.http_webhook_key = doc.http_webhook_key.or_else(|| new_key.clone());
        if spec.p11_bot_id.is_some() && doc.inbound_token.is_none() {
            doc.inbound_token = Some(signing_key());
        }
        let text = patch.get("system_prompt").and_then(Value::as_str);
        let new_text = match text {
            Some(text) => self.new_version_if_changed(db, caller, row.id, text).await?,
            None => false,
        };
        let new_labels =
            patch.contains_key("labels") && self.label_first_version(db, caller, row.id, &spec.labels).await?;
        // They are no part of what is stored.
        (spec.system_prompt, spec.labels, spec.folder) = Default::default();
        doc.spec = spec.clone();
        let changed = new_text || new_labels || doc != old;
        if changed {
            db.update(row.id, &doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        Ok(AgentAmended { spec, new_key, changed })
    }

    /// Refuses names that lead to where nothing may be sent. Done before the transaction: names may take long.
    async fn look_at_urls(&self, urls: [Option<&str>; 7]) -> Result<()> {
        let given = AgentSpec::POSTED_TO.into_iter().zip(urls);
        let urls: Vec<(String, String)> =
            given.filter_map(|(field, url)| Some((field.to_owned(), url?.to_owned()))).collect();
        field_rules::look(&urls, &self.settings, self.poster.guard()).await
    }

    /// True when the text was not the latest version's: it is now.
    async fn new_version_if_changed(
        &self,
        db: &mut Session,
        caller: &Caller,
        agent_id: i64,
        text: &str,
    ) -> Result<bool> {
        db.hold_agent(agent_id).await?;
        let versions = versions_of(db, agent_id).await?;
        if versions.iter().any(|row| row.doc.holds(LATEST) && row.doc.prompt_text == text) {
            return Ok(false);
        }
        let draft = Draft { prompt_text: Some(text.to_owned()), ..Draft::default() };
        self.add_version(db, caller, agent_id, draft).await?;
        Ok(true)
    }

    /// Checks every rule on an agent's fields, in their order; numbers are left in E.164 form.
    async fn check_agent(&self, db: &mut Session, spec: &mut AgentSpec, this: Option<i64>) -> Result<()> {
        let others = |rows: Vec<Row<AgentDoc>>| rows.iter().any(|row| Some(row.id) != this);
        if let Some(code) = spec.svc_as_code_id
            && others(db.by("code_id", code).await?)
        {
            return Err(Error::Conflict("svc_as_code_id is already used".into()));
        }
        if let Some(external) = &spec.external_agent_id
            && others(db.by("external_id", external.as_str()).await?)
        {
            return Err(Error::Conflict("external_agent_id is already used".into()));
        }
        field_rules::first(broken_rules(spec, &self.settings))
    }
}

/// Returns every rule on an agent's fields that is broken, in their order; those that need other agents are not among
/// them.
pub(crate) fn broken_rules(spec: &mut AgentSpec, settings: &Settings) -> Vec<Error> {
    let numbers = [
        field_rules::phone("phone_number", &mut spec.phone_number),
        field_rules::phones("follow_up_sms_sender_numbers", &mut spec.follow_up_sms_sender_numbers),
    ];
    let refused = |is: bool, text: &str| if is { Err(Error::Refused(text.into())) } else { Ok(()) };
    let (uri, dynamic) = (spec.sip_uri.as_deref(), spec.dynamic_sip_webhook_url.as_deref());
    let both = uri.is_some() && dynamic.is_some();
    let trigger = spec.outbound_trigger_webhook_url.as_deref();
    let stray = trigger.is_some() && spec.kind != AgentType::Outbound;
    let rest = [
        field_rules::websocket(spec.websocket_url.as_deref(), settings),
        field_rules::dialect(spec.websocket_dialect.as_deref(), settings),
        field_rules::parameters(spec.websocket_parameters.as_ref()),
        field_rules::sip_uri(uri, settings),
        field_rules::webhook("dynamic_sip_webhook_url", dynamic, settings),
        refused(both, "Set either sip_uri or dynamic_sip_webhook_url, not both"),
        field_rules::webhook("outbound_trigger_webhook_url", trigger, settings),
        refused(stray, "outbound_trigger_webhook_url needs type OUTBOUND"),
        field_rules::webhook("http_webhook", spec.http_webhook.as_deref(), settings),
        field_rules::webhook("P1_token_webhook_url", spec.p1_token_webhook_url.as_deref(), settings),
        field_rules::webhook("P8_base_url", spec.p8_base_url.as_deref(), settings),
        field_rules::webhook("P12_base_url", spec.p12_base_url.as_deref(), settings),
        field_rules::webhook("simulation_notifications.webhook_url", spec.run_webhook(), settings),
    ];
    numbers.into_iter().chain(rest).filter_map(Result::err).collect()
}

/// Returns an agent with its text as it is shown, without credentials to keys that may only read.
pub(crate) fn read_agent(caller: &Caller, (row, text): (Row<AgentDoc>, String)) -> AgentRecord {
    let AgentDoc { mut spec, folder_id, http_webhook_key, inbound_token, .. } = row.doc;
    spec.connection_type = spec.connection();
    spec.provider = Some(spec.provider());
    let mut record = AgentRecord {
        id: row.id,
        agent_description: text,
        organization_id: caller.organization.clone(),
        workspace_id: Some(caller.organization.clone()),
        spec,
        folder_id,
        http_webhook_key,
        p9_persona_id: None,
        p11_inbound_token: inbound_token,
        knowledge_base: String::new(),
        created_at: Timestamp(row.created_ms),
        updated_at: Some(Timestamp(row.updated_ms)),
        created_by: row.created_by,
        updated_by: row.updated_by,
        updated_by_api_key: row.updated_by,
    };
    if !caller.scope.covers(Scope::Write) {
        record.hide_secrets();
    }
    record
}

async fn by_external_id(db: &mut Session, external_id: &str) -> Result<Row<AgentDoc>> {
    db.by("external_id", external_id).await?.into_iter().next().ok_or(Error::NotFound("Agent"))
}

async fn find_agent(db: &mut Session, id: Option<&IdString>, external: Option<&str>) -> Result<Row<AgentDoc>> {
    match (id, external) {
        (Some(id), _) => db.get(id.get().ok_or(Error::NotFound("Agent"))?).await,
        (None, Some(external)) => by_external_id(db, external).await,
        (None, None) => Err(Error::Refused("agent_id or external_agent_id is required".into())),
    }
}

/// Returns the fields of `patch` that an agent has, with the values that they now have.
fn fields_of_patch(patch: &Object, spec: &AgentSpec) -> Result<Object> {
    let stored = object(spec)?;
    let value = |key: &str, given: &Value| match key {
        "system_prompt" | "labels" | "folder" => Some(given.clone()),
        _ => stored.get(key).cloned(),
    };
    Ok(patch.iter().filter_map(|(key, given)| Some((key.clone(), value(key, given)?))).collect())
}

fn object(spec: &AgentSpec) -> Result<Object> {
    match serde_json::to_value(spec).map_err(Error::internal)? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Object::new()),
    }
}

/// Returns a new random signing key, 64 hexadecimal characters.
pub(crate) fn signing_key() -> String {
    let mut bytes = [0; 32];
    clock::random_bytes(&mut bytes);
    hex::encode(bytes)
}

/// Draws a base seed of a run from the clock's randomness when none is given.
pub(crate) fn base_seed(given: Option<i64>) -> Seed {
    Seed(given.map_or_else(clock::random_seed, |seed| seed as u64))
}
