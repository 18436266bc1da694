//! The log of the mails of a conversation: a line each, without a word of them, and the mails themselves beside it.

use std::fmt::Write;

use ringer_model::mail::{MailDoc, MailKind};
use ringer_store::MailRow;

use crate::{MAIL_LOG, Service};

/// Writes the log anew in the folder of a result. A conversation goes on without it.
pub(super) async fn write(service: &Service, result_id: i64, mails: &[MailRow]) {
    let folder = service.settings().result_folder(result_id);
    let written = async {
        tokio::fs::create_dir_all(&folder).await?;
        let unfinished = folder.join(format!("{MAIL_LOG}.part"));
        tokio::fs::write(&unfinished, text(mails)).await?;
        tokio::fs::rename(&unfinished, folder.join(MAIL_LOG)).await
    };
    if let Err(error) = written.await {
        tracing::warn!(%error, "failed to write {MAIL_LOG}");
    }
}

fn text(mails: &[MailRow]) -> String {
    let mut lines = String::new();
    for MailRow { at_ms, doc, .. } in mails {
        let _ = writeln!(lines, "{at_ms} {}", line(doc));
    }
    lines
}

fn line(doc: &MailDoc) -> String {
    let MailDoc { kind, from, envelope_from, to, message_id, bytes, sha256, why, .. } = doc;
    let digest = format!("{bytes} bytes sha256 {sha256}");
    let mut line = match kind {
        MailKind::Sent => format!("sent mail <{message_id}> to {to} {digest}, {why}"),
        MailKind::Unsent => format!("sent mail <{message_id}> to {to} {digest}, not taken: {why}"),
        kind => {
            let part = kind.as_str();
            format!("received mail {part} <{message_id}> from {from} envelope <{envelope_from}> {digest}, {why}")
        }
    };
    line.truncate(line.trim_end_matches(", ").len());
    for reference in &doc.references {
        let _ = write!(line, " references <{reference}>");
    }
    for file in &doc.attachments {
        let _ = write!(line, " attachment {:?} {} {} bytes", file.name, file.kind, file.bytes);
    }
    // One line a mail, whatever its header holds.
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
