//! Issues: failures of finished conversations, grouped. An error that is known by itself (of a tool call, of the
//! conversation) is grouped by its signature; judgements in words are grouped by how alike they are.

use ringer_base::clock;
use ringer_base::error::Result;
use ringer_judge::Trigrams;
use ringer_model::evaluation::{CustomResult, Evaluation};
use ringer_model::issue::{IssueDetail, IssueDoc, IssueQuery, IssueRecord, IssueType, TriageSpec};
use ringer_model::result::ResultBody;
use ringer_model::time::Timestamp;
use ringer_model::{Object, tool_call};
use ringer_store::{FailureRow, Row, Session};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Watching;
use super::finished::Finished;
use crate::Caller;
use crate::library::field_rules::apply_patch;

/// Failures that are shown with an issue.
const SHOWN: i64 = 50;
/// Judgements of an agent that a new one is compared with.
const COMPARED: i64 = 500;
/// Alike judgements that make an issue.
const LEAST_MEMBERS: usize = 3;
/// Longest title, in characters.
const TITLE_CHARS: usize = 120;

/// A failure of one conversation.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    /// An error that is known by itself.
    Known { source: &'static str, code: Option<String>, message: String },
    /// Words of a judge about what went wrong.
    Judged(String),
}

impl Found {
    /// Returns everything that went wrong in a conversation. Where this side broke it off, that the agent's own tools
    /// failed is all that is known of the agent.
    pub(crate) fn of(body: &ResultBody) -> Vec<Found> {
        let mut all = Vec::new();
        for group in &body.tool_calls {
            for (code, text) in group.actual.iter().filter_map(|call| tool_call::error_of(&call.output)) {
                let message = format!("{}: {text}", group.name);
                all.push(Found::Known { source: "tool_call", code, message });
            }
        }
        if body.is_own_failure() {
            return all;
        }
        if let Some(code) = &body.error_code {
            let message = body.error_message.clone().unwrap_or_else(|| code.to_string());
            all.push(Found::Known { source: "conversation", code: Some(code.to_string()), message });
        }
        if let Some(evaluation) = body.evaluations.first() {
            all.extend(judgements(evaluation).filter(|text| !text.trim().is_empty()).map(Found::Judged));
        }
        all
    }
}

/// Returns the reasons why an evaluation failed: a person's words where there are any, else the model's.
fn judgements(evaluation: &Evaluation) -> impl Iterator<Item = String> {
    let goal = evaluation.human_goal_reasoning.clone().or_else(|| evaluation.goal_reasoning.clone());
    let goal = goal.filter(|_| evaluation.goal() == Some(false));
    let metric = |metric: &CustomResult| {
        let reasoning = metric.human_reasoning.clone().or_else(|| metric.reasoning.clone());
        reasoning.filter(|_| metric.score() == Some(0.0) && metric.response_type != "quantitative")
    };
    let metrics: Vec<String> = evaluation.custom_metrics.iter().filter_map(metric).collect();
    goal.into_iter().chain(metrics)
}

impl Watching {
    /// Issues as asked, those with the newest failure first.
    pub async fn issues(&self, caller: &Caller, query: &IssueQuery) -> Result<Vec<IssueRecord>> {
        let rows = self.store.org(&caller.organization).read().await?.issues(query).await?;
        Ok(rows.into_iter().map(record_of).collect())
    }

    /// Returns one issue with its newest failures.
    pub async fn issue(&self, caller: &Caller, issue_id: Uuid) -> Result<IssueDetail> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<IssueDoc>(issue_id).await?;
        let occurrences = db.occurrences(&row.doc.group_key, SHOWN).await?;
        Ok(IssueDetail { issue: record_of(row), occurrences })
    }

    /// Changes what people decided about an issue.
    pub async fn triage_issue(&self, caller: &Caller, issue_id: Uuid, patch: Object) -> Result<IssueRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<IssueDoc>(issue_id).await?;
        row.doc.triage = apply_patch::<TriageSpec>(&row.doc.triage, &patch)?;
        db.update(issue_id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(issue_id).await?;
        db.commit().await?;
        Ok(record_of(row))
    }

    /// Keeps the failures of a conversation, each once, and the issues that they make or belong to.
    pub(crate) async fn note_failures(&self, db: &mut Session, of: &Finished) -> Result<()> {
        for found in Found::of(&of.body) {
            match found {
                Found::Known { source, code, message } => {
                    self.note_error(db, of, source, code, message).await?;
                }
                Found::Judged(text) => self.note_judgement(db, of, &text).await?,
            }
        }
        Ok(())
    }

    async fn note_error(
        &self,
        db: &mut Session,
        of: &Finished,
        source: &str,
        code: Option<String>,
        message: String,
    ) -> Result<()> {
        let at = Timestamp(self.clock.now_ms());
        let group_key = signature(of.agent_id, source, code.as_deref().unwrap_or_default(), &message);
        let failure = failure(of, &group_key, &group_key, &message, false, at);
        if !db.add_failure(&failure).await? {
            return Ok(());
        }
        let coded = |code: &String| format!("{message} ({code})");
        let description = code.as_ref().filter(|code| !message.contains(code.as_str())).map(coded);
        let issue = IssueDoc {
            agent_id: of.agent_id,
            kind: IssueType::Deterministic,
            title: shorten_title(&message),
            description: description.unwrap_or_else(|| message.clone()),
            triage: TriageSpec::default(),
            error_source: Some(source.to_owned()),
            error_code: code,
            group_key,
            first_seen_at: at,
            last_seen_at: at,
        };
        self.keep_issue(db, issue).await
    }

    async fn note_judgement(&self, db: &mut Session, of: &Finished, text: &str) -> Result<()> {
        let at = Timestamp(self.clock.now_ms());
        let known = db.judgements(of.agent_id, COMPARED).await?;
        let cluster = nearest_cluster(&known, text, self.settings.issue_likeness);
        let cluster = cluster.unwrap_or_else(|| clock::new_id().to_string());
        let fingerprint = hex::encode(Sha256::digest(text));
        if !db.add_failure(&failure(of, &cluster, &fingerprint, text, true, at)).await? {
            return Ok(());
        }
        let mut members: Vec<&str> =
            known.iter().filter(|(of, _)| *of == cluster).map(|(_, member)| member.as_str()).collect();
        members.push(text);
        if members.len() < LEAST_MEMBERS {
            return Ok(());
        }
        let first = db.occurrences(&cluster, COMPARED).await?.last().map_or(at, |first| first.at);
        let core = nearest_to_centre(&members);
        let issue = IssueDoc {
            agent_id: of.agent_id,
            kind: IssueType::NonDeterministic,
            title: shorten_title(core),
            description: core.to_owned(),
            triage: TriageSpec::default(),
            error_source: Some("evaluation".to_owned()),
            error_code: None,
            group_key: cluster,
            first_seen_at: first,
            last_seen_at: at,
        };
        self.keep_issue(db, issue).await
    }

    /// Makes the issue, or notes on the one that is there that it was seen again.
    async fn keep_issue(&self, db: &mut Session, issue: IssueDoc) -> Result<()> {
        let now = self.clock.now_ms();
        let known = db.by::<IssueDoc>("group_key", issue.group_key.as_str()).await?;
        match known.into_iter().next() {
            Some(mut row) => {
                row.doc.add_failure(issue.last_seen_at);
                db.update(row.id, &row.doc, now, None).await.map(drop)
            }
            None => db.insert(&issue, now, None).await.map(drop),
        }
    }
}

fn failure<'a>(
    of: &'a Finished,
    group_key: &'a str,
    fingerprint: &'a str,
    message: &'a str,
    judged: bool,
    at: Timestamp,
) -> FailureRow<'a> {
    let (agent_id, source, source_id) = (of.agent_id, of.source, of.source_id.as_str());
    FailureRow { agent_id, group_key, judged, source, source_id, fingerprint, message, at }
}

/// Returns the cluster whose centre a text is nearest to, when that is near enough.
fn nearest_cluster(known: &[(String, String)], text: &str, least: f64) -> Option<String> {
    let mut clusters: Vec<(&str, Vec<Trigrams>)> = Vec::new();
    for (key, member) in known {
        match clusters.iter_mut().find(|(known, _)| known == key) {
            Some((_, members)) => members.push(Trigrams::of(member)),
            None => clusters.push((key, vec![Trigrams::of(member)])),
        }
    }
    let text = Trigrams::of(text);
    let near = clusters.iter().map(|(key, members)| (*key, Trigrams::centre(members).likeness(&text)));
    let best = near.max_by(|one, other| one.1.total_cmp(&other.1));
    best.filter(|(_, likeness)| *likeness >= least).map(|(key, _)| key.to_owned())
}

fn nearest_to_centre<'a>(members: &[&'a str]) -> &'a str {
    let vectors: Vec<Trigrams> = members.iter().map(|text| Trigrams::of(text)).collect();
    let centre = Trigrams::centre(&vectors);
    let near = |at: &usize, other: &usize| {
        vectors[*at].likeness(&centre).total_cmp(&vectors[*other].likeness(&centre)).then(other.cmp(at))
    };
    (0..members.len()).max_by(near).map_or("", |at| members[at])
}

fn shorten_title(text: &str) -> String {
    text.chars().take(TITLE_CHARS).collect()
}

/// Returns the hex SHA-256 that equal errors of an agent share; numbers, ids and blanks in the message do not tell
/// errors apart.
fn signature(agent_id: i64, source: &str, code: &str, message: &str) -> String {
    hex::encode(Sha256::digest(format!("{agent_id}|{source}|{code}|{}", plain(message))))
}

/// Returns the text in lower case; uuids and hex of 8 digits or more as `*`, runs of digits as `#`, blanks joined.
fn plain(message: &str) -> String {
    let message = message.to_lowercase();
    let words: Vec<&str> = message.split_whitespace().collect();
    let (message, mut plain) = (words.join(" "), String::new());
    let mut rest = message.as_str();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..end];
        if let Some(long) = uuid_of(rest) {
            plain.push('*');
            rest = &rest[long..];
        } else if end == 0 {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let is_hex = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
            // A long number is a number.
            let has_letter = word.bytes().any(|b| b.is_ascii_alphabetic());
            if is_hex && has_letter {
                plain.push('*')
            } else {
                plain.push_str(&without_digits(word))
            }
            rest = &rest[end..];
        }
    }
    plain
}

/// Returns the length of the uuid that a text begins with.
fn uuid_of(text: &str) -> Option<usize> {
    let uuid = text.get(..36).filter(|uuid| uuid.as_bytes()[8] == b'-' && Uuid::parse_str(uuid).is_ok())?;
    Some(uuid.len())
}

fn without_digits(word: &str) -> String {
    let mut plain = String::new();
    for c in word.chars() {
        match c.is_ascii_digit() {
            true if plain.ends_with('#') => {}
            true => plain.push('#'),
            false => plain.push(c),
        }
    }
    plain
}

fn record_of(row: Row<IssueDoc>) -> IssueRecord {
    let IssueDoc { kind, group_key, title, description, triage, error_source, error_code, .. } = row.doc;
    let is_known = kind == IssueType::Deterministic;
    IssueRecord {
        id: row.id,
        kind,
        title,
        description,
        status: triage.status,
        priority: triage.priority,
        assignee_id: triage.assignee_id,
        error_source,
        error_code,
        cluster_id: Uuid::parse_str(&group_key).ok().filter(|_| !is_known),
        error_signature: is_known.then_some(group_key),
        due_date: triage.due_date,
        first_seen_at: row.doc.first_seen_at,
        last_seen_at: row.doc.last_seen_at,
        created_at: Timestamp(row.created_ms),
        updated_at: Timestamp(row.updated_ms),
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::error_code::{ErrorCode, Platform, PlatformFault};
    use ringer_model::result::PostedToolCall;

    use super::*;

    #[test]
    fn a_fault_of_this_side_is_no_failure_of_the_agent() {
        use serde_json::json;
        let failed = |code: ErrorCode, calls: bool| {
            let mut body = ResultBody::default();
            body.fail(code, "It is so.");
            let evaluation = json!({ "goal_success": false, "goal_reasoning": "Nothing was booked." });
            body.evaluations = vec![serde_json::from_value(evaluation).expect("an evaluation")];
            let call = json!([{ "name": "book", "start_offset_ms": 1, "output": { "status": 500 } }]);
            let call: Vec<PostedToolCall> = serde_json::from_value(call).expect("a call");
            body.tool_calls = if calls { tool_call::group(&[], &call) } else { Vec::new() };
            Found::of(&body).len()
        };
        for (code, alone, with_tools) in [
            (ErrorCode::SipDialFailed, 2, 3),
            (ErrorCode::NoAnswer, 2, 3),
            (ErrorCode::CustomerConcurrencyLimit, 2, 3),
            (ErrorCode::ConnectionNotSupported, 0, 1),
            (ErrorCode::Platform(Platform::P3, PlatformFault::AdapterNotConfigured), 0, 1),
            (ErrorCode::InsufficientBalance, 0, 1),
            (ErrorCode::UnusableCallerId, 0, 1),
            (ErrorCode::InternalError, 0, 1),
        ] {
            assert_eq!((failed(code.clone(), false), failed(code.clone(), true)), (alone, with_tools), "{code}");
        }
    }

    #[test]
    fn messages_that_mean_the_same_are_written_the_same() {
        for (message, expect) in [
            ("Order 4711 not  found", "order # not found"),
            ("row 7f3a9c21b0 of 12.5", "row * of #.#"),
            ("id 6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11 gone", "id * gone"),
            ("Zimmer 12b\tfrei", "zimmer #b frei"),
            ("facade deadbeef 12345678", "facade * #"),
            ("", ""),
        ] {
            assert_eq!(plain(message), expect);
        }
        let [one, other] = ["Order 1 failed", "order  22 failed"].map(|text| signature(7, "tool_call", "500", text));
        assert_eq!(one, other);
        assert_eq!(one, hex::encode(Sha256::digest("7|tool_call|500|order # failed")));
        assert_ne!(one, signature(8, "tool_call", "500", "order 1 failed"));
    }
}
