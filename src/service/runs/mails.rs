//! Mails that come in: which conversation they belong to, and which part they take in it.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer_base::config::Email;
use ringer_base::error::{Error, Result};
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::mail::{Attachment, MailDoc, MailKind};
use ringer_model::result::ResultDoc;
use ringer_provider::mail::{Delivery, MostMail, ReadMail, read_mail};
use ringer_provider::messages::digest_of;
use ringer_store::MailOwner;
use ringer_transport::mail::Arrival;
use serde::Deserialize;
use subtle::ConstantTimeEq;
use url::Host;

use super::Runs;
use crate::conversation::artifacts::unfinished_name;
use crate::conversation::mail_thread::hasten;

/// Most mails of one conversation that are kept.
const MAILS_MOST: i64 = 1000;
/// Folder of the mails as they came and went, in the folder of a result and in its evidence.
const MAILS_FOLDER: &str = "mails";
/// Longest text in bytes that is told of a mail's header.
const HEADER_BYTES: usize = 500;

/// Fate of a mail that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailTaken {
    /// It is stored, or belongs to nobody any more.
    Kept,
    /// It can never be taken, for this reason.
    Refused(&'static str),
}

/// Message-IDs of this side's mails in a conversation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnIds {
    own_ids: Vec<String>,
}

/// Facts by which the part of a mail is decided.
struct Circumstances<'a> {
    agent: &'a AgentSpec,
    email: &'a Email,
    own_ids: &'a [String],
    /// Address of the conversation.
    address: &'a str,
    /// Sender of the envelope; empty: the null sender.
    envelope_from: &'a str,
    /// True if the sender of the envelope is known.
    has_envelope: bool,
}

impl Runs {
    /// True if mail to an address belongs to a conversation.
    pub async fn knows_mail_address(&self, address: &str) -> Result<bool> {
        Ok(self.mail_owner(address).await?.is_some())
    }

    /// Takes a mail into the conversations that it is addressed to.
    pub async fn take_mail(&self, arrival: Arrival) -> Result<MailTaken> {
        let Arrival { source, envelope_from, recipients, raw } = arrival;
        let reading = tokio::task::spawn_blocking(move || (read_mail(&raw, &MostMail::default()), raw)).await;
        let (read, raw) = reading.map_err(Error::internal)?;
        let mail = match read {
            Ok(mail) => mail,
            Err(fault) => {
                tracing::info!(bytes = raw.len(), fault = fault.as_str(), "a mail was refused");
                return Ok(MailTaken::Refused(fault.as_str()));
            }
        };
        for recipient in &recipients {
            match self.mail_owner(recipient).await? {
                Some((id, owner)) => {
                    let envelope = (envelope_from.as_str(), source.is_some());
                    self.keep_mail(id, &owner, recipient, envelope, (&mail, &raw)).await?;
                }
                None => tracing::info!("mail to a conversation that is gone"),
            }
        }
        Ok(MailTaken::Kept)
    }

    /// Writes the mails of a result as files into its folder, where they are not yet; returns their names in the
    /// evidence and their paths, in the order of the mails. One mail is in memory at a time.
    pub(crate) async fn mail_files(&self, organization: &str, result_id: i64) -> Result<Vec<(String, PathBuf)>> {
        let folder = self.settings.result_folder(result_id);
        let ids = self.store.org(organization).read().await?.raw_mails(result_id).await?;
        let mut files = Vec::with_capacity(ids.len());
        for (at, id) in ids.into_iter().enumerate() {
            let name = mail_file(at);
            let path = folder.join(&name);
            if !tokio::fs::try_exists(&path).await.unwrap_or(false) {
                let raw = self.store.org(organization).read().await?.raw_mail(id).await?;
                let bytes = STANDARD.decode(raw.unwrap_or_default()).map_err(Error::internal)?;
                let place = folder.join(MAILS_FOLDER);
                tokio::fs::create_dir_all(&place).await.map_err(Error::internal)?;
                let unfinished = place.join(unfinished_name());
                tokio::fs::write(&unfinished, bytes).await.map_err(Error::internal)?;
                tokio::fs::rename(&unfinished, &path).await.map_err(Error::internal)?;
            }
            files.push((name, path));
        }
        Ok(files)
    }

    /// Returns the conversation of an address with its result.
    async fn mail_owner(&self, address: &str) -> Result<Option<(i64, MailOwner)>> {
        let Some((id, token)) = self.settings.mail_home().and_then(|home| home.parse(address)) else { return Ok(None) };
        let owner = self.store.org("").read().await?.mail_owner(id).await?;
        let is_its = |owner: &MailOwner| bool::from(owner.token.as_bytes().ct_eq(token.as_bytes()));
        Ok(owner.filter(is_its).map(|owner| (id, owner)))
    }

    /// Stores a mail with its conversation, once. `envelope`: its sender, and if that is known.
    async fn keep_mail(
        &self,
        result_id: i64,
        owner: &MailOwner,
        address: &str,
        envelope: (&str, bool),
        (mail, raw): (&ReadMail, &[u8]),
    ) -> Result<()> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&owner.organization).write().await?;
        let Some(row) = db.find::<ResultDoc>(result_id).await? else { return Ok(()) };
        let agent = db.get::<AgentDoc>(row.doc.body.agent_id).await?.doc.spec;
        let OwnIds { own_ids } = db.mail_thread(result_id, owner.attempt).await?.unwrap_or_default();
        let circumstances = Circumstances {
            agent: &agent,
            email: &self.settings.email,
            own_ids: &own_ids,
            address,
            envelope_from: envelope.0,
            has_envelope: envelope.1,
        };
        let body = &row.doc.body;
        let is_over = !body.status.is_open() || body.attempt != owner.attempt || row.doc.inbox.ended;
        let (kind, why) = match is_over {
            true => (MailKind::Late, "the conversation is over".to_owned()),
            false => circumstances.part_of(mail),
        };
        let doc = circumstances.doc(mail, raw, kind, why);
        if db.knows_mail(result_id, &doc.message_id).await? {
            return Ok(());
        }
        if db.count_mails(result_id).await? >= MAILS_MOST {
            tracing::warn!(result_id, "too many mails of one conversation: this one is not kept");
            return Ok(());
        }
        let kept = (!agent.redact_pii).then(|| STANDARD.encode(raw));
        db.add_mail(result_id, owner.attempt, &doc, kept, now).await?;
        if !is_over {
            hasten(&mut db, result_id, owner.attempt, now).await?;
        }
        db.commit().await?;
        tracing::info!(result_id, kind = kind.as_str(), bytes = raw.len(), "mail taken");
        self.live.note_change(result_id);
        Ok(())
    }
}

impl Circumstances<'_> {
    /// Returns the part that a mail takes in its conversation, and why.
    fn part_of(&self, mail: &ReadMail) -> (MailKind, String) {
        let part = |kind, why: &str| (kind, why.to_owned());
        let is_own = |id: &String| self.own_ids.contains(id);
        if let Some(report) = &mail.report {
            let is_ours = report.about.iter().chain(&mail.references).any(is_own);
            let why = format!("{} {}", report.status, report.why);
            return match report.delivery {
                Delivery::Failed if is_ours => (MailKind::Failed, short(&why)),
                Delivery::Delayed if is_ours => (MailKind::Delayed, short(&why)),
                _ => part(MailKind::Automatic, "a report on the delivery of a mail"),
            };
        }
        if mail.message_id.as_ref().is_some_and(is_own) || is_same_address(&mail.sender.address, self.address) {
            return part(MailKind::Automatic, "an own mail that came back");
        }
        if self.has_envelope && self.envelope_from.is_empty() {
            return part(MailKind::Automatic, "the null sender");
        }
        if mail.is_list {
            return part(MailKind::Automatic, "mail of a list");
        }
        let is_allowed = self.allowed_senders().any(|allowed| matches_sender(allowed, &mail.sender.address));
        if !is_allowed {
            let kind = if mail.is_automatic { MailKind::Automatic } else { MailKind::Rejected };
            return (kind, short(&format!("sender {}", show_address(&mail.sender.address))));
        }
        if self.email.check_envelope && !self.is_domain_allowed() {
            return (
                MailKind::Rejected,
                short(&format!("sender of the envelope {}", show_address(self.envelope_from))),
            );
        }
        if let Some(relay) = &self.email.require_auth_results
            && !mail.auth_results.iter().find_map(|result| verdict_of(result, relay)).unwrap_or(false)
        {
            return part(MailKind::Rejected, "no pass in Authentication-Results of the relay");
        }
        if mail.is_automatic && !self.email.automatic_replies {
            return part(MailKind::Automatic, "an automatic reply");
        }
        part(MailKind::Turn, "")
    }

    /// Returns the senders whose mail is the agent's.
    fn allowed_senders(&self) -> impl Iterator<Item = &str> {
        let replies = &self.agent.email_reply_addresses;
        let own = self.agent.email_address.iter().filter(|_| replies.is_empty());
        replies.iter().chain(own).map(String::as_str)
    }

    /// True if the envelope's sender is of the domain of an allowed one.
    fn is_domain_allowed(&self) -> bool {
        let domain = |address: &str| address.rsplit_once('@').and_then(|(_, domain)| plain_domain(domain));
        let own = domain(self.envelope_from);
        own.is_some() && self.allowed_senders().any(|allowed| domain(allowed) == own)
    }

    fn doc(&self, mail: &ReadMail, raw: &[u8], kind: MailKind, why: String) -> MailDoc {
        let sha256 = digest_of(raw);
        let names_own = mail.references.iter().any(|id| self.own_ids.contains(id));
        let attachments = mail.files.iter().map(|file| Attachment {
            name: short(&file.name),
            kind: short(&file.kind),
            bytes: file.bytes,
        });
        MailDoc {
            kind,
            from: short(&mail.sender.address),
            envelope_from: short(self.envelope_from),
            to: self.address.to_owned(),
            subject: short(&mail.subject),
            message_id: mail.message_id.as_ref().map_or_else(|| format!("sha256:{sha256}"), |id| short(id)),
            references: mail.references.iter().take(100).map(|id| short(id)).collect(),
            text: mail.words.clone(),
            quoted: mail.quoted.clone(),
            bytes: raw.len() as u64,
            sha256,
            attachments: attachments.collect(),
            why,
            // Where this side has written nothing, there is nothing to name.
            unthreaded: !names_own && !self.own_ids.is_empty(),
        }
    }
}

/// Returns the name of a raw mail in the evidence, by its position among those that are kept.
pub(super) fn mail_file(at: usize) -> String {
    format!("{MAILS_FOLDER}/{:04}.eml", at + 1)
}

/// Returns the beginning of a text from a mail.
fn short(text: &str) -> String {
    text[..text.floor_char_boundary(HEADER_BYTES)].trim().to_owned()
}

/// Returns an address for a log: characters that look like others are written by their numbers.
fn show_address(address: &str) -> String {
    match address {
        "" => "not known".to_owned(),
        address => address.escape_default().to_string(),
    }
}

/// True if an address is an allowed one: that address, or of its domain where it is like `*@example.com`.
fn matches_sender(allowed: &str, address: &str) -> bool {
    let Some((user, domain)) = allowed.trim().rsplit_once('@') else { return false };
    let Some((own_user, own_domain)) = address.rsplit_once('@') else { return false };
    // Letters of other scripts become ASCII in lower case, as the Kelvin sign does.
    let is_user =
        user == "*" || (user.is_ascii() == own_user.is_ascii() && user.to_lowercase() == own_user.to_lowercase());
    is_user && plain_domain(domain).is_some_and(|domain| plain_domain(own_domain) == Some(domain))
}

fn is_same_address(one: &str, other: &str) -> bool {
    !one.is_empty() && matches_sender(other, one)
}

/// Returns a domain as it is in the DNS, so that no letter of another script passes for one of ours.
fn plain_domain(domain: &str) -> Option<String> {
    match Host::parse(domain.trim()) {
        Ok(Host::Domain(domain)) => Some(domain),
        _ => None,
    }
}

/// Returns true if a value of Authentication-Results (RFC 8601) tells of a pass; `None`: it is of another relay. DMARC
/// decides where it is told, else SPF or DKIM. The first value of a relay counts: others below it may have come with
/// the mail.
fn verdict_of(value: &str, relay: &str) -> Option<bool> {
    let mut parts = value.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let name = name.split_whitespace().next().unwrap_or_default();
    if !name.eq_ignore_ascii_case(relay) {
        return None;
    }
    let results: Vec<String> =
        parts.filter_map(|part| part.split_whitespace().next().map(str::to_ascii_lowercase)).collect();
    Some(match results.iter().find(|result| result.starts_with("dmarc=")) {
        Some(dmarc) => dmarc == "dmarc=pass",
        None => results.iter().any(|result| result == "spf=pass" || result == "dkim=pass"),
    })
}

#[cfg(test)]
mod tests;
