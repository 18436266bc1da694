//! What a scenario expects of a call. Times are seconds of the call's clock; `+-` defaults to 0.001.
//!
//! ```text
//! expect caller speaks at 5.0 +-0.05 ["text"]       expect caller stops at 6.0 [interrupted] ["text that was said"]
//! expect event NAME [by dh|agent|engine] [KEY =|<=|>= VALUE]... [count N] [at T +-t]
//! expect no event NAME [...]
//! expect info digits "12"                           (what was handed to the transport)
//! expect digits "12"                                expect digit 5 sent at 2.0          (what the far side decodes)
//! expect end reason silence_timeout [at 37.0 +-0.1]
//! expect recording channel 0|1 speech 1.0-3.5 +-0.03 [count N]       expect recording channel 0|1 silent 2.0-3.0
//! expect recording channel 0|1 level -26 +-1 1.0-3.5                (RMS, dBov)
//! expect thoughts contextual from 3.0 apart 0.5 count N             (when they were asked)
//! expect early media 1.5 +-0.1                      expect control cancel | hangup 16
//! expect compared N with "date of birth" ... [at T +-t]               (the N-th question what a turn means)
//! expect compared count N
//! expect identified "text" at T [+-t] ...             (all texts whose language was asked for)
//! expect thought N [purpose] [history "agent: Hi." "caller: Hello." ...] [unsaid "the rest"]
//! ```

use ringer_media::call::{Control, ConversationLine as Said, Event, EventKind, HangupCause, Onward, Purpose};
use ringer_media::level::rms_dbov;
use ringer_media::testing::{Log, Rig};

use super::grammar::{Line, Parsed};

/// Runs of sound: a 10 ms block above -50 dBov, pauses up to 100 ms joined.
const SOUND_DBOV: f64 = -50.0;
const BLOCK: usize = 160;
const JOIN: usize = 10;

/// Checks one line; the error tells the value found instead.
pub(crate) fn check(rig: &Rig, line: &Line) -> Parsed<()> {
    let line = &mut line.clone();
    let log = &rig.log;
    if line.eat("caller speaks") {
        let begun = |event: &Event| match &event.what {
            EventKind::SpeechStarted { text, .. } => Some((seconds(event), text.clone(), false)),
            _ => None,
        };
        utterance(log, line, begun)
    } else if line.eat("caller stops") {
        let ended = |event: &Event| match &event.what {
            EventKind::SpeechEnded { text, interrupted, .. } => {
                Some((seconds(event), text.voiced_text().to_owned(), *interrupted))
            }
            _ => None,
        };
        utterance(log, line, ended)
    } else if line.eat("no event") {
        events(log, line, true)
    } else if line.eat("event") {
        events(log, line, false)
    } else if line.eat("digits") {
        let heard: String = rig.far.heard.iter().map(|heard| heard.1).collect();
        same(&line.text()?, &heard)
    } else if line.eat("info digits") {
        let sent = |of: &Control| if let Control::Digit { digit, .. } = of { Some(*digit) } else { None };
        same(&line.text()?, &log.controls.iter().filter_map(sent).collect::<String>())
    } else if line.eat("digit") {
        digit(rig, line)
    } else if line.eat("end reason") {
        ending(log, line)
    } else if line.eat("recording channel") {
        recording(log, line)
    } else if line.eat("early media") {
        let length = log.early.len() as f64 / 16_000.0;
        within(line.number()?, tolerance(line)?, length).then_some(()).ok_or(format!("{length:.3} s"))
    } else if line.eat("control") {
        control(log, line)
    } else if line.eat("thoughts") {
        thoughts(rig, line)
    } else if line.eat("compared") {
        expect_compared(rig, line)
    } else if line.eat("identified") {
        expect_identified(rig, line)
    } else if line.eat("thought") {
        thought(log, line)
    } else {
        Err("unknown expectation".into())
    }?;
    line.end()
}

fn seconds(event: &Event) -> f64 {
    event.sample as f64 / 16_000.0
}

fn within(wanted: f64, tolerance: f64, found: f64) -> bool {
    (wanted - found).abs() <= tolerance + 1e-9
}

fn same(wanted: &str, found: &str) -> Parsed<()> {
    if wanted == found { Ok(()) } else { Err(format!("found {found:?}")) }
}

fn tolerance(line: &mut Line) -> Parsed<f64> {
    let mut ahead = line.clone();
    let Some(number) = ahead.word().ok().and_then(|word| word.strip_prefix("+-").map(String::from)) else {
        return Ok(0.001);
    };
    *line = ahead;
    number.parse().map_err(|_| "a tolerance is wanted".into())
}

/// Reads `at T +-t`, when it stands there.
fn time(line: &mut Line) -> Parsed<Option<(f64, f64)>> {
    if !line.eat("at") {
        return Ok(None);
    }
    Ok(Some((line.number()?, tolerance(line)?)))
}

fn utterance(log: &Log, line: &mut Line, of: impl Fn(&Event) -> Option<(f64, String, bool)>) -> Parsed<()> {
    let at = time(line)?;
    let interrupted = line.eat("interrupted");
    let text = line.maybe_text();
    let found: Vec<(f64, String, bool)> = log.events.iter().filter_map(of).collect();
    let fits = |(when, said, cut): &&(f64, String, bool)| {
        at.is_none_or(|(at, tolerance)| within(at, tolerance, *when))
            && text.as_ref().is_none_or(|text| text == said)
            && (!interrupted || *cut)
    };
    found.iter().find(fits).map(|_| ()).ok_or(format!("found {found:.3?}"))
}

/// Compares `KEY =|<=|>= VALUE` with the event's data.
fn holds(event: &Event, key: &str, relation: &str, value: &str) -> bool {
    let data = event.data();
    let Some(found) = data.get(key) else { return false };
    let text = found.as_str().map_or_else(|| found.to_string(), String::from);
    let numbers = value.parse::<f64>().ok().zip(found.as_f64());
    match relation {
        "=" => text == value || numbers.is_some_and(|(value, found)| value == found),
        "<=" => numbers.is_some_and(|(value, found)| found <= value),
        ">=" => numbers.is_some_and(|(value, found)| found >= value),
        _ => false,
    }
}

fn events(log: &Log, line: &mut Line, none: bool) -> Parsed<()> {
    let name = line.word()?;
    let mut side = None;
    let (mut conditions, mut count, mut at) = (Vec::new(), None, None);
    while !line.is_empty() {
        if let Some(key) = ["by", "count"].into_iter().find(|key| line.eat(&format!("{key} ="))) {
            conditions.push((key.into(), "=".into(), line.word()?));
        } else if line.eat("by") {
            side = Some(line.word()?);
        } else if line.eat("count") {
            count = Some(line.number()? as usize);
        } else if let Some(when) = time(line)? {
            at = Some(when);
        } else {
            let (key, relation, value) = (line.word()?, line.word()?, line.word()?);
            if !["=", "<=", ">="].contains(&relation.as_str()) {
                return Err(format!("a relation is wanted, not {relation:?}"));
            }
            conditions.push((key, relation, value));
        }
    }
    let named: Vec<&Event> = log.events.iter().filter(|event| event.name() == name).collect();
    let fits = |event: &&&Event| {
        side.as_ref().is_none_or(|side| format!("{:?}", event.side).to_lowercase() == *side)
            && conditions.iter().all(|(key, relation, value)| holds(event, key, relation, value))
            && at.is_none_or(|(at, tolerance)| within(at, tolerance, seconds(event)))
    };
    let found = named.iter().filter(fits).count();
    let good = if none { found == 0 } else { count.map_or(found > 0, |count| found == count) };
    let shown: Vec<String> =
        named.iter().map(|event| format!("{:.3} {:?} {}", seconds(event), event.side, event.data())).collect();
    if good { Ok(()) } else { Err(format!("{found} fit of\n      {}", shown.join("\n      "))) }
}

fn digit(rig: &Rig, line: &mut Line) -> Parsed<()> {
    let digit = line.word()?;
    line.eat("sent");
    let (at, tolerance) = time(line)?.ok_or("at T is wanted")?;
    let heard: Vec<(f64, String)> =
        rig.far.heard.iter().map(|(from, digit)| (*from as f64 / 16_000.0, digit.to_string())).collect();
    let found = heard.iter().any(|(from, heard)| *heard == digit && within(at, tolerance, *from));
    if found { Ok(()) } else { Err(format!("found {heard:.3?}")) }
}

fn ending(log: &Log, line: &mut Line) -> Parsed<()> {
    let wanted = line.word()?;
    let at = time(line)?;
    let ending = log.endings.first().ok_or("the call did not end")?;
    let when = ending.samples as f64 / 16_000.0;
    let good = ending.reason.as_str() == wanted && at.is_none_or(|(at, tolerance)| within(at, tolerance, when));
    if good { Ok(()) } else { Err(format!("ended {} at {when:.3}", ending.reason.as_str())) }
}

/// Returns the runs of sound in a channel of the recording, in seconds.
pub(crate) fn runs(log: &Log, channel: usize) -> Vec<(f64, f64)> {
    let pcm: Vec<i16> = log.recorded.iter().copied().skip(channel).step_by(2).collect();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, block) in pcm.chunks(BLOCK).enumerate() {
        if rms_dbov(block) <= SOUND_DBOV {
            continue;
        }
        match runs.last_mut() {
            Some(run) if at - run.1 <= JOIN => run.1 = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs.into_iter().map(|(from, to)| (from as f64 / 100.0, to as f64 / 100.0)).collect()
}

fn span(line: &mut Line) -> Parsed<(f64, f64)> {
    let word = line.word()?;
    let parsed = word.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    parsed.ok_or(format!("FROM-TO is wanted, not {word:?}"))
}

fn recording(log: &Log, line: &mut Line) -> Parsed<()> {
    let channel = line.number()? as usize;
    let found = runs(log, channel);
    if line.eat("silent") {
        let (from, to) = span(line)?;
        let silent = found.iter().all(|run| run.1 <= from || run.0 >= to);
        return if silent { Ok(()) } else { Err(format!("found {found:.2?}")) };
    }
    if line.eat("level") {
        let (wanted, tolerance) = (line.number()?, tolerance(line)?);
        let (from, to) = span(line)?;
        let channel = log.recorded.iter().copied().skip(channel).step_by(2);
        let stretch = channel.skip((from * 16_000.0) as usize).take(((to - from) * 16_000.0) as usize);
        let level = rms_dbov(&stretch.collect::<Vec<i16>>());
        return if within(wanted, tolerance, level) { Ok(()) } else { Err(format!("found {level:.2} dBov")) };
    }
    line.eat("speech");
    let (from, to) = span(line)?;
    let tolerance = tolerance(line)?;
    let count = if line.eat("count") { Some(line.number()? as usize) } else { None };
    let good = found.iter().any(|run| within(from, tolerance, run.0) && within(to, tolerance, run.1))
        && count.is_none_or(|count| count == found.len());
    if good { Ok(()) } else { Err(format!("found {found:.2?}")) }
}

/// Checks call control other than digits, in order.
fn control(log: &Log, line: &mut Line) -> Parsed<()> {
    let mut wanted = Vec::new();
    while !line.is_empty() {
        wanted.push(if line.eat("cancel") {
            Control::Cancel
        } else if line.eat("accepts transfer") {
            Control::Transfer(Onward::Leave)
        } else if line.eat("follows transfer") {
            Control::Transfer(Onward::Follow)
        } else if line.eat("declines transfer") {
            Control::Transfer(Onward::Decline)
        } else {
            line.eat("hangup");
            match line.number()? as u16 {
                16 => Control::Hangup(HangupCause::Normal),
                102 => Control::Hangup(HangupCause::Timer),
                other => return Err(format!("no hang-up has cause {other}")),
            }
        });
    }
    let found = log.controls.iter().filter(|of| !matches!(of, Control::Digit { .. }));
    if found.eq(&wanted) { Ok(()) } else { Err(format!("found {:?}", log.controls)) }
}

fn as_text(line: &Said) -> String {
    let who = if line.other { "agent" } else { "caller" };
    let digits = if line.digits.is_empty() { String::new() } else { format!(" [{}]", line.digits) };
    let cut = if line.interrupted { " /" } else { "" };
    format!("{who}: {}{digits}{cut}", line.text)
}

fn purpose(purpose: &Purpose) -> &'static str {
    match purpose {
        Purpose::Opening => "opening",
        Purpose::Reply => "reply",
        Purpose::BargeIn => "cut_in",
        Purpose::Contextual { .. } => "contextual",
        Purpose::StillThere => "still_there",
        Purpose::GoOn => "go_on",
    }
}

/// Checks all thoughts of a kind: their number, the earliest moment, the least time between two.
fn thoughts(rig: &Rig, line: &mut Line) -> Parsed<()> {
    let kind = line.word()?;
    let of_kind = rig.log.thoughts.iter().filter(|(_, thought)| purpose(&thought.purpose) == kind);
    let times: Vec<f64> = of_kind.map(|(at, _)| rig.seconds_of(*at)).collect();
    let mut good = true;
    while !line.is_empty() {
        good &= match line.word()?.as_str() {
            "from" => {
                let from = line.number()?;
                times.iter().all(|at| *at >= from - 0.011)
            }
            "apart" => {
                let apart = line.number()?;
                times.windows(2).all(|pair| pair[1] - pair[0] >= apart - 1e-6)
            }
            "count" => times.len() == line.number()? as usize,
            other => return Err(format!("{other:?} is not understood here")),
        };
    }
    if good { Ok(()) } else { Err(format!("found {times:.3?}")) }
}

/// Checks the texts whose language was asked for, each with its time.
fn expect_identified(rig: &Rig, line: &mut Line) -> Parsed<()> {
    let mut good = true;
    let mut all = rig.log.identified.iter();
    while let Some(wanted) = line.maybe_text() {
        line.eat("at");
        let (at, tolerance) = (line.number()?, tolerance(line)?);
        good &= all.next().is_some_and(|(time, text)| *text == wanted && within(at, tolerance, rig.seconds_of(*time)));
    }
    let found = || rig.log.identified.iter().map(|(time, text)| (rig.seconds_of(*time), text)).collect::<Vec<_>>();
    if good && all.next().is_none() { Ok(()) } else { Err(format!("found {:?}", found())) }
}

fn expect_compared(rig: &Rig, line: &mut Line) -> Parsed<()> {
    let all = &rig.log.comparisons;
    if line.eat("count") {
        let count = line.number()? as usize;
        return if all.len() == count { Ok(()) } else { Err(format!("found {all:?}")) };
    }
    let number = line.number()? as usize;
    let Some((at, comparison)) = all.get(number - 1) else { return Err(format!("found {all:?}")) };
    line.eat("with");
    let mut phrases = Vec::new();
    while let Some(phrase) = line.maybe_text() {
        phrases.push(phrase);
    }
    let on_time = !line.eat("at") || within(line.number()?, tolerance(line)?, rig.seconds_of(*at));
    let good = comparison.phrases == phrases && on_time && comparison.history.last().is_some_and(|line| line.other);
    if good { Ok(()) } else { Err(format!("found {comparison:?} at {:.3}", rig.seconds_of(*at))) }
}

fn thought(log: &Log, line: &mut Line) -> Parsed<()> {
    let number = line.number()? as usize;
    let shown = || {
        let of = |thought: &ringer_media::call::Thought| {
            let history: Vec<String> = thought.history.iter().map(as_text).collect();
            format!("{} {history:?} unsaid {:?}", purpose(&thought.purpose), thought.unsaid)
        };
        log.thoughts.iter().map(|(_, thought)| of(thought)).collect::<Vec<_>>().join("\n      ")
    };
    let Some((_, thought)) = log.thoughts.get(number - 1) else { return Err(format!("found\n      {}", shown())) };
    let mut good = true;
    while !line.is_empty() {
        if line.eat("history") {
            let mut wanted = Vec::new();
            while let Some(text) = line.maybe_text() {
                wanted.push(text);
            }
            good &= thought.history.iter().map(as_text).eq(wanted);
        } else if line.eat("unsaid") {
            let wanted = line.text()?;
            good &= thought.unsaid.clone().unwrap_or_default() == wanted;
        } else {
            good &= line.word()? == purpose(&thought.purpose);
        }
    }
    if good { Ok(()) } else { Err(format!("found\n      {}", shown())) }
}
