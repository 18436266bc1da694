//! Results as JUnit XML: a suite a file, a case a scenario and seed.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::Played;
use super::verdict::Verdict;

/// A scenario that was filtered out: its file and name.
pub type Skipped = (String, String);

/// Writer of XML into memory.
type Xml = Writer<Vec<u8>>;

/// Returns the document. `remarks`: text of each suite, as the table of lines. Calls that do not count for a gate are
/// skipped where they did not pass, with the reason.
pub fn document(calls: &[Played], skipped: &[Skipped], remarks: &str) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let written = write(&mut xml, calls, skipped, remarks);
    debug_assert!(written.is_ok(), "memory takes every byte");
    let mut text = String::from_utf8(xml.into_inner()).unwrap_or_default();
    text.push('\n');
    text
}

fn write(xml: &mut Xml, calls: &[Played], skipped: &[Skipped], remarks: &str) -> io::Result<()> {
    let mut files: Vec<&str> = Vec::new();
    for file in calls.iter().map(|call| call.file.as_str()).chain(skipped.iter().map(|(file, _)| file.as_str())) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = xml.create_element("testsuites");
    if files.is_empty() {
        return suites.write_empty().map(|_| ());
    }
    suites.write_inner_content(|xml| files.iter().try_for_each(|file| suite(xml, file, calls, skipped, remarks)))?;
    Ok(())
}

fn suite(xml: &mut Xml, file: &str, calls: &[Played], skipped: &[Skipped], remarks: &str) -> io::Result<()> {
    let of_file: Vec<&Played> = calls.iter().filter(|call| call.file == file).collect();
    let left: Vec<&str> = skipped.iter().filter(|(of, _)| of == file).map(|(_, name)| name.as_str()).collect();
    let counts = |call: &&&Played, verdict| call.gates && call.judgement.verdict == verdict;
    let count = |verdict| of_file.iter().filter(|call| counts(call, verdict)).count();
    let aside = of_file.iter().filter(|call| !call.gates && call.judgement.verdict != Verdict::Passed).count();
    let errors = (count(Verdict::Unknown) + count(Verdict::Unreachable)).to_string();
    let seconds: f64 = of_file.iter().filter_map(|call| seconds(call)).sum();
    xml.create_element("testsuite")
        .with_attribute(("name", &*plain(file)))
        .with_attribute(("tests", &*(of_file.len() + left.len()).to_string()))
        .with_attribute(("failures", &*count(Verdict::Failed).to_string()))
        .with_attribute(("errors", &*errors))
        .with_attribute(("skipped", &*(left.len() + aside).to_string()))
        .with_attribute(("time", &*format!("{seconds:.3}")))
        .write_inner_content(|xml| {
            of_file.iter().try_for_each(|call| case(xml, call))?;
            left.iter().try_for_each(|name| {
                let case = xml.create_element("testcase").with_attribute(("classname", &*plain(file)));
                let case = case.with_attribute(("name", &*plain(name)));
                case.write_inner_content(|xml| xml.create_element("skipped").write_empty().map(|_| ())).map(|_| ())
            })?;
            if !remarks.is_empty() {
                xml.create_element("system-out").write_text_content(BytesText::new(&plain(remarks)))?;
            }
            Ok(())
        })?;
    Ok(())
}

fn seconds(call: &Played) -> Option<f64> {
    Some(call.record["duration_ms"].as_f64()? / 1000.0)
}

fn case(xml: &mut Xml, call: &Played) -> io::Result<()> {
    let name = format!("{} [seed {}]", call.title(), call.seed);
    xml.create_element("testcase")
        .with_attribute(("classname", &*plain(&call.file)))
        .with_attribute(("name", &*plain(&name)))
        .with_attribute(("time", &*format!("{:.3}", seconds(call).unwrap_or(0.0))))
        .write_inner_content(|xml| {
            xml.create_element("properties").write_inner_content(|xml| properties(xml, call))?;
            let tag = match call.judgement.verdict {
                Verdict::Passed => None,
                // A build server shows each failure as one of the build.
                _ if !call.gates => Some("skipped"),
                Verdict::Failed => Some("failure"),
                Verdict::Unreachable | Verdict::Unknown => Some("error"),
            };
            if let Some(tag) = tag {
                let reason = plain(&call.judgement.reason);
                let element = match tag {
                    "skipped" => xml.create_element(tag),
                    _ => xml.create_element(tag).with_attribute(("type", &*plain(&call.judgement.code))),
                };
                element.with_attribute(("message", &*reason)).write_text_content(BytesText::new(&reason))?;
            }
            let said = transcript(call);
            if !said.is_empty() {
                xml.create_element("system-out").write_text_content(BytesText::new(&plain(&said)))?;
            }
            let warnings = call.warnings();
            if !warnings.is_empty() {
                let text = warnings.iter().map(|warning| format!("warning: {warning}")).collect::<Vec<_>>().join("\n");
                xml.create_element("system-err").write_text_content(BytesText::new(&plain(&text)))?;
            }
            Ok(())
        })?;
    Ok(())
}

fn properties(xml: &mut Xml, call: &Played) -> io::Result<()> {
    let mut properties = vec![("seed".to_owned(), call.seed.to_string()), ("result_id".to_owned(), call.result_id())];
    properties.push(("verdict".to_owned(), call.judgement.verdict.as_str().to_owned()));
    let platform_call_id = call.record["metadata"]["platform_call_id"].as_str();
    properties.extend(platform_call_id.map(|id| ("platform_call_id".to_owned(), id.to_owned())));
    for metric in call.record["metrics"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (metric["name"].as_str(), metric["value"].as_f64()) {
            properties.push((name.to_owned(), value.to_string()));
        }
    }
    for (name, value) in properties {
        let property = xml.create_element("property").with_attribute(("name", &*plain(&name)));
        property.with_attribute(("value", &*plain(&value))).write_empty()?;
    }
    Ok(())
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

/// Returns the text with U+FFFD in place of characters that XML 1.0 does not allow (section 2.2).
fn plain(text: &str) -> String {
    let held = |c: char| !matches!(c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if held(c) { c } else { '\u{fffd}' }).collect()
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
            call("d", 1, Verdict::Unreachable, "refused (127.0.0.1:5080)", &[]),
        ];
        calls[1].transcript =
            vec![json!({"speaker": "AGENT", "utterance": "Hi & bye."}), json!({"speaker": "USER", "utterance": ""})];
        calls[1].record["metrics"] =
            json!([{"name": "talk_ratio", "value": 0.5}, {"name": "interface", "value": "PHONE"}]);
        calls[1].record["metadata"] = json!({"platform_call_id": "c&9"});
        let aside = Played { arm: "loss5".into(), gates: false, ..call("e", 1, Verdict::Failed, "deaf", &[]) };
        calls.push(aside);
        let text = document(&calls, &[("suite.yaml".into(), "left out".into())], "the lines");
        for expect in [
            "<testsuite name=\"suite.yaml\" tests=\"6\" failures=\"1\" errors=\"2\" skipped=\"2\"",
            "name=\"e [loss5] [seed 1]\"",
            "<skipped message=\"deaf\">deaf</skipped>",
            "<system-out>the lines</system-out>\n  </testsuite>",
            "name=\"a &quot;b&quot; [seed 1]\"",
            "<failure type=\"expectation\" message=\"x &lt; y\u{fffd}\">",
            "<error type=\"expectation\" message=\"nobody\">",
            "<error type=\"expectation\" message=\"refused (127.0.0.1:5080)\">",
            "<testcase classname=\"suite.yaml\" name=\"left out\">\n      <skipped/>\n    </testcase>",
            "<property name=\"talk_ratio\" value=\"0.5\"/>",
            "<property name=\"seed\" value=\"2\"/>",
            "<property name=\"verdict\" value=\"unreachable\"/>",
            "<property name=\"platform_call_id\" value=\"c&amp;9\"/>",
            "<system-out>AGENT: Hi &amp; bye.\nUSER: [speech not understood]</system-out>",
        ] {
            assert!(text.contains(expect), "{expect}\n{text}");
        }
        assert!(!text.contains("interface"), "only numbers are measured");
    }
}
