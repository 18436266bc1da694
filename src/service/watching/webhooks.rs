//! Webhooks: who is told of what. Events are written by the outbox, and delivered by `delivery`.

mod delivery;

use ringer_base::error::{Error, Result};
use ringer_model::agent::AgentDoc;
use ringer_model::folder::FolderSpec;
use ringer_model::secret::masked_debug;
use ringer_model::time::Timestamp;
use ringer_model::webhook::{DeliveryRecord, WebhookDoc, WebhookRecord, WebhookSpec};
use ringer_model::{Object, Page};
use ringer_store::queue::outbox::KIND;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub use self::delivery::WebhookTested;

use super::Watching;
use crate::Caller;
use crate::library::agents::{SigningKey, signing_key};
use crate::library::field_rules;
use crate::library::field_rules::apply_patch;
use crate::library::lists::check_named;

/// A new webhook with its signing key.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct WebhookAdded {
    /// The new webhook, without its key.
    #[serde(flatten)]
    pub webhook: WebhookRecord,
    /// Signing key of the webhook, 64 hexadecimal characters.
    pub signing_key: String,
}

masked_debug!(WebhookAdded);

/// List of all webhooks of the organization.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WebhookList {
    /// Webhooks of the organization, newest first.
    pub webhooks: Vec<WebhookRecord>,
    /// Number of webhooks in the list.
    pub total_count: i64,
}

/// Response to deleting a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WebhookDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted webhook.
    pub deleted_webhook_id: Uuid,
}

/// A page of the log of a webhook's deliveries.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeliveryPage {
    /// Deliveries of this page, newest first.
    pub deliveries: Vec<DeliveryRecord>,
    /// Number of deliveries on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of entries on a page.
    pub page_size: i64,
    /// Total number of pages.
    pub total_pages: i64,
}

impl Watching {
    /// Makes a webhook with a signing key.
    pub async fn create_webhook(&self, caller: &Caller, spec: WebhookSpec) -> Result<WebhookAdded> {
        self.check_webhook_url(&spec.url).await?;
        let mut db = self.store.org(&caller.organization).write().await?;
        check_filters(&mut db, &spec, None).await?;
        let doc = WebhookDoc { spec, signing_key: signing_key(), ..WebhookDoc::default() };
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        db.answer(WebhookAdded { webhook: record_of(caller, row), signing_key: doc.signing_key }).await
    }

    /// Returns all webhooks, newest first.
    pub async fn webhooks(&self, caller: &Caller) -> Result<WebhookList> {
        let rows = self.store.org(&caller.organization).read().await?.all().await?;
        let webhooks: Vec<WebhookRecord> = rows.into_iter().map(|row| record_of(caller, row)).collect();
        Ok(WebhookList { total_count: webhooks.len() as i64, webhooks })
    }

    /// Returns one webhook of the caller's organization.
    pub async fn webhook(&self, caller: &Caller, id: Uuid) -> Result<WebhookRecord> {
        Ok(record_of(caller, self.store.org(&caller.organization).read().await?.get(id).await?))
    }

    /// Changes the given fields. One that is enabled again begins without failures.
    pub async fn update_webhook(&self, caller: &Caller, id: Uuid, patch: Object) -> Result<WebhookRecord> {
        if let Some(url) = patch.get("url").and_then(|url| url.as_str()) {
            // A webhook that is not there is told first.
            self.webhook(caller, id).await?;
            self.check_webhook_url(url).await?;
        }
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut doc = db.get::<WebhookDoc>(id).await?.doc;
        let spec: WebhookSpec = apply_patch(&doc.spec, &patch)?;
        check_filters(&mut db, &spec, Some(&doc.spec)).await?;
        if spec.enabled && !doc.spec.enabled {
            doc.consecutive_failures = 0;
        }
        doc.spec = spec;
        db.update(id, &doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        // Events that waited while it was disabled may go now.
        db.note_due(KIND);
        db.commit().await?;
        Ok(record_of(caller, row))
    }

    /// Deletes a webhook with what waits for it and the log of what it was told.
    pub async fn delete_webhook(&self, caller: &Caller, id: Uuid) -> Result<WebhookDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        if !db.delete::<WebhookDoc>(id).await? {
            return Err(Error::NotFound("Webhook"));
        }
        db.commit().await?;
        Ok(WebhookDeleted { message: "Webhook deleted".into(), deleted_webhook_id: id })
    }

    /// Returns the attempts of seven days, newest first.
    pub async fn webhook_deliveries(
        &self,
        caller: &Caller,
        id: Uuid,
        page: i64,
        page_size: i64,
    ) -> Result<DeliveryPage> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<WebhookDoc>(id).await?;
        let offset = (page - 1).saturating_mul(page_size);
        let (items, total_count) = db.deliveries(id, self.clock.now_ms(), page_size, offset).await?;
        let page = Page { items, total_count, page, page_size };
        let total_pages = page.total_pages();
        Ok(DeliveryPage { deliveries: page.items, total_count, page: page.page, page_size, total_pages })
    }

    /// Makes a signing key; the old one is no longer valid.
    pub async fn generate_signing_key(&self, caller: &Caller, webhook_id: Uuid) -> Result<SigningKey> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut doc = db.get::<WebhookDoc>(webhook_id).await?.doc;
        doc.signing_key = signing_key();
        db.update(webhook_id, &doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.answer(SigningKey { signing_key: doc.signing_key, message: "Signing key generated".into() }).await
    }

    /// Returns the signing key in force.
    pub async fn get_signing_key(&self, caller: &Caller, webhook_id: Uuid) -> Result<SigningKey> {
        let row = self.store.org(&caller.organization).read().await?.get::<WebhookDoc>(webhook_id).await?;
        Ok(SigningKey { signing_key: row.doc.signing_key, message: "Signing key retrieved".into() })
    }

    /// Refuses a URL that cannot be posted to, or that leads to where nothing may be sent.
    async fn check_webhook_url(&self, text: &str) -> Result<()> {
        field_rules::webhook("url", Some(text), &self.settings)?;
        let url = url::Url::parse(text).map_err(Error::internal)?;
        if self.settings.require_https_webhooks && url.scheme() != "https" {
            return Err(Error::Refused("url must be an https URL".into()));
        }
        field_rules::looked_up("url", &url, self.poster.guard()).await
    }
}

/// Refuses agents and folders that the organization does not have; `old` is the webhook before a change.
async fn check_filters(db: &mut Session, spec: &WebhookSpec, old: Option<&WebhookSpec>) -> Result<()> {
    check_named::<AgentDoc>(db, spec.agent_ids.as_deref(), old.and_then(|old| old.agent_ids.as_deref())).await?;
    check_named::<FolderSpec>(db, spec.folder_ids.as_deref(), old.and_then(|old| old.folder_ids.as_deref())).await
}

fn record_of(caller: &Caller, row: Row<WebhookDoc>) -> WebhookRecord {
    WebhookRecord {
        id: row.id,
        organization_id: caller.organization.clone(),
        spec: row.doc.spec,
        created_at: Timestamp(row.created_ms),
        updated_at: Timestamp(row.updated_ms),
        last_status: row.doc.last_status,
        consecutive_failures: row.doc.consecutive_failures,
    }
}
