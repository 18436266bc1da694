//! A received mail, read (RFC 5322, MIME). Its bytes come from anybody: they are measured before they are read, so that
//! no mail takes more memory or stack than its size.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mail_parser::decoders::html::html_to_text;
use mail_parser::{Address, HeaderName, HeaderValue, Message, MessageParser, MimeHeaders, PartType};

use super::letter::one_line;
use super::quoted::{SplitText, split_html, split_text};
use super::report::{DeliveryReport, read_report};

/// Limits of a mail.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MostMail {
    /// Bytes of the whole mail.
    pub bytes: usize,
    /// Parts of its content, nested mails included.
    pub parts: usize,
    /// Depth of nested parts.
    pub depth: usize,
    /// Header fields of the mail.
    pub headers: usize,
    /// Characters of its new words, and of what it quotes.
    pub words_chars: usize,
}

impl Default for MostMail {
    fn default() -> MostMail {
        MostMail { bytes: 25 * 1024 * 1024, parts: 100, depth: 20, headers: 1000, words_chars: 20_000 }
    }
}

/// Reason why a mail is not read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MailFault {
    /// It is larger than a mail may be.
    TooLarge,
    /// It has too many header fields.
    TooManyHeaders,
    /// It has too many parts.
    TooManyParts,
    /// Its parts are nested too deep.
    TooDeep,
    /// It is no mail.
    Broken,
}

impl MailFault {
    /// Returns the fault in words.
    pub fn as_str(self) -> &'static str {
        match self {
            MailFault::TooLarge => "the mail is too large",
            MailFault::TooManyHeaders => "the mail has too many header fields",
            MailFault::TooManyParts => "the mail has too many parts",
            MailFault::TooDeep => "the parts of the mail are nested too deep",
            MailFault::Broken => "the mail cannot be read",
        }
    }
}

/// Sender as the header From tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// Name of the sender for display.
    pub name: String,
    /// Address; empty when there is none, or more than one.
    pub address: String,
}

/// A file attached to a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailFile {
    /// Name of the file; may be empty.
    pub name: String,
    /// Type of the content, as in `application/pdf`.
    pub kind: String,
    /// Decoded size in bytes.
    pub bytes: u64,
}

/// Contents of a mail that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadMail {
    /// Sender of the mail.
    pub sender: Sender,
    /// Subject in one line.
    pub subject: String,
    /// Message-ID of the mail, without brackets.
    pub message_id: Option<String>,
    /// Ids of References, then of In-Reply-To, without brackets, each once.
    pub references: Vec<String>,
    /// New words, without quoted history and signature.
    pub words: String,
    /// Quoted history and signature, as text.
    pub quoted: String,
    /// Files attached to the mail.
    pub files: Vec<MailFile>,
    /// True if it comes from a mailing list (`List-Id`).
    pub is_list: bool,
    /// True if a program says that it wrote it: `Auto-Submitted` (RFC 3834), `Precedence`.
    pub is_automatic: bool,
    /// Values of `Authentication-Results` (RFC 8601), the latest first.
    pub auth_results: Vec<String>,
    /// Report on the delivery of another mail (RFC 3464); `None`: it is none.
    pub report: Option<DeliveryReport>,
}

/// Reads a mail within its limits.
///
/// # Errors
/// The limit that it passes, or that it is no mail.
pub fn read_mail(raw: &[u8], most: &MostMail) -> Result<ReadMail, MailFault> {
    measure(raw, most)?;
    let read = catch_unwind(AssertUnwindSafe(|| {
        let message = MessageParser::default().parse(raw).ok_or(MailFault::Broken)?;
        let mut parts = 0;
        count_parts(&message, most, 0, &mut parts)?;
        Ok(read_parsed(&message, most))
    }));
    read.unwrap_or(Err(MailFault::Broken))
}

/// Measures what a parser would have to build, by its marks in the text: there cannot be more of it.
fn measure(raw: &[u8], most: &MostMail) -> Result<(), MailFault> {
    if raw.len() > most.bytes {
        return Err(MailFault::TooLarge);
    }
    let lines = raw.split(|byte| *byte == b'\n');
    let is_blank = |line: &&[u8]| line.is_empty() || *line == b"\r";
    let is_field = |line: &&[u8]| !line.first().is_some_and(|byte| *byte == b' ' || *byte == b'\t');
    let fields = lines.clone().take_while(|line| !is_blank(line)).filter(is_field).count();
    if fields > most.headers {
        return Err(MailFault::TooManyHeaders);
    }
    // A part begins with a line of hyphens, and a level needs a boundary or a nested mail.
    let begins = |line: &&[u8]| line.len() > 3 && line.starts_with(b"--") && !line[2].is_ascii_whitespace();
    if lines.clone().filter(begins).count() > 20 * most.parts.max(1) {
        return Err(MailFault::TooManyParts);
    }
    let levels = lines.filter(|line| has(line, b"boundary") || has(line, b"message/")).count();
    if levels > 2 * most.parts.max(1) {
        return Err(MailFault::TooDeep);
    }
    Ok(())
}

/// True if a line has these lower-case letters, in either case.
fn has(line: &[u8], word: &[u8]) -> bool {
    line.len() < 4096 && line.windows(word.len()).any(|bytes| bytes.eq_ignore_ascii_case(word))
}

fn count_parts(message: &Message<'_>, most: &MostMail, depth: usize, parts: &mut usize) -> Result<(), MailFault> {
    *parts += message.parts.len();
    if *parts > most.parts {
        return Err(MailFault::TooManyParts);
    }
    let own = depth_of(message, 0, 0, most.depth);
    if depth + own > most.depth {
        return Err(MailFault::TooDeep);
    }
    for part in &message.parts {
        if let PartType::Message(nested) = &part.body {
            count_parts(nested, most, depth + own + 1, parts)?;
        }
    }
    Ok(())
}

/// Returns the depth of the multiparts below a part, as far as it is allowed.
fn depth_of(message: &Message<'_>, part: u32, depth: usize, most: usize) -> usize {
    match message.parts.get(part as usize).map(|part| &part.body) {
        Some(PartType::Multipart(below)) if depth <= most => {
            below.iter().map(|id| depth_of(message, *id, depth + 1, most)).max().unwrap_or(depth + 1)
        }
        _ => depth,
    }
}

fn read_parsed(message: &Message<'_>, most: &MostMail) -> ReadMail {
    let mut references = ids(message.references());
    for id in ids(message.in_reply_to()) {
        if !references.contains(&id) {
            references.push(id);
        }
    }
    let named = |name: &str| -> Vec<String> {
        let headers = message.headers_raw().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        headers.map(|(_, value)| one_line(value)).collect()
    };
    let first = |values: Vec<String>| values.first().map(|text| text.to_ascii_lowercase()).unwrap_or_default();
    let SplitText { words, quoted } = words_of(message);
    let submitted = first(named("Auto-Submitted"));
    let precedence = first(named("Precedence"));
    let is_automatic = !(submitted.is_empty() || submitted == "no" || submitted.starts_with("no;"))
        || ["bulk", "junk", "list", "auto_reply"].contains(&precedence.as_str());
    ReadMail {
        sender: sender_of(message),
        subject: one_line(message.subject().unwrap_or_default()),
        message_id: message.message_id().map(one_line).filter(|id| !id.is_empty()),
        references,
        words: words.chars().take(most.words_chars).collect(),
        quoted: quoted.chars().take(most.words_chars).collect(),
        files: message.attachments().map(file_of).collect(),
        is_list: !named("List-Id").is_empty(),
        is_automatic,
        auth_results: named("Authentication-Results"),
        report: read_report(message),
    }
}

/// Returns the one sender of a mail. Of several it is not known who wrote it.
fn sender_of(message: &Message<'_>) -> Sender {
    let all = message.header_values(HeaderName::From).filter_map(HeaderValue::as_address);
    let senders: Vec<(String, String)> = all
        .flat_map(Address::iter)
        .map(|one| (one_line(one.name().unwrap_or_default()), one.address().unwrap_or_default().trim().to_owned()))
        .collect();
    match senders.as_slice() {
        [(name, address)] => Sender { name: name.clone(), address: address.clone() },
        _ => Sender::default(),
    }
}

fn ids(value: &HeaderValue<'_>) -> Vec<String> {
    let texts = value.as_text_list().map(<[_]>::to_vec).unwrap_or_default();
    texts.iter().map(|id| one_line(id)).filter(|id| !id.is_empty()).collect()
}

/// Splits the inline texts, plain ones before HTML, into new words and what is around them.
fn words_of(message: &Message<'_>) -> SplitText {
    let texts = message.text_body.iter().filter_map(|id| message.parts.get(*id as usize));
    let (mut words, mut histories): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for part in texts {
        match &part.body {
            PartType::Text(text) => words.push(text.to_string()),
            PartType::Html(html) => {
                let (new, history) = split_html(html);
                words.push(html_to_text(&new));
                histories.extend((!history.is_empty()).then(|| html_to_text(&history)));
            }
            _ => {}
        }
    }
    let SplitText { words, quoted } = split_text(&words.join("\n"));
    histories.insert(0, quoted);
    SplitText { words, quoted: histories.join("\n").trim().to_owned() }
}

fn file_of(part: &mail_parser::MessagePart<'_>) -> MailFile {
    let kind = part.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
        None => kind.ctype().to_owned(),
    });
    MailFile {
        name: one_line(part.attachment_name().unwrap_or_default()),
        kind: kind.unwrap_or_default(),
        bytes: part.contents().len() as u64,
    }
}

#[cfg(test)]
mod tests;
