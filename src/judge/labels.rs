//! Labelled conversations: read from a file, checked, and read as a conversation.

use std::collections::BTreeMap;

use ringer_model::digital_human::Role;
use ringer_model::id::IdString;
use ringer_model::judge_card::CardLabel;
use ringer_model::transcript::{EntrySource, TranscriptEntry};
use serde_json::{Map, Value};

/// Members of a label in a file.
const MEMBERS: [&str; 7] =
    ["result_id", "conversation", "label", "success_criteria", "language", "channel", "evidence_at"];
/// Most problems that are told at once.
const TOLD: usize = 20;

/// Returns the labels of a file: CSV with a head line, or a JSON object a line.
///
/// # Errors
/// A line for each problem, with the number of its line.
pub fn read_labels(text: &str) -> Result<Vec<CardLabel>, Vec<String>> {
    let is_json = text.trim_start().starts_with('{');
    let rows = match text.trim().is_empty() {
        true => Rows::new(),
        false if is_json => json_rows(text),
        false => csv_rows(text),
    };
    let (mut labels, mut problems) = (Vec::new(), Vec::new());
    for (line, row) in rows {
        match row.and_then(|row| label_of(line, &row)) {
            Ok(label) => labels.push(label),
            Err(why) => problems.push(format!("line {line}: {why}")),
        }
    }
    if problems.is_empty() && labels.is_empty() {
        problems.push("there is no label in it".to_owned());
    }
    problems.extend(check_labels(&labels));
    problems.truncate(TOLD);
    if problems.is_empty() { Ok(labels) } else { Err(problems) }
}

/// Returns what is wrong with labels: a conversation that is missing or double, or has two different labels.
pub fn check_labels(labels: &[CardLabel]) -> Vec<String> {
    let mut seen: BTreeMap<(Option<&str>, String), (String, bool)> = BTreeMap::new();
    let mut problems = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let place = place_of(label, at);
        let (id, text) = (label.simulation_result_id.as_ref().map(|id| id.0.as_str()), label.conversation.as_deref());
        let problem = match (id, text) {
            (Some(_), Some(_)) => Some("has both a result and a conversation: name one of them".to_owned()),
            (None, None) => Some("has neither a result nor a conversation".to_owned()),
            (None, Some(text)) => entries_of(text).err(),
            (Some(_), None) => None,
        };
        if let Some(problem) = problem {
            problems.push(format!("{place} {problem}"));
            continue;
        }
        let goal = label.success_criteria.as_deref().unwrap_or_default();
        let plain: Vec<&str> = text.into_iter().chain([goal]).flat_map(str::split_whitespace).collect();
        let key = (id, if id.is_some() { String::new() } else { plain.join(" ") });
        match seen.get(&key) {
            None => {
                seen.insert(key, (place, label.label));
            }
            Some((first, known)) if *known != label.label => {
                problems
                    .push(format!("{first} says {known} and {place} says {} of the same conversation", label.label));
            }
            Some((first, _)) => problems.push(format!("{place} is the same conversation as {first}")),
        }
    }
    problems
}

/// Returns the place of a label, as refusals name it.
pub fn place_of(label: &CardLabel, at: usize) -> String {
    label.line.map_or_else(|| format!("label {}", at + 1), |line| format!("line {line}"))
}

/// Returns the entries of a conversation that is written in lines, each of which begins with `AGENT:` or `USER:`.
///
/// A line that does not goes on with the one before it.
///
/// # Errors
/// The first line does not name its speaker, or nobody says anything.
pub fn entries_of(text: &str) -> Result<Vec<TranscriptEntry>, String> {
    let mut entries: Vec<TranscriptEntry> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let spoken = [("AGENT:", Role::Agent), ("USER:", Role::User)].into_iter().find_map(|(mark, role)| {
            Some((role, line.get(..mark.len()).filter(|start| start.eq_ignore_ascii_case(mark))?))
        });
        match (spoken, entries.last_mut()) {
            (Some((role, mark)), _) => {
                let at = entries.len() as i64;
                let words = line[mark.len()..].trim().to_owned();
                entries.push(TranscriptEntry::of(role, at, at + 1, words, EntrySource::Reported));
            }
            (None, Some(last)) => last.utterance = format!("{} {line}", last.utterance),
            (None, None) => {
                return Err("has a conversation whose first line begins with neither AGENT: nor USER:".to_owned());
            }
        }
    }
    match entries.iter().any(TranscriptEntry::has_words) {
        true => Ok(entries),
        false => Err("has a conversation without words".to_owned()),
    }
}

/// Rows of a file by the numbers of their lines, with what is wrong with a row.
type Rows = Vec<(u64, Result<Map<String, Value>, String>)>;

fn json_rows(text: &str) -> Rows {
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let row = |(at, line): (usize, &str)| {
        let read = serde_json::from_str::<Map<String, Value>>(line);
        (at as u64 + 1, read.map_err(|error| format!("it is no JSON object: {error}")))
    };
    filled.map(row).collect()
}

fn csv_rows(text: &str) -> Rows {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(text.as_bytes());
    let head = match reader.headers() {
        Ok(head) => head.clone(),
        Err(error) => return vec![(1, Err(error.to_string()))],
    };
    let wrong = match reader_head(&head) {
        Err(why) => return vec![(1, Err(why))],
        Ok(()) => |error: csv::Error| match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("it has {len} fields, and the first line has {expected_len}")
            }
            _ => "it is no line of CSV".to_owned(),
        },
    };
    let mut rows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => {
                let line = record.position().map_or(0, csv::Position::line);
                let cells = head.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty());
                rows.push((line, Ok(cells.map(|(name, cell)| (name.trim().to_owned(), cell.into())).collect())));
            }
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                rows.push((line, Err(wrong(error))));
            }
        }
    }
    rows
}

fn reader_head(head: &csv::StringRecord) -> Result<(), String> {
    if !head.iter().any(|name| name.trim() == "label") {
        return Err(format!("there is no column label; columns are {}", MEMBERS.join(", ")));
    }
    Ok(())
}

fn label_of(line: u64, row: &Map<String, Value>) -> Result<CardLabel, String> {
    if let Some(name) = row.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(format!("{name:?} is none of {}", MEMBERS.join(", ")));
    }
    let text = |name: &str| -> Result<Option<String>, String> {
        match row.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{name} must be a text")),
        }
    };
    let id = match row.get("result_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.trim().parse::<i64>().ok()),
        Some(value) => Some(value.as_i64()),
    };
    let id = id.map(|id| id.ok_or("result_id must be the number of a result")).transpose()?;
    let evidence = match row.get("evidence_at") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.trim().parse::<f64>().ok()),
        Some(value) => Some(value.as_f64()),
    };
    let is_share = |at: &f64| (0.0..=1.0).contains(at);
    let evidence =
        evidence.map(|at| at.filter(is_share).ok_or("evidence_at must be a number from 0 to 1")).transpose()?;
    Ok(CardLabel {
        simulation_result_id: id.map(IdString::from),
        conversation: text("conversation")?,
        label: truth(row.get("label"))?,
        success_criteria: text("success_criteria")?,
        language: text("language")?,
        channel: text("channel")?,
        evidence_at: evidence,
        line: Some(line as i64),
    })
}

/// Returns the verdict of a label.
fn truth(label: Option<&Value>) -> Result<bool, String> {
    let word = match label {
        Some(Value::Bool(truth)) => return Ok(*truth),
        Some(Value::String(text)) => text.trim().to_lowercase(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    match word.as_str() {
        "true" | "pass" | "passed" | "yes" | "1" => Ok(true),
        "false" | "fail" | "failed" | "no" | "0" => Ok(false),
        "" => Err("label is missing".to_owned()),
        other => Err(format!("the label {other:?} is none of true, false, pass, fail, yes, no, 1, 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_of_json_lines_and_of_csv() {
        let json = "{\"result_id\": 7, \"label\": \"pass\"}\n\n\
                    {\"conversation\": \"USER: Hi.\\nAGENT: Bye.\", \"label\": false, \"evidence_at\": 0.25}\n";
        let csv = "label,result_id,conversation,evidence_at\nyes,7,,\n0,,\"user: Hi.\nAGENT: Bye.\",0.25\n";
        for (text, lines) in [(json, [1, 3]), (csv, [2, 3])] {
            let found = read_labels(text).expect("it is a file of labels");
            assert_eq!(found.iter().map(|label| label.label).collect::<Vec<_>>(), [true, false]);
            assert_eq!(found.iter().map(|label| label.line).collect::<Vec<_>>(), lines.map(Some));
            assert_eq!(found[0].simulation_result_id.as_ref().map(|id| id.0.as_str()), Some("7"));
            assert_eq!(found[1].evidence_at, Some(0.25));
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_by_line() {
        let twice = "{\"conversation\": \"USER: Hi  there.\", \"label\": true}\n{\"conversation\": \"USER: Hi there.\", \"label\": false}";
        for (text, expect) in [
            (twice, "line 1 says true and line 2 says false of the same conversation"),
            (
                "{\"result_id\": 1, \"label\": 1}\n{\"result_id\": 1, \"label\": 1}",
                "line 2 is the same conversation as line 1",
            ),
            ("{\"result_id\": 1, \"label\": \"maybe\"}", "line 1: the label \"maybe\" is none of true, false"),
            ("{\"result_id\": 1}", "line 1: label is missing"),
            ("{\"label\": true}", "line 1 has neither a result nor a conversation"),
            ("{\"result_id\": 1, \"conversation\": \"USER: a\", \"label\": true}", "line 1 has both"),
            (
                "{\"conversation\": \"Hi.\", \"label\": true}",
                "line 1 has a conversation whose first line begins with neither",
            ),
            ("{\"conversation\": \"USER: \", \"label\": true}", "line 1 has a conversation without words"),
            ("{\"result_id\": \"x\", \"label\": true}", "line 1: result_id must be the number of a result"),
            (
                "{\"result_id\": 1, \"label\": true, \"evidence_at\": 3}",
                "line 1: evidence_at must be a number from 0 to 1",
            ),
            ("{\"result\": 1, \"label\": true}", "line 1: \"result\" is none of result_id, conversation"),
            ("{\"label\": ", "line 1: it is no JSON object"),
            ("result_id,verdict\n1,true\n", "line 1: there is no column label"),
            ("result_id,label\n1,true,3\n", "line 2: it has 3 fields, and the first line has 2"),
            ("", "there is no label in it"),
            ("result_id,label\n", "there is no label in it"),
        ] {
            let problems = read_labels(text).expect_err(text);
            assert!(problems[0].starts_with(expect), "{text}: {problems:?}");
        }
    }

    #[test]
    fn a_line_without_a_speaker_goes_on() {
        let entries = entries_of("AGENT: Hello.\n  How are you?\n\nUser: Well.").expect("it is a conversation");
        let said: Vec<(Role, &str)> = entries.iter().map(|entry| (entry.speaker, entry.utterance.as_str())).collect();
        assert_eq!(said, [(Role::Agent, "Hello. How are you?"), (Role::User, "Well.")]);
    }
}
