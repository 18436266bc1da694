//! The job `notify`: delivers one notification over its channel; what fails is tried again, later and later.

use std::time::Duration;

use ringer_base::clock;
use ringer_base::clock::Clock;
use ringer_base::config::Notify;
use ringer_base::error::Result;
use ringer_base::guard::Guard;
use ringer_base::post::{Poster, signatures};
use ringer_media::seed::Seed;
use ringer_model::notification::{Channel, ChannelType, Notice};
use ringer_provider::mail::{Mail, mail};
use ringer_store::queue::NotifyJob;
use serde_json::{Value, json};

use super::upkeep::Upkeep;

/// Waits before the second attempt and those after it.
const WAITS_MS: [i64; 6] = [5000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000];
/// Time limit for a connection and its answer together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest random change of a wait, as a share of it, so that notifications that failed together are not repeated
/// together.
const SPREAD: f64 = 0.2;
/// The answer of somebody who wants to hear no more (RFC 9110 15.5.11).
const GONE: &str = "answered 410";
/// Error of a channel without settings: another attempt would not help.
const NOT_CONFIGURED: &str = "channel not configured";
/// Reason why an overtaken notification is not sent to a pager.
const OVERTAKEN: &str = "there is newer news of it";

pub(super) async fn run(upkeep: &Upkeep, job: &NotifyJob) -> Result<()> {
    let service = &upkeep.service;
    let Some(doc) = service.watching().pending_notification(job).await? else { return Ok(()) };
    // A page that comes late would open an incident again that is over, or end the next one.
    if doc.channel.kind == ChannelType::Pager && service.watching().is_overtaken(job, &doc).await? {
        return service.watching().keep_attempt(job, Some(OVERTAKEN.to_owned()), None).await;
    }
    let poster =
        Poster::new(Guard::new(service.settings().allow_private_targets).trusting(&service.settings().roots), PATIENCE);
    let settings = &service.settings().notify;
    let why = match deliver(job, &doc.channel, &doc.notice, settings, &poster, service.clock()).await {
        Ok(()) => return service.watching().keep_attempt(job, None, None).await,
        Err(why) => why,
    };
    let wait = WAITS_MS.get(job.attempt as usize - 1).filter(|_| why != NOT_CONFIGURED && why != GONE);
    let unit = Seed(clock::random_seed()).stream("wait").unit();
    let spread = |wait: &i64| (*wait as f64 * (1.0 + SPREAD * (2.0 * unit - 1.0))) as i64;
    let again = wait.map(|wait| service.clock().now_ms() + spread(wait));
    tracing::warn!(notification = %job.notification_id, attempt = job.attempt, why, "failed to deliver a notification");
    service.watching().keep_attempt(job, Some(why), again).await
}

/// Delivers the notification.
///
/// # Errors
/// The reason why nobody was reached.
async fn deliver(
    job: &NotifyJob,
    channel: &Channel,
    notice: &Notice,
    settings: &Notify,
    poster: &Poster,
    clock: &Clock,
) -> Result<(), String> {
    let target = channel.target.as_str();
    let is_url = target.contains("://");
    let (url, headers, body) = match (channel.kind, &settings.slack_token, &settings.pager_url) {
        (ChannelType::Email, ..) => return by_mail(target, notice, settings).await,
        (ChannelType::Webhook, ..) => (target, Vec::new(), webhook_body(notice)),
        (ChannelType::Slack, ..) if is_url => (target, Vec::new(), json!({ "text": text(notice) })),
        (ChannelType::Slack, Some(token), _) => {
            let bearer = vec![("authorization", format!("Bearer {}", token.expose()))];
            (settings.slack_url.as_str(), bearer, json!({ "channel": target, "text": text(notice) }))
        }
        (ChannelType::Pager, _, Some(url)) => (url.as_str(), Vec::new(), pager_body(target, notice)),
        (ChannelType::Slack | ChannelType::Pager, ..) => return Err(NOT_CONFIGURED.to_owned()),
    };
    let body = body.to_string();
    let mut headers = headers;
    if channel.kind == ChannelType::Webhook {
        headers.push(("x-svc-event", notice.kind.as_str().to_owned()));
        headers.push(("x-svc-event-id", job.notification_id.to_string()));
        headers.push(("x-svc-delivery", clock::new_id().to_string()));
        let (id, now_ms) = (job.notification_id.to_string(), clock.now_ms());
        headers.extend(settings.key.iter().flat_map(|key| signatures(key.expose(), &id, now_ms, &body)));
    }
    match poster.post(url, &headers, body).await? {
        200..=299 => Ok(()),
        status => Err(format!("answered {status}")),
    }
}

async fn by_mail(to: &str, notice: &Notice, settings: &Notify) -> Result<(), String> {
    let (Some(relay), Some(from)) = (&settings.smtp_url, &settings.from) else {
        return Err(NOT_CONFIGURED.to_owned());
    };
    let text = [vec![notice.text.clone()], notice.links.clone()].concat().join("\n");
    let sent = mail(relay.expose(), Mail { from, to, subject: &notice.title, text: &text }).await;
    sent.map_err(|failure| failure.message)
}

fn text(notice: &Notice) -> String {
    format!("{}: {}", notice.title, notice.text)
}

fn webhook_body(notice: &Notice) -> Value {
    let Notice { kind, title, text, at, links, data, .. } = notice;
    json!({ "kind": kind, "title": title, "text": text, "at": at, "links": links, "data": data })
}

fn pager_body(routing_key: &str, notice: &Notice) -> Value {
    let action = if notice.resolves() { "resolve" } else { "trigger" };
    json!({
        "routing_key": routing_key, "event_action": action, "dedup_key": notice.subject,
        "payload": { "summary": notice.title, "source": "ringer", "severity": "critical", "timestamp": notice.at },
    })
}
