//! Reports on a call that is over, which its platform is asked for: the tools that the agent called, the words of both
//! sides, and the price.

use serde_json::Value;

use super::adapter::{Adapter, Facts, SessionReply, SessionRequest};
use super::rules::Table;
use super::when::{When, find, find_all, text_at};

/// Most tools and texts of a report that are kept.
const MAX_TOOLS: usize = 500;
const MAX_TEXTS: usize = 2000;

/// Most characters of a text that are kept.
const TEXT_CHARS: usize = 4000;

/// Most bytes of a price, as JSON.
const COST_BYTES: usize = 1024;

/// Settings of the table, and of the tables in it.
const KEYS: [&str; 8] = ["url", "method", "headers", "id", "ready", "tool", "text", "cost"];
const TOOL_KEYS: [&str; 4] = ["list", "name", "arguments", "result"];
const TEXT_KEYS: [&str; 4] = ["list", "role", "text", "agent"];

/// Roles of the agent and of the caller in transcripts, in lower case.
const AGENT: &str = "agent | assistant | bot | ai | model";
const CALLER: &str = "user | caller | customer | human";

/// A tool that the agent called.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedTool {
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call; null: none are known.
    pub arguments: Value,
    /// Result of the tool; null: none is known.
    pub result: Value,
}

/// Words of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedText {
    /// True for the agent's words, false for the caller's.
    pub is_agents: bool,
    /// Words of this side, as the platform writes them.
    pub text: String,
}

/// Report of a platform on a call that is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Tools that the agent called, in order.
    pub tools: Vec<ReportedTool>,
    /// Words of both sides, in order.
    pub texts: Vec<ReportedText>,
    /// Price of the call, as the platform writes it.
    pub cost: Option<Value>,
    /// Settings of `after` for which the answer has nothing yet; empty: it is complete.
    pub lacks: Vec<&'static str>,
}

impl Report {
    /// True if all tools that the agent called are known.
    pub fn has_all_tools(&self) -> bool {
        !self.lacks.iter().any(|lack| ["ready", "tool"].contains(lack))
    }
}

impl Adapter {
    /// True if the platform is asked about calls that are over.
    pub fn asks_after(&self) -> bool {
        self.settings.contains_key("after")
    }

    /// Returns the request for the report on the call of this name.
    ///
    /// # Errors
    /// A value that cannot stand where the settings put it.
    pub fn after_request(&self, facts: &Facts, call_id: &str) -> Result<SessionRequest, String> {
        let reply = SessionReply { id: Some(call_id.to_owned()), ..SessionReply::default() };
        self.request("after", facts, &reply, true)
    }

    /// True if reports tell of the tools that the agent called.
    pub fn reports_tools(&self) -> bool {
        self.settings.get("after").is_some_and(|rule| rule.get("tool").is_some())
    }

    /// Reads the report on the call of this name, as far as it is there. `None`: the answer is of no such call.
    pub fn read_report(&self, answer: &[u8], call_id: &str) -> Option<Report> {
        let rule = self.settings.get("after")?;
        let answer: Value = serde_json::from_slice(answer).ok()?;
        if rule.get("id").is_some() && text_at(&answer, &setting(rule, "id")) != call_id {
            return None;
        }
        let ready = rule.get("ready").and_then(Value::as_str);
        let is_ready = ready.is_none_or(|ready| When::parse(ready).is_ok_and(|ready| ready.holds(&answer)));
        let mut report = Report::default();
        report.lacks.extend((!is_ready).then_some("ready"));
        if let Some(tool) = rule.get("tool") {
            let tools = read_tools(tool, &answer);
            report.lacks.extend(tools.is_none().then_some("tool"));
            report.tools = tools.unwrap_or_default();
        }
        if let Some(text) = rule.get("text") {
            report.texts = read_texts(text, &answer);
            // Somebody spoke in a call that took place.
            report.lacks.extend(report.texts.is_empty().then_some("text"));
        }
        if rule.get("cost").is_some() {
            report.cost = find(&answer, &setting(rule, "cost")).cloned();
            report.lacks.extend(report.cost.is_none().then_some("cost"));
            report.cost.take_if(|cost| cost.to_string().len() > COST_BYTES);
        }
        Some(report)
    }

    /// Checks the settings of the request for a report.
    ///
    /// # Errors
    /// A setting that is unknown, missing, or wrong.
    pub(super) fn check_after(&self) -> Result<(), String> {
        self.check_request("after", &KEYS)?;
        let Some(members) = self.settings.get("after").and_then(Value::as_object) else { return Ok(()) };
        let table = Table::new("after", members);
        table.pointer("id")?;
        table.when("ready")?;
        let cost = table.pointer("cost")?;
        let read = |table: &Table<'_>, needed: &[&str], others: &[&str]| {
            needed.iter().try_for_each(|key| table.needed_pointer(key).map(drop))?;
            others.iter().try_for_each(|key| table.pointer(key).map(drop))
        };
        let tool = table.table("tool", &TOOL_KEYS, |table| read(table, &["list", "name"], &["arguments", "result"]))?;
        let text = table.table("text", &TEXT_KEYS, |table| {
            table.text("agent")?;
            read(table, &["list", "role", "text"], &[])
        })?;
        match (tool, text, cost) {
            (None, None, None) => Err("after asks for nothing: it needs tool, text or cost".to_owned()),
            _ => Ok(()),
        }
    }
}

fn setting(table: &Value, key: &str) -> String {
    table.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the tools of an answer; `None`: their list is not there yet.
fn read_tools(rule: &Value, answer: &Value) -> Option<Vec<ReportedTool>> {
    let value = |item: &Value, key: &str| {
        let pointer = setting(rule, key);
        find(item, &pointer).filter(|_| !pointer.is_empty()).cloned().unwrap_or_default()
    };
    let called = items(answer, &setting(rule, "list"))?.into_iter().take(MAX_TOOLS).map(|item| ReportedTool {
        name: text_at(item, &setting(rule, "name")),
        arguments: parse_text(value(item, "arguments")),
        result: parse_text(value(item, "result")),
    });
    Some(called.filter(|tool| !tool.name.is_empty()).collect())
}

/// Returns the words of an answer, as far as it is known whose they are.
fn read_texts(rule: &Value, answer: &Value) -> Vec<ReportedText> {
    let agent = rule.get("agent").and_then(Value::as_str).unwrap_or(AGENT);
    let found = items(answer, &setting(rule, "list")).unwrap_or_default();
    let said = found.into_iter().take(MAX_TEXTS).filter_map(|item| {
        let role = text_at(item, &setting(rule, "role")).to_lowercase();
        let words: String = text_at(item, &setting(rule, "text")).chars().take(TEXT_CHARS).collect();
        let is_agents = is_one_of(agent, &role);
        let is_known = (is_agents || is_one_of(CALLER, &role)) && !words.trim().is_empty();
        is_known.then_some(ReportedText { is_agents, text: words })
    });
    said.collect()
}

/// Returns the items at a pointer, which is that of a list or has `*` in it; `None`: the list is not there yet.
fn items<'a>(answer: &'a Value, pointer: &str) -> Option<Vec<&'a Value>> {
    let start = pointer.split("/*").next().unwrap_or_default();
    find(answer, start)?;
    let found = find_all(answer, pointer);
    Some(match &found[..] {
        [Value::Array(items)] => items.iter().collect(),
        _ => found,
    })
}

/// Returns the JSON in a text that is an object or a list; any other value as it is.
fn parse_text(value: Value) -> Value {
    let text = value.as_str().map(str::trim_start).filter(|text| text.starts_with(['{', '[']));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(value)
}

fn is_one_of(roles: &str, role: &str) -> bool {
    roles.split('|').any(|known| known.trim().eq_ignore_ascii_case(role))
}
