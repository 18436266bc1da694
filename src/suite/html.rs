//! The report as one file that opens from disk: table, and for each call waveform, transcript, events, expectations and
//! sound.

mod ways;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::clip::wav::{self, Head};
use serde_json::{Value, json};

use self::ways::Ways;
use super::Played;
use super::table::{HEAD, Row};
use super::verdict::Verdict;

/// Sound that is put into the file, in bytes before Base64.
const SOUND_BYTES_MAX: usize = 12 << 20;
/// Largest file, in bytes.
const FILE_BYTES_MAX: usize = 20 << 20;
/// Points of a waveform.
const POINTS: usize = 600;
/// Bytes of the header of a WAV file that are searched for its samples.
const HEADER_BYTES: usize = 4096;

/// A table beside that of the scenarios.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    /// Heading of the table.
    pub title: String,
    /// Titles of its columns.
    pub head: Vec<String>,
    /// Cells of its rows.
    pub rows: Vec<Vec<String>>,
}

/// Returns the file; failed calls come first, and their audio is included first.
pub fn page(title: &str, rows: &[Row], calls: &[Played], notes: &[String], extra: &[Extra]) -> String {
    let mut order: Vec<&Played> = calls.iter().collect();
    order.sort_by_key(|call| match call.judgement.verdict {
        Verdict::Failed => 0,
        Verdict::Unreachable => 1,
        Verdict::Unknown => 2,
        Verdict::Passed => 3,
    });
    let figures = |row: &Row| json!([row.p50, row.p95]);
    let frame = json!({
        "title": title,
        "head": HEAD,
        "rows": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "figures": rows.iter().map(figures).collect::<Vec<_>>(),
        "notes": notes,
        "tables": extra.iter().map(|table| json!([table.title, table.head, table.rows])).collect::<Vec<_>>(),
    });
    let mut size = STYLE.len() + SCRIPT.len() + frame.to_string().len() + 4096;
    let (mut sound, mut calls, mut left) = (0, Vec::new(), 0);
    for call in order {
        let mut data = data(call);
        let bytes = call.opus.len();
        if bytes > 0 && sound + bytes <= SOUND_BYTES_MAX && size + bytes * 4 / 3 < FILE_BYTES_MAX {
            data["audio"] = json!(STANDARD.encode(&call.opus));
            sound += bytes;
        }
        let mut text = data.to_string();
        if size + text.len() > FILE_BYTES_MAX {
            data = brief(call);
            text = data.to_string();
        }
        if size + text.len() > FILE_BYTES_MAX {
            left += 1;
            continue;
        }
        size += text.len();
        calls.push(data);
    }
    let mut frame = frame;
    frame["calls"] = calls.into();
    frame["left"] = json!(left);
    // Data in a script must not contain the end of the script.
    let data = frame.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src \
         'unsafe-inline'; media-src data:\"><title>{}</title><style>{STYLE}</style></head><body><main id=\"page\"></main>\
         <script type=\"application/json\" id=\"data\">{data}</script><script>{SCRIPT}</script></body></html>\n",
        quick_xml::escape::escape(title)
    )
}

fn brief(call: &Played) -> Value {
    json!({
        "scenario": call.title(), "file": call.file, "seed": call.seed, "verdict": call.judgement.verdict.as_str(),
        "code": call.judgement.code, "reason": call.judgement.reason, "result": call.result_id(),
        "seconds": call.record["duration_ms"].as_f64().unwrap_or(0.0) / 1000.0,
    })
}

fn data(call: &Played) -> Value {
    let mut data = brief(call);
    let ways = Ways::of(call);
    let metrics = call.record["metrics"].as_array().into_iter().flatten();
    let numbers = metrics.filter_map(|metric| Some((metric["name"].as_str()?, metric["value"].as_f64()?)));
    data["metrics"] = numbers.map(|(name, value)| json!([name, value, ways.of_metric(name, value)])).collect();
    data["latencies"] = ways.latencies.iter().map(|(seconds, way)| json!([seconds, way])).collect();
    data["expectations"] = call.record.get("expectations").cloned().unwrap_or_default();
    if let Some(expectations) = data["expectations"].as_array_mut() {
        expectations.iter_mut().for_each(|one| one["way"] = json!(ways.of_expectation(one)));
    }
    data["playback"] = call.record["metadata"].get("playback").cloned().unwrap_or_default();
    data["warnings"] = json!(call.warnings());
    data["faults"] = call.record.get("own_faults").cloned().unwrap_or_default();
    let entry =
        |entry: &Value| json!([entry["start_offset_ms"], entry["end_offset_ms"], entry["speaker"], entry["utterance"]]);
    data["transcript"] = call.transcript.iter().map(entry).collect();
    let is_told = |event: &&Value| event["event"] != "network";
    let event = |event: &Value| json!([event["offset_ms"], event["side"], event["event"], event["data"]]);
    data["events"] = call.timeline.iter().filter(is_told).map(event).collect();
    data["peaks"] = call.peaks.clone();
    data
}

/// Largest level of each of `POINTS` stretches of both channels, 0 to 100; nothing where there is no recording.
pub fn peaks(file: &[u8]) -> Value {
    let head = &file[..file.len().min(HEADER_BYTES)];
    let is_read = |head: &Head| head.format.is_pcm16() && head.format.channels == 2;
    let Some(head) = wav::head(head, true).ok().flatten().filter(is_read) else { return Value::Null };
    let samples = file.get(head.data_at..).unwrap_or_default();
    let frames = samples.len() / 4;
    if frames == 0 {
        return Value::Null;
    }
    let mut peaks = [vec![0u32; POINTS], vec![0u32; POINTS]];
    for (at, frame) in samples.chunks_exact(4).enumerate() {
        let point = at * POINTS / frames;
        for (channel, two) in frame.chunks_exact(2).enumerate() {
            let level = u32::from(i16::from_le_bytes([two[0], two[1]]).unsigned_abs());
            peaks[channel][point] = peaks[channel][point].max(level);
        }
    }
    let percent = |peaks: &Vec<u32>| peaks.iter().map(|level| level * 100 / 32_768).collect::<Vec<_>>();
    json!([percent(&peaks[0]), percent(&peaks[1])])
}

/// Style of the file: that of the page, and what the report has beside it.
const STYLE: &str = concat!(include_str!("../../web/page.css"), include_str!("html/report.css"));
/// Script of the file: it makes the page of the data.
const SCRIPT: &str = include_str!("html/report.js");

#[cfg(test)]
mod tests {
    use ringer_media::clip::write_wav;

    use super::super::testing::call;
    use super::*;

    #[test]
    fn the_page_stands_alone_and_failed_calls_come_first() {
        let mut calls =
            vec![call("fine", 1, Verdict::Passed, "", &[]), call("</script><b>", 2, Verdict::Failed, "bad", &[])];
        calls[1].opus = vec![1; 30];
        let pcm: Vec<i16> = (0..1200).map(|at| if at % 2 == 0 { 16_384 } else { 0 }).collect();
        calls[1].peaks = peaks(&write_wav(16_000, 2, &pcm));
        let lines = Extra { title: "Lines".into(), head: vec!["line".into()], rows: vec![vec!["pcmu".into()]] };
        let text = page("Run", &[], &calls, &["a note".to_owned()], &[lines]);
        assert!(text.contains(r#""tables":[["Lines",["line"],[["pcmu"]]]]"#), "the table is in it");
        assert!(!text.contains("</script><b>") && text.contains("\\u003c/script>"), "a name ends no script");
        assert!(!text.contains("http://") && !text.contains("https://"), "nothing is fetched");
        assert!(text.find("bad").expect("it is there") < text.find("\"fine\"").expect("it is there"));
        assert!(text.contains("\"audio\":\"AQEB") && text.contains("[[50,50,"), "sound and waveform are in it");
    }

    #[test]
    fn sound_is_left_out_where_it_is_too_much() {
        let mut calls: Vec<Played> = (0..4).map(|seed| call("a", seed, Verdict::Passed, "", &[])).collect();
        calls.iter_mut().for_each(|call| call.opus = vec![7; 5 << 20]);
        let text = page("Run", &[], &calls, &[], &[]);
        assert_eq!(text.matches("\"audio\":").count(), 2);
        assert!(text.len() < FILE_BYTES_MAX, "{}", text.len());
    }
}
