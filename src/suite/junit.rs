//! Results as JUnit XML: a suite a file, a case a scenario and seed.

use std::fmt::Write;

use super::Played;
use super::verdict::Verdict;

/// A scenario that was filtered out: its file and name.
pub type Skipped = (String, String);

/// The document; `masked` values are not in it.
pub fn document(calls: &[Played], skipped: &[Skipped]) -> String {
    let mut files: Vec<&str> = Vec::new();
    for file in calls.iter().map(|call| call.file.as_str()).chain(skipped.iter().map(|(file, _)| file.as_str())) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for file in files {
        let of_file: Vec<&Played> = calls.iter().filter(|call| call.file == file).collect();
        let left: Vec<&str> = skipped.iter().filter(|(of, _)| of == file).map(|(_, name)| name.as_str()).collect();
        let count = |verdict| of_file.iter().filter(|call| call.judgement.verdict == verdict).count();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\">",
            escape(file),
            of_file.len() + left.len(),
            count(Verdict::Failed),
            count(Verdict::Unknown),
            left.len(),
            of_file.iter().filter_map(|call| seconds(call)).sum::<f64>(),
        );
        of_file.iter().for_each(|call| case(&mut text, call));
        for name in left {
            let (file, name) = (escape(file), escape(name));
            let _ = writeln!(text, "    <testcase classname=\"{file}\" name=\"{name}\"><skipped/></testcase>");
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn seconds(call: &Played) -> Option<f64> {
    Some(call.record["duration_ms"].as_f64()? / 1000.0)
}

fn case(text: &mut String, call: &Played) {
    let name = format!("{} [seed {}]", call.scenario, call.seed);
    let _ = writeln!(
        text,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">",
        escape(&call.file),
        escape(&name),
        seconds(call).unwrap_or(0.0)
    );
    text.push_str("      <properties>\n");
    let mut properties = vec![("seed".to_owned(), call.seed.to_string()), ("result_id".to_owned(), call.result_id())];
    for metric in call.record["metrics"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (metric["name"].as_str(), metric["value"].as_f64()) {
            properties.push((name.to_owned(), value.to_string()));
        }
    }
    for (name, value) in properties {
        let (name, value) = (escape(&name), escape(&value));
        let _ = writeln!(text, "        <property name=\"{name}\" value=\"{value}\"/>");
    }
    text.push_str("      </properties>\n");
    let tag = match call.judgement.verdict {
        Verdict::Passed => None,
        Verdict::Failed => Some("failure"),
        Verdict::Unknown => Some("error"),
    };
    if let Some(tag) = tag {
        let (code, reason) = (escape(&call.judgement.code), escape(&call.judgement.reason));
        let _ = writeln!(text, "      <{tag} type=\"{code}\" message=\"{reason}\">{reason}</{tag}>");
    }
    let said = transcript(call);
    if !said.is_empty() {
        let _ = writeln!(text, "      <system-out>{}</system-out>", escape(&said));
    }
    text.push_str("    </testcase>\n");
}

/// Returns the transcript, a line for each turn.
pub fn transcript(call: &Played) -> String {
    let line = |entry: &serde_json::Value| {
        let words = entry["utterance"].as_str().filter(|words| !words.is_empty());
        let words = words.unwrap_or("[speech not understood]");
        format!("{}: {words}", entry["speaker"].as_str().unwrap_or("?"))
    };
    call.transcript.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A text for XML 1.0; characters that it cannot hold become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => done.push_str("&amp;"),
            '<' => done.push_str("&lt;"),
            '>' => done.push_str("&gt;"),
            '"' => done.push_str("&quot;"),
            '\t' | '\n' => done.push(c),
            '\r' | '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => done.push('\u{fffd}'),
            c => done.push(c),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::call;
    use super::*;

    #[test]
    fn a_failure_is_the_agents_and_an_error_is_unknown() {
        let mut calls = vec![
            call("a \"b\"", 1, Verdict::Passed, "", &[0.5]),
            call("a \"b\"", 2, Verdict::Failed, "x < y\u{1}", &[]),
            call("c", 1, Verdict::Unknown, "nobody", &[]),
        ];
        calls[1].transcript =
            vec![json!({"speaker": "AGENT", "utterance": "Hi & bye."}), json!({"speaker": "USER", "utterance": ""})];
        calls[1].record["metrics"] =
            json!([{"name": "talk_ratio", "value": 0.5}, {"name": "interface", "value": "PHONE"}]);
        let text = document(&calls, &[("suite.yaml".into(), "left out".into())]);
        for expect in [
            "<testsuite name=\"suite.yaml\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\"",
            "name=\"a &quot;b&quot; [seed 1]\"",
            "<failure type=\"expectation\" message=\"x &lt; y\u{fffd}\">",
            "<error type=\"expectation\" message=\"nobody\">",
            "<testcase classname=\"suite.yaml\" name=\"left out\"><skipped/></testcase>",
            "<property name=\"talk_ratio\" value=\"0.5\"/>",
            "<property name=\"seed\" value=\"2\"/>",
            "<system-out>AGENT: Hi &amp; bye.\nUSER: [speech not understood]</system-out>",
        ] {
            assert!(text.contains(expect), "{expect}\n{text}");
        }
        assert!(!text.contains("interface"), "only numbers are measured");
    }
}
