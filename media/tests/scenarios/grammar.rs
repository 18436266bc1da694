//! The language of scenario files: one line a statement, words and "quoted texts", `#` begins a comment.
//!
//! ```text
//! seed 7                                    codec G722                 no telephone events        no text
//! net delay 20 jitter 40 loss 5%            net rate 60 queue 100 (kbit/s, ms)         connection loss 5% burst 3 jitter 30
//! delay think 500                           delay think never
//! early media 1.5                           answered after 2.0         never answered             refused 486 after 1.0
//! caller endpointing 1.5                    caller opens "Hello."      caller opens made "Hello." caller listens open after 10
//! caller replies "One." more "Two." dtmf 12 then hangup                caller replies silence
//! caller replies "One." then pause 2.0      caller replies then finish       caller replies "One." notes fallback_speaker
//! caller interrupts high | 0.3 from 0.8 to 3.0                         caller cuts in with "Wait."
//! caller cuts in at 1.5 with "Wait."        # into the other side's first turn, so long after its onset
//! caller keyword "refund" says "No refund." probability 0.5            caller contextual "..." yes when "pay" says "Stop."
//! caller probes backchannel 20 tic 10 aside 10                         # of each kind, in a minute
//! caller script exact|context "date of birth" phrase "March third" | silence 3.0 then "Yes." | dtmf 12 | audio 1.5 [first 2]
//! caller asks meaning 1.5                   # how long the mind may take; without, words alone tell
//! caller means "date of birth"              caller means nothing       caller cannot tell       # of each turn, in order
//! caller follows language
//! caller script ordered                     caller extension 12,3      caller hangs up on "goodbye" | transfer
//! caller digits by rtp|inband|info
//! caller max_turns 2   silence_timeout 16   max_duration 60   inactivity 20   media_timeout 20   ringing 30   digit_turn 0.5
//! 1.0 agent says 2.5 "May I help?"          3.0 agent digit 5 [inband|info]      4.0 agent hangs up
//! 5.0 net delay 40                          # another network from then on, all that is not named as by default
//! 2.0 agent stops sending                   2.5 agent sends again      3.0 driver misses 3        9.0 api hangs up
//! 2.0 agent tone 440 480 for 2.0             # one or two frequencies in Hz, and seconds
//! 0.0 agent noise cafe 17.5                 # from then on, dB below speech
//! 2.0 agent holds                           8.0 agent resumes          # by re-INVITE: meanwhile nothing is sent to it
//! 2.0 agent wants no audio                  8.0 agent wants audio      # the same of an agent that goes on speaking and is heard
//! 2.0 agent sends 160 bytes of type 96      # in place of its next packet
//! 3.0 agent transfers to "sip:..."          3.0 agent changes session 488        # by REFER; by re-INVITE, with the answer to it
//! agent echoes after 0.2 down 6             # from hearing to sending, s; echo return loss, dB
//! until 30                                  # a call that still runs is hung up by the API
//! expect ...                                # see expect.rs
//! ```

use ringer_media::call::*;
use ringer_media::codec::Codec;
use ringer_media::leg::{LegParams, MediaParams, PcmParams};
use ringer_media::netem::{Loss, NetemSpec};
use ringer_media::noise::Kind;
use ringer_media::seed::Seed;
use ringer_media::testing::{CutWord, Delays, Echo, Mind, Voice};

/// A word or a quoted text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub text: String,
    pub quoted: bool,
}

/// A line with its number, read from the left.
#[derive(Clone, Debug)]
pub struct Line {
    pub number: usize,
    pub source: String,
    tokens: Vec<Token>,
    at: usize,
}

pub(crate) type Parsed<T> = Result<T, String>;

impl Line {
    fn new(number: usize, source: &str) -> Parsed<Line> {
        let mut tokens = Vec::new();
        let mut rest = source.trim();
        while !rest.is_empty() && !rest.starts_with('#') {
            if let Some(after) = rest.strip_prefix('"') {
                let end = after.find('"').ok_or("a text is not closed")?;
                tokens.push(Token { text: after[..end].into(), quoted: true });
                rest = after[end + 1..].trim_start();
            } else {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                tokens.push(Token { text: rest[..end].into(), quoted: false });
                rest = rest[end..].trim_start();
            }
        }
        Ok(Line { number, source: source.trim().into(), tokens, at: 0 })
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Takes the words of `words` when they stand next.
    pub fn eat(&mut self, words: &str) -> bool {
        let wanted: Vec<&str> = words.split(' ').collect();
        let next = self.tokens[self.at..].iter().take(wanted.len());
        let found = next.map(|token| (token.text.as_str(), token.quoted)).eq(wanted.iter().map(|word| (*word, false)));
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    pub fn word(&mut self) -> Parsed<String> {
        let token = self.tokens.get(self.at).ok_or("the line is too short")?;
        self.at += 1;
        Ok(token.text.clone())
    }

    pub fn text(&mut self) -> Parsed<String> {
        match self.tokens.get(self.at) {
            Some(token) if token.quoted => self.word(),
            other => Err(format!("a text is wanted, not {other:?}")),
        }
    }

    /// Takes the text that stands next, if one does.
    pub fn maybe_text(&mut self) -> Option<String> {
        self.text().ok()
    }

    pub fn number(&mut self) -> Parsed<f64> {
        let word = self.word()?;
        let bare = word.trim_end_matches('%');
        bare.parse().map_err(|_| format!("a number is wanted, not {word:?}"))
    }

    pub fn maybe_number(&mut self) -> Option<f64> {
        let number = self.tokens.get(self.at)?.text.parse().ok()?;
        self.at += 1;
        Some(number)
    }

    pub fn seconds_ms(&mut self) -> Parsed<u32> {
        Ok((self.number()? * 1000.0).round() as u32)
    }

    pub fn end(&self) -> Parsed<()> {
        match self.tokens.get(self.at) {
            None => Ok(()),
            Some(token) => Err(format!("{:?} is not understood here", token.text)),
        }
    }
}

/// Event of a scenario, at its time.
#[derive(Clone, Debug)]
pub enum Action {
    Says { seconds: f64, text: String },
    Tone { hz: Vec<f64>, seconds: f64 },
    Noise { kind: Kind, snr_db: f64 },
    Digit { digit: char, inband: bool },
    InfoDigit { digit: char },
    DigitsRefused,
    Ends,
    Sending(bool),
    Hold(bool),
    WantsAudio(bool),
    Odd { payload_type: u8, bytes: usize },
    Transfers { to: String },
    SessionAnswered { code: u16 },
    Network(NetemSpec),
    Misses(usize),
    ApiHangup,
}

/// Result of dialling, and its time.
#[derive(Clone, Debug)]
pub enum Dialling {
    Answered { after: f64 },
    Never,
    Refused { code: u16, after: f64 },
}

/// A scenario file, parsed into its parts.
pub struct Scenario {
    pub call: CallSpec,
    pub media: MediaParams,
    /// Parameters of PCM: frames take the place of RTP when it is set.
    pub pcm: Option<PcmParams>,
    pub net: NetemSpec,
    pub delays: Delays,
    pub text: bool,
    pub mind: Mind,
    pub dialling: Dialling,
    pub early: Option<f64>,
    pub echo: Option<Echo>,
    pub actions: Vec<(f64, Action)>,
    pub until: f64,
    pub expects: Vec<Line>,
}

impl Scenario {
    /// Returns the parameters of the media.
    pub fn leg(&self) -> LegParams {
        self.pcm.map_or(LegParams::Rtp(self.media), LegParams::Pcm)
    }
}

/// Reads a file; `voice` speaks the audio responses, as the caller.
pub(crate) fn parse(name: &str, source: &str, voice: &Voice) -> Parsed<Scenario> {
    let mut scenario = empty();
    for (at, source) in source.lines().enumerate() {
        let fault = |why: String| format!("{name}:{}: {why}: {}", at + 1, source.trim());
        let mut line = Line::new(at + 1, source).map_err(fault)?;
        if !line.is_empty() {
            statement(&mut scenario, &mut line, voice).map_err(fault)?;
        }
    }
    scenario.actions.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(scenario)
}

fn empty() -> Scenario {
    let codec = Codec::Pcmu;
    Scenario {
        call: CallSpec { seed: Seed(1), ..CallSpec::default() },
        media: MediaParams::new(codec),
        pcm: None,
        net: NetemSpec::default(),
        delays: Delays::default(),
        text: true,
        mind: Mind::default(),
        dialling: Dialling::Answered { after: 0.0 },
        early: None,
        echo: None,
        actions: Vec::new(),
        until: 60.0,
        expects: Vec::new(),
    }
}

fn statement(s: &mut Scenario, line: &mut Line, voice: &Voice) -> Parsed<()> {
    if line.eat("expect") {
        s.expects.push(line.clone());
        return Ok(());
    }
    if line.eat("caller") {
        caller(s, line, voice)?;
    } else if line.eat("seed") {
        s.call.seed = Seed(line.number()? as u64);
    } else if line.eat("codec") {
        let name = line.word()?;
        s.media = MediaParams::new(Codec::from_name(&name).ok_or("unknown codec")?);
    } else if line.eat("no telephone events") {
        (s.media.event_payload_type, s.media.receive_event_payload_type) = (None, None);
    } else if line.eat("no text") {
        s.text = false;
    } else if line.eat("net") {
        s.net = net(line)?;
    } else if line.eat("connection") {
        connection(s, line)?;
    } else if line.eat("delay") {
        delay(s, line)?;
    } else if line.eat("early media") {
        s.early = Some(line.number()?);
    } else if line.eat("answered after") {
        s.dialling = Dialling::Answered { after: line.number()? };
    } else if line.eat("never answered") {
        s.dialling = Dialling::Never;
    } else if line.eat("refused") {
        let code = line.number()? as u16;
        line.eat("after");
        s.dialling = Dialling::Refused { code, after: line.number()? };
    } else if line.eat("agent echoes after") {
        let delay_ms = line.seconds_ms()?;
        line.eat("down");
        s.echo = Some(Echo { delay_ms, erl_db: line.number()? });
    } else if line.eat("until") {
        s.until = line.number()?;
    } else {
        let at = line.number()?;
        let action = action(line)?;
        s.actions.push((at, action));
    }
    line.end()
}

fn net(line: &mut Line) -> Parsed<NetemSpec> {
    let mut net = NetemSpec::default();
    while !line.is_empty() {
        if line.eat("delay") {
            net.delay_ms = line.number()?;
        } else if line.eat("jitter") {
            net.jitter_ms = line.number()?;
        } else if line.eat("loss") {
            net.loss = Loss::Independent(line.number()? / 100.0);
        } else if line.eat("burst loss") {
            // Mean bursts of three packets.
            let share = line.number()? / 100.0;
            net.loss = Loss::Burst { enter: share / (1.0 - share) / 3.0, leave: 1.0 / 3.0, loss: 1.0 };
        } else if line.eat("rate") {
            net.rate_bps = (line.number()? * 1000.0) as u64;
        } else if line.eat("queue") {
            net.queue_ms = line.number()?;
        } else {
            line.end()?;
        }
    }
    Ok(net)
}

fn connection(s: &mut Scenario, line: &mut Line) -> Parsed<()> {
    let connection = &mut s.call.connection;
    while !line.is_empty() {
        if line.eat("loss") {
            connection.loss = line.number()? / 100.0;
        } else if line.eat("burst") {
            connection.mean_burst = line.number()?;
        } else if line.eat("jitter") {
            connection.jitter_ms = line.number()?;
        } else {
            return line.end();
        }
    }
    Ok(())
}

fn delay(s: &mut Scenario, line: &mut Line) -> Parsed<()> {
    let what = line.word()?;
    let after_ms = if line.eat("never") { None } else { Some(line.number()? as u64) };
    match what.as_str() {
        "think" => s.delays.think_ms = after_ms,
        "recognize" => s.delays.recognize_ms = after_ms,
        "partial" => s.delays.partial_ms = after_ms.ok_or("partials always come")?,
        "synthesize" => s.delays.synthesize_ms = after_ms.ok_or("speech always comes")?,
        _ => return Err(format!("unknown effect {what:?}")),
    }
    Ok(())
}

fn action(line: &mut Line) -> Parsed<Action> {
    Ok(if line.eat("agent says") {
        let seconds = line.number()?;
        Action::Says { seconds, text: line.maybe_text().unwrap_or_default() }
    } else if line.eat("agent tone") {
        let mut hz = vec![line.number()?];
        hz.extend(line.maybe_number());
        line.eat("for").then_some(()).ok_or("for how many seconds?")?;
        Action::Tone { hz, seconds: line.number()? }
    } else if line.eat("agent noise") {
        let kind = Kind::from_name(&line.word()?).ok_or("a kind of noise is wanted")?;
        Action::Noise { kind, snr_db: line.number()? }
    } else if line.eat("agent digit") {
        let digit = line.word()?.chars().next().ok_or("a digit is wanted")?;
        if line.eat("info") {
            return Ok(Action::InfoDigit { digit });
        }
        Action::Digit { digit, inband: line.eat("inband") }
    } else if line.eat("agent refuses a digit") {
        Action::DigitsRefused
    } else if line.eat("agent hangs up") {
        Action::Ends
    } else if line.eat("agent holds") {
        Action::Hold(true)
    } else if line.eat("agent resumes") {
        Action::Hold(false)
    } else if line.eat("agent wants no audio") {
        Action::WantsAudio(false)
    } else if line.eat("agent wants audio") {
        Action::WantsAudio(true)
    } else if line.eat("agent transfers to") {
        Action::Transfers { to: line.text()? }
    } else if line.eat("agent changes session") {
        Action::SessionAnswered { code: line.number()? as u16 }
    } else if line.eat("agent stops sending") {
        Action::Sending(false)
    } else if line.eat("agent sends again") {
        Action::Sending(true)
    } else if line.eat("agent sends") {
        let bytes = line.number()? as usize;
        line.eat("bytes of type");
        Action::Odd { payload_type: line.number()? as u8, bytes }
    } else if line.eat("net") {
        Action::Network(net(line)?)
    } else if line.eat("driver misses") {
        Action::Misses(line.number()? as usize)
    } else if line.eat("api hangs up") {
        Action::ApiHangup
    } else {
        return Err("unknown action".into());
    })
}

/// Reads a setting of times and limits; false when `verb` is none.
fn limit(verb: &str, s: &mut Scenario, line: &mut Line) -> Parsed<bool> {
    let (turn, limits) = (&mut s.call.turn, &mut s.call.limits);
    match verb {
        "endpointing" => turn.endpointing_delay_ms = line.seconds_ms()?,
        "silence_timeout" => turn.silence_timeout_ms = line.seconds_ms()?,
        "digit_turn" => turn.digit_turn_ms = Some(line.seconds_ms()?),
        "max_turns" => limits.max_turns = Some(line.number()? as u32),
        "max_duration" => limits.max_duration_ms = Some(line.seconds_ms()?),
        "inactivity" => limits.inactivity_ms = Some(line.seconds_ms()?),
        "media_timeout" => limits.media_timeout_ms = line.seconds_ms()?,
        "ringing" => limits.ringing_ms = line.seconds_ms()?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn caller(s: &mut Scenario, line: &mut Line, voice: &Voice) -> Parsed<()> {
    let verb = line.word()?;
    if limit(&verb, s, line)? {
        return Ok(());
    }
    match verb.as_str() {
        "digits" => {
            line.eat("by");
            s.call.dtmf = match line.word()?.as_str() {
                "rtp" => DtmfMethod::Rtp,
                "inband" => DtmfMethod::Inband,
                "info" => DtmfMethod::Info,
                other => return Err(format!("rtp, inband or info is wanted, not {other:?}")),
            };
        }
        "extension" => s.call.extension = Some(line.word()?),
        "opens" if line.eat("made") => {
            s.call.opening = Opening::Made;
            s.mind.opening = line.text()?;
        }
        "opens" => s.call.opening = Opening::Say(line.text()?),
        "listens" => {
            line.eat("open after");
            s.call.opening = Opening::Listen { open_after_ms: Some(line.seconds_ms()?) };
            s.mind.opening = line.text()?;
        }
        "replies" => {
            let answer = answer(line)?;
            s.mind.replies.push_back(answer);
        }
        "interrupts" => s.call.interruption = level(line)?,
        "probes" => probes(s, line)?,
        "cuts" => {
            if line.eat("in at") {
                let after_ms = line.seconds_ms()?;
                line.eat("with");
                s.call.cut = Some(TimedBargeIn { after_ms, say: line.text()? });
            } else {
                line.eat("in with");
                s.mind.cut_in = line.text()?;
            }
        }
        "keyword" | "contextual" | "follows" | "asks" | "means" | "cannot" => understanding(&verb, s, line)?,
        "script" if line.eat("ordered") => s.call.script_ordered = true,
        "script" => {
            let rule = rule(s.call.script.len(), line, voice)?;
            s.call.script.push(rule);
        }
        "hangs" if line.eat("up on transfer") => s.call.hangup_on_transfer = true,
        "hangs" => {
            line.eat("up on");
            let phrase = line.text()?;
            s.call.hangup_phrases.push(phrase);
        }
        _ => return Err(format!("unknown setting {verb:?}")),
    }
    Ok(())
}

/// Reads a setting of what this side makes of the other side's words.
fn understanding(verb: &str, s: &mut Scenario, line: &mut Line) -> Parsed<()> {
    match verb {
        "keyword" => keyword(s, line)?,
        "contextual" => {
            s.call.interruption = Interruption::Contextual { prompt: line.text()? };
            line.eat("yes when");
            let word = line.text()?;
            line.eat("says");
            s.mind.contextual = Some(CutWord { word, say: line.text()? });
        }
        "follows" => {
            s.call.follows_language = line.eat("language");
        }
        "asks" => {
            line.eat("meaning");
            s.call.meaning_ms = Some(line.seconds_ms()?);
        }
        "means" => {
            let meant = if line.eat("nothing") { None } else { Some(line.text()?) };
            s.mind.meanings.push_back(Some(meant));
        }
        "cannot" => {
            line.eat("tell");
            s.mind.meanings.push_back(None);
        }
        _ => return Err(format!("unknown setting {verb:?}")),
    }
    Ok(())
}

fn answer(line: &mut Line) -> Parsed<Vec<Move>> {
    let mut parts = vec![Move::default()];
    while !line.is_empty() {
        let part = parts.last_mut().ok_or("never empty")?;
        if line.eat("more") {
            parts.push(Move::default());
        } else if line.eat("dtmf") {
            part.dtmf = line.word()?;
        } else if line.eat("then hangup") {
            part.then = Then::Hangup;
        } else if line.eat("then finish") {
            part.then = Then::Finish;
        } else if line.eat("then pause") {
            part.then = Then::Pause { ms: line.seconds_ms()? };
        } else if line.eat("silence") {
            part.then = Then::StaySilent;
        } else if line.eat("notes fallback_speaker") {
            part.notes.push("fallback_speaker");
        } else {
            part.say = line.text()?;
        }
    }
    Ok(parts)
}

fn level(line: &mut Line) -> Parsed<Interruption> {
    let word = line.word()?;
    let (name, probability) = match word.as_str() {
        "low" => ("low", 0.1),
        "medium" => ("medium", 0.25),
        "high" => ("high", 0.5),
        number => ("level", number.parse().map_err(|_| "low, medium, high or a probability is wanted")?),
    };
    let from_ms = if line.eat("from") { line.seconds_ms()? } else { 800 };
    let to_ms = if line.eat("to") { line.seconds_ms()? } else { 3000 };
    Ok(Interruption::Level { name, probability, from_ms, to_ms, at_most: None })
}

fn probes(s: &mut Scenario, line: &mut Line) -> Parsed<()> {
    let rates = &mut s.call.probes;
    while !line.is_empty() {
        match line.word()?.as_str() {
            "backchannel" => rates.backchannel_per_minute = line.number()?,
            "tic" => rates.vocal_tic_per_minute = line.number()?,
            "aside" => rates.non_directed_per_minute = line.number()?,
            other => return Err(format!("backchannel, tic or aside is wanted, not {other:?}")),
        }
    }
    Ok(())
}

fn keyword(s: &mut Scenario, line: &mut Line) -> Parsed<()> {
    let keyword = line.text()?;
    line.eat("says");
    let response = line.text()?;
    let probability = if line.eat("probability") { line.number()? } else { 1.0 };
    let response = KeywordResponse { keyword, response, probability };
    match &mut s.call.interruption {
        Interruption::Keywords(keywords) => keywords.push(response),
        other => *other = Interruption::Keywords(vec![response]),
    }
    Ok(())
}

fn rule(index: usize, line: &mut Line, voice: &Voice) -> Parsed<ScriptRule> {
    let matching = match line.word()?.as_str() {
        "exact" => Matching::Exact,
        "context" => Matching::Context,
        other => return Err(format!("exact or context is wanted, not {other:?}")),
    };
    let phrase = line.text()?;
    let response = match line.word()?.as_str() {
        "phrase" => Response::Phrase(line.text()?),
        "dtmf" => Response::Dtmf(line.word()?),
        "audio" => Response::Audio(voice.say((line.number()? * 16_000.0) as usize, 11)),
        "silence" => {
            let duration_ms = line.maybe_number().map(|seconds| (seconds * 1000.0) as u32);
            let then = if line.eat("then") { Some(line.text()?) } else { None };
            Response::Silence { duration_ms, then }
        }
        other => return Err(format!("unknown response {other:?}")),
    };
    let first_n = if line.eat("first") { Some(line.number()? as u32) } else { None };
    Ok(ScriptRule { index, matching, phrase, response, first_n })
}

#[test]
fn errors_name_file_and_line() {
    let voice = Voice::from_ulaw(&[0x80; 800]);
    for (source, expect) in [
        ("seed 1\n1.0 agent sings", "x.txt:2: unknown action: 1.0 agent sings"),
        ("caller opens \"Hello", "x.txt:1: a text is not closed: caller opens \"Hello"),
        ("seed seven", "x.txt:1: a number is wanted, not \"seven\": seed seven"),
        ("caller dances", "x.txt:1: unknown setting \"dances\": caller dances"),
        ("seed 1 2", "x.txt:1: \"2\" is not understood here: seed 1 2"),
    ] {
        assert_eq!(parse("x.txt", source, &voice).err().as_deref(), Some(expect));
    }
}
