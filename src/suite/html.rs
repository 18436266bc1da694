//! The report as one file that opens from disk: table, and for each call waveform, transcript, events, expectations and sound.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

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

/// The file; failed calls come first and have their sound first.
pub fn page(title: &str, rows: &[Row], calls: &[Played], notes: &[String]) -> String {
    let mut order: Vec<&Played> = calls.iter().collect();
    order.sort_by_key(|call| match call.judgement.verdict {
        Verdict::Failed => 0,
        Verdict::Unknown => 1,
        Verdict::Passed => 2,
    });
    let frame = json!({
        "title": title,
        "head": HEAD,
        "rows": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "notes": notes,
    });
    let mut size = STYLE.len() + SCRIPT.len() + frame.to_string().len() + 4096;
    let (mut sound, mut told, mut left) = (0, Vec::new(), 0);
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
        told.push(data);
    }
    let mut frame = frame;
    frame["calls"] = told.into();
    frame["left"] = json!(left);
    // What stands in a script must not end it.
    let data = frame.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src \
         'unsafe-inline'; media-src data:\"><title>{}</title><style>{STYLE}</style></head><body><main id=\"page\"></main>\
         <script type=\"application/json\" id=\"data\">{data}</script><script>{SCRIPT}</script></body></html>\n",
        super::junit::escape(title)
    )
}

fn brief(call: &Played) -> Value {
    json!({
        "scenario": call.scenario, "file": call.file, "seed": call.seed, "verdict": call.judgement.verdict.as_str(),
        "code": call.judgement.code, "reason": call.judgement.reason, "result": call.result_id(),
        "seconds": call.record["duration_ms"].as_f64().unwrap_or(0.0) / 1000.0,
    })
}

fn data(call: &Played) -> Value {
    let mut data = brief(call);
    let metrics = call.record["metrics"].as_array().into_iter().flatten();
    let numbers = metrics.filter(|metric| metric["value"].is_number());
    data["metrics"] = numbers.map(|metric| json!([metric["name"], metric["value"]])).collect();
    data["expectations"] = call.record.get("expectations").cloned().unwrap_or_default();
    data["playback"] = call.record["metadata"].get("playback").cloned().unwrap_or_default();
    data["faults"] = call.record.get("own_faults").cloned().unwrap_or_default();
    let entry =
        |entry: &Value| json!([entry["start_offset_ms"], entry["speaker"], entry["utterance"], entry["text_missing"]]);
    data["transcript"] = call.transcript.iter().map(entry).collect();
    let is_told = |event: &&Value| event["event"] != "network";
    let event = |event: &Value| json!([event["offset_ms"], event["side"], event["event"], event["data"]]);
    data["events"] = call.timeline.iter().filter(is_told).map(event).collect();
    data["peaks"] = peaks(&call.recording);
    data
}

/// Largest level of each of [`POINTS`] stretches of both channels, 0 to 100; nothing where there is no recording.
fn peaks(wav: &[u8]) -> Value {
    let head = &wav[..wav.len().min(HEADER_BYTES)];
    let Some(at) = head.windows(4).position(|four| four == b"data") else { return Value::Null };
    let samples = wav.get(at + 8..).unwrap_or_default();
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

const STYLE: &str = "
body{font:15px/1.45 system-ui,sans-serif;margin:0;color:#1b1b1f;background:#fff}
main{max-width:72rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:0}
table{border-collapse:collapse;width:100%;margin:.5rem 0}
th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #ddd;vertical-align:top}
th{font-weight:600}
details{border:1px solid #ccc;border-radius:4px;margin:.6rem 0;padding:.6rem .9rem}
summary{cursor:pointer}
.passed{color:#14632b}.failed{color:#a4161a}.unknown,.not_reached{color:#6b5200}
canvas{width:100%;height:110px;display:block;background:#f5f5f7;margin:.5rem 0}
audio{width:100%}
button.at{font:inherit;border:0;background:none;padding:0;color:#0b57d0;text-decoration:underline;cursor:pointer}
.note{color:#555}
@media (prefers-color-scheme:dark){body{background:#16161a;color:#e6e6ea}th,td{border-color:#333}details{border-color:#444}
canvas{background:#222228}button.at{color:#8ab4f8}.passed{color:#7bd88f}.failed{color:#ff8a80}.unknown,.not_reached{color:#ffd166}.note{color:#aaa}}
";

const SCRIPT: &str = r#"
const data = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
function el(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined && text !== null) node.textContent = text;
  if (className) node.className = className;
  return node;
}
function table(head, rows) {
  const node = el('table'), top = node.createTHead().insertRow();
  head.forEach(title => top.append(el('th', title)));
  const body = node.createTBody();
  rows.forEach(cells => {
    const row = body.insertRow();
    cells.forEach(cell => { const td = row.insertCell(); cell instanceof Node ? td.append(cell) : td.textContent = cell ?? ''; });
  });
  return node;
}
function shown(value) { return value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value); }
function draw(canvas, call, at) {
  const width = canvas.width = canvas.clientWidth || 900, height = canvas.height = 110, pen = canvas.getContext('2d');
  (call.peaks || []).forEach((peaks, lane) => {
    pen.fillStyle = lane ? '#2a7f62' : '#4a6fd6';
    const middle = height * (lane ? 0.75 : 0.25);
    peaks.forEach((peak, i) => {
      const tall = Math.max(1, peak * height / 4 / 100);
      pen.fillRect(i * width / peaks.length, middle - tall, Math.max(1, width / peaks.length - 0.5), 2 * tall);
    });
  });
  if (at !== null && call.seconds) { pen.fillStyle = '#c0392b'; pen.fillRect(at / 1000 / call.seconds * width, 0, 2, height); }
}
page.append(el('h1', data.title));
data.notes.forEach(note => page.append(el('p', note, 'note')));
const rows = table(data.head, data.rows);
rows.id = 'table';
page.append(rows);
if (data.left) page.append(el('p', data.left + ' calls did not fit into this file.', 'note'));
data.calls.forEach((call, index) => {
  const box = el('details'), head = el('summary');
  box.id = 'call-' + index;
  head.append(el('strong', call.scenario), ' seed ' + call.seed + ' ', el('span', call.verdict, call.verdict), ' ' + call.reason);
  box.append(head);
  const canvas = el('canvas');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', 'Waveform: caller above, agent below');
  let sound = null;
  const go = ms => {
    draw(canvas, call, ms);
    box.dataset.at = ms;
    if (sound) sound.currentTime = Math.max(0, ms / 1000);
    canvas.scrollIntoView({ block: 'nearest' });
  };
  const at = (ms, text) => {
    if (ms === null || ms === undefined) return document.createTextNode(text);
    const node = el('button', text, 'at');
    node.type = 'button';
    node.addEventListener('click', () => go(ms));
    return node;
  };
  const time = ms => (ms / 1000).toFixed(2) + ' s';
  if (call.peaks) {
    box.append(canvas);
    canvas.addEventListener('click', event => go(event.offsetX / canvas.clientWidth * call.seconds * 1000));
    box.addEventListener('toggle', () => box.open && draw(canvas, call, null));
  }
  if (call.audio) {
    sound = el('audio');
    sound.controls = true;
    sound.src = 'data:audio/ogg;base64,' + call.audio;
    sound.addEventListener('timeupdate', () => draw(canvas, call, sound.currentTime * 1000));
    box.append(sound);
  }
  const kind = one => ['metric', 'heard', 'not_heard', 'tool', 'ended_by', 'dtmf_received', 'meaning', 'event'].find(key => key in one.expected);
  if ((call.expectations || []).length) box.append(el('h2', 'Expectations'), table(['', 'expected', 'measured', 'reason'],
    call.expectations.map(one => [el('span', one.status, one.status), kind(one) + ' ' + shown(one.expected),
      at(one.at_ms, shown(one.measured)), one.reason])));
  if ((call.playback || []).length) box.append(el('h2', 'Turns'), table(['', 'turn', 'heard', 'reason'],
    call.playback.map(one => [el('span', one.status, one.status), one.index + 1, one.heard, one.reason])));
  if ((call.faults || []).length) box.append(el('h2', 'Faults of this side'), table(['fault', 'at', 'turn'],
    call.faults.map(one => [one.code, one.at_ms === null ? '' : at(one.at_ms, time(one.at_ms)), one.turn])));
  if ((call.transcript || []).length) box.append(el('h2', 'Transcript'), table(['at', 'who', 'words'],
    call.transcript.map(([ms, who, words]) => [at(ms, time(ms)), who, words || '[speech not understood]'])));
  if ((call.metrics || []).length) { const part = el('details'); part.append(el('summary', 'Figures'), table(['name', 'value'], call.metrics)); box.append(part); }
  if ((call.events || []).length) { const part = el('details'); part.append(el('summary', 'Events'), table(['at', 'side', 'event', 'data'],
    call.events.map(([ms, side, name, more]) => [at(ms, time(ms)), side, name, shown(more)]))); box.append(part); }
  page.append(box);
});
const first = document.getElementById('call-0');
if (first && data.calls[0].verdict !== 'passed') first.open = true;
document.body.dataset.ready = 'yes';
"#;

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;

    #[test]
    fn the_page_stands_alone_and_failed_calls_come_first() {
        let mut calls =
            vec![call("fine", 1, Verdict::Passed, "", &[]), call("</script><b>", 2, Verdict::Failed, "bad", &[])];
        calls[1].opus = vec![1; 30];
        let mut wav = b"RIFF....WAVEfmt ............data....".to_vec();
        wav.extend((0..1200).flat_map(|at| if at % 2 == 0 { 16_384i16.to_le_bytes() } else { 0i16.to_le_bytes() }));
        calls[1].recording = wav;
        let text = page("Run", &[], &calls, &["a note".to_owned()]);
        assert!(!text.contains("</script><b>") && text.contains("\\u003c/script>"), "a name ends no script");
        assert!(!text.contains("http://") && !text.contains("https://"), "nothing is fetched");
        assert!(text.find("bad").expect("it is there") < text.find("\"fine\"").expect("it is there"));
        assert!(text.contains("\"audio\":\"AQEB") && text.contains("[[50,50,"), "sound and waveform are in it");
    }

    #[test]
    fn sound_is_left_out_where_it_is_too_much() {
        let mut calls: Vec<Played> = (0..4).map(|seed| call("a", seed, Verdict::Passed, "", &[])).collect();
        calls.iter_mut().for_each(|call| call.opus = vec![7; 5 << 20]);
        let text = page("Run", &[], &calls, &[]);
        assert_eq!(text.matches("\"audio\":").count(), 2);
        assert!(text.len() < FILE_BYTES_MAX, "{}", text.len());
    }
}
