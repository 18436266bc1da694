//! Transcripts that come as files, read as those in a request are: what may be converted is converted, and what is
//! wrong is named in the same words.

use ringer_model::schema::Node;
use ringer_model::transcript::PostedEntry;
use ringer_model::validate::{Source, validate};
use ringer_model::validation_error::ValidationErrors;
use ringer_syntax::json;
use ringer_syntax::json::Json;
use serde_json::Value;

use super::gzip::{self, Packed};

/// Members under which the list may stand.
const NAMES: [&str; 2] = ["transcript", "entries"];

/// Returns the entries of a file: a list alone or under `transcript` or `entries`, as JSON, plain or compressed with
/// gzip. `most`: bytes that may come out of a compressed one.
///
/// # Errors
/// What is wrong with it and where, without what the file says.
pub(super) fn entries(bytes: &[u8], most: usize) -> Result<Vec<PostedEntry>, String> {
    let unpacked = gzip::is_gzip(bytes).then(|| gzip::unpack(bytes, most)).transpose();
    let unpacked = unpacked.map_err(|why| match why {
        Packed::Broken => "the file is no whole gzip file".to_owned(),
        Packed::TooLarge => format!("unpacked the file is larger than {} MiB", most >> 20),
    })?;
    let text = str::from_utf8(unpacked.as_deref().unwrap_or(bytes)).map_err(|_| "the file is not in UTF-8")?;
    let file = json::read_text(text)
        .map_err(|fault| format!("the file is no JSON: {} at character {}", fault.why, fault.at_char))?;
    let list = NAMES.iter().find_map(|name| file.get(name)).unwrap_or(&file);
    let Json::Array(items) = list else { return Err("the file is no list of transcript entries".into()) };
    if items.is_empty() {
        return Err("the file has no transcript entries".into());
    }
    let mut issues = ValidationErrors::default();
    let entries = validate(Source::Body, &Node::of::<Vec<PostedEntry>>(), list, &mut issues);
    match issues.first() {
        Some(first) => Err(describe_problem(&first, issues.len())),
        None => serde_json::from_value(entries).map_err(|error| error.to_string()),
    }
}

/// Returns the first problem of `count`, and where it is.
fn describe_problem(first: &Value, count: usize) -> String {
    let steps = first["loc"].as_array().map(Vec::as_slice).unwrap_or_default();
    let place = |step: &Value| match step {
        Value::String(name) => format!(": {name}"),
        step => format!("entry {step}"),
    };
    let place: String = steps.iter().skip(1).map(place).collect();
    let more = if count > 1 { format!(" ({} more)", count - 1) } else { String::new() };
    format!("{place}: {}{more}", first["msg"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 20;

    #[test]
    fn a_file_is_read_as_a_request_is() {
        let one = |fields: &str| format!(r#"[{{"speaker": "USER", "utterance": "Hi.", {fields}}}]"#);
        let plain = one(r#""start_offset_ms": 0, "end_offset_ms": 900"#);
        let texts = one(r#""start_offset_ms": "0", "end_offset_ms": " 900.0", "filler_utterance": "no", "more": {}"#);
        let gzip = hex::decode(gzip::ENTRY).expect("hexadecimal digits");
        for file in [
            plain.clone().into_bytes(),
            format!("\u{feff}{plain}").into_bytes(),
            texts.into_bytes(),
            one(r#""start_offset_ms": 0.0, "end_offset_ms": 9e2, "filler_utterance": null"#).into_bytes(),
            format!(r#"{{"transcript": {plain}}}"#).into_bytes(),
            format!(r#"{{"simulation_result_id": 1, "language": "en", "entries": {plain}}}"#).into_bytes(),
            gzip.clone(),
        ] {
            let entries = entries(&file, MOST).expect("it is a transcript");
            let given: Vec<_> =
                entries.iter().map(|entry| (entry.start_offset_ms, entry.end_offset_ms, &*entry.utterance)).collect();
            assert_eq!(given, [(0, 900, "Hi.")], "{file:?}");
        }
        let integer = "Input should be a valid integer, unable to parse string as an integer";
        for (file, expect) in [
            (&b"not json"[..], "the file is no JSON: Expecting value at character 0".to_owned()),
            (br#"[{"a": 1},]"#, "the file is no JSON: Expecting value at character 10".into()),
            (b"", "the file is no JSON: Expecting value at character 0".into()),
            (b"{}", "the file is no list of transcript entries".into()),
            (br#"{"entries": null}"#, "the file is no list of transcript entries".into()),
            (b"[]", "the file has no transcript entries".into()),
            (b"[\xff]", "the file is not in UTF-8".into()),
            (b"[1]", "entry 0: Input should be a valid dictionary or object to extract fields from".into()),
            (one(r#""start_offset_ms": "secret", "end_offset_ms": 1"#).as_bytes(), {
                format!("entry 0: start_offset_ms: {integer}")
            }),
            (one(r#""start_offset_ms": 0"#).as_bytes(), "entry 0: end_offset_ms: Field required".into()),
            (
                br#"[{"speaker": "BOT", "utterance": 3, "start_offset_ms": 0, "end_offset_ms": 1}]"#,
                "entry 0: speaker: Input should be 'AGENT' or 'USER' (1 more)".into(),
            ),
            (&gzip[..gzip.len() - 1], "the file is no whole gzip file".into()),
        ] {
            assert_eq!(entries(file, MOST), Err(expect), "{file:?}");
        }
        assert_eq!(entries(&gzip, 10), Err("unpacked the file is larger than 0 MiB".to_owned()));
    }
}
