//! Scripts of simulated calls: files that tell what the answering side, the caller and the network do, and what is
//! expected.
//!
//! A file is plain text, one entry a line; `#` begins a comment. Words are parted by blanks, text stands in double or
//! single quotes. All times are seconds after the INVITE. `SIDE` is `caller` (192.0.2.1), `agent` (192.0.2.2) or
//! `target` (192.0.2.4), to which the agent may transfer the call; the `proxy` (192.0.2.3) is an element that only
//! redirects and refuses. SIP is at port 5060 of each, media of the sides at port 20000.
//!
//! ```text
//! SIDE codecs NAME...                 codecs of the side, best first (PCMU)
//! SIDE says "TEXT"                    first words, said once the call is up
//! SIDE quiet                          says nothing at all
//! caller dials proxy                  calls the proxy and not the agent
//! caller allows ADDRESS...            addresses that may be called and sent media to (all)
//! caller redirects TARGET...          redirects that are followed (none)
//! caller follows TARGET...            transfers that are followed (none)
//! caller patience SECONDS             gives up when nobody has answered by then
//! SIDE media_timeout SECONDS          ends the call after so long without media (20)
//! SIDE media_host NAME                the name stands in its SDP in place of its address
//! SIDE session_interval SECONDS       asked for in its INVITE and given in its answer (not asked for)
//! caller header "NAME: VALUE"         a further header field of its INVITE
//! caller without_offer                the other side makes the offer
//! name HOST is ADDRESS                what a host name leads to (nowhere)
//! names take SECONDS                  time of a look-up (0)
//! network delay MS                    in each direction (20)
//! network jitter MS                   further delay, from 0 to this (0)
//! network loss PERCENT                packets that are lost (0); a WebSocket is late instead
//! network loses "START" [N]           the first N SIP messages that begin so are lost (1)
//! until SECONDS                       both sides hang up (30)
//! websocket [KIND|JSON]               the call goes over a WebSocket, in the engine's own protocol, in that of a kind,
//! or in that of
//!                                     the settings of a dialect, as an object of JSON
//! SIDE ignores_claims                 goes on speaking when the other side says by message that it speaks
//!
//! TIME agent rings [CODE]                          180
//! TIME agent early_media [CODE] [port PORT]        183 with SDP; a tone is sent from there until the answer
//! TIME agent stops_media                           the tone before the answer, or while it holds, ends
//! TIME agent answers [port PORT]
//! TIME agent refuses CODE
//! TIME SIDE redirects CODE [to CONTACT...]         3xx; a contact may end in ;q=0.5
//! TIME SIDE holds [sendonly|inactive|address] [music]     re-INVITE; `address` is c=0.0.0.0, `music` a tone meanwhile
//! TIME SIDE resumes
//! TIME SIDE moves_media PORT
//! TIME SIDE changes [address ADDRESS] [port PORT] [ptime MS] [payload_type N] [codec NAME]
//! TIME SIDE updates [as changes]                   by UPDATE; nothing: the session as it is
//! TIME agent branch N rings [CODE]                 branch 1 to 8 of a forked call, a dialog beside the agent's own
//! TIME agent branch N early_media [CODE] [port PORT] [codec NAME]     a tone of 400 Hz and 200 more for each N
//! TIME agent branch N updates port PORT
//! TIME agent branch N stops_media
//! TIME agent branch N answers
//! TIME SIDE refers to ADDRESS [quiet]              REFER, of agent and target; quiet: Refer-Sub: false
//! TIME SIDE hangs_up
//! TIME network dies                                nothing arrives any more
//! ```
//!
//! In a call over a WebSocket the agent may answer, refuse and redirect (without contacts) each upgrade request, hang
//! up, and:
//!
//! ```text
//! TIME agent sends "TEXT" [count N]                a text message as it stands, so many times (1)
//! TIME agent sends bytes N [count N]               a binary message of so many zero bytes
//! TIME agent plays MS                              a tone, all of it at once
//! TIME agent says "TEXT"                           its voice, at real time
//! TIME agent marks NAME                            asks to be told when all audio so far is played
//! TIME agent clears                                takes audio back that was not played
//! TIME agent closes CODE ["REASON"]                a close frame
//! TIME agent drops                                 the connection is lost without one
//! TIME agent goes_silent                           nothing of its own is sent any more, only what lines say
//! ```
//!
//! The target may do all that the agent may do. Both ring and answer by themselves where no line has them do so. Each
//! INVITE that the proxy gets is answered by its next line, the last line answers all that follow.
//!
//! ```text
//! expect SIDE event NAME [KEY = VALUE | KEY contains "TEXT"]... [RANGE] [count N]
//! expect SIDE recording SIDE silent|audible RANGE         a track of the recording of SIDE
//! expect SIDE early_media seconds X +- D                          length of what was recorded before the answer
//! expect SIDE early_media silent|audible [RANGE]
//! expect SIDE early_media|recording caller|agent tone HZ RANGE    most of it is this tone
//! expect SIDE end contains "TEXT"                                why the other side ended it, or could not be called
//! expect SIDE ended REASON|never                                  never: no call came to it
//! expect SIDE media to ADDRESS:PORT|nowhere [payload_type N] [bytes N] RANGE     packets that SIDE sent, all of them
//! expect SIDE warning contains "TEXT"
//! expect [SIDE] sip contains|lacks "TEXT"                         the SIP log of SIDE (the caller's)
//! expect [SIDE] sip count of "START" = N                          messages that begin so
//! expect [SIDE] message sent|received "TEXT" [RANGE] [count N]    lines of the log of a WebSocket with this text in
//! them: messages
//!                                                                 without audio, `close CODE REASON`
//! ```
//!
//! `RANGE` is `between A and B` or `at T +- D`.

mod branch;
mod expect;
mod manner;
mod socket;
mod words;

use std::net::IpAddr;
use std::time::Duration;

use ringer_base::config::Targets;
use ringer_media::codec::Codec;
use ringer_transport::websocket::Dialect;

pub use self::branch::BranchAction;
use self::expect::Expectation;
pub use self::manner::Manner;
pub(super) use self::socket::SocketAction;
use self::words::Words;
use super::Outcome;

/// Longest file, in bytes.
pub const MOST_BYTES: usize = 64 * 1024;
/// Most timed lines of each side and of the proxy.
const MOST_ACTIONS: usize = 50;
/// Latest time, in seconds.
const LATEST_S: f64 = 600.0;

/// A script, parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Name of the file, for messages.
    name: String,
    /// Manner of the caller's side.
    pub caller: Manner,
    /// Manner of the agent's side.
    pub agent: Manner,
    /// Manner of the target of transfers.
    pub target: Manner,
    /// True if a line is about the target.
    pub has_target: bool,
    /// Dialect of the WebSocket that the call goes over; `None`: it goes by SIP.
    pub websocket: Option<Dialect>,
    /// True if the first INVITE goes to the proxy.
    pub by_proxy: bool,
    /// Delay of the network in each direction, milliseconds.
    pub delay_ms: f64,
    /// Most milliseconds of further delay.
    pub jitter_ms: f64,
    /// Share of packets that are lost, 0 to 0.9.
    pub loss: f64,
    /// Both sides hang up so long after the INVITE.
    pub until: Duration,
    /// Addresses of host names.
    pub names: Vec<(String, IpAddr)>,
    /// Time that a name takes to be looked up.
    pub lookup: Duration,
    /// Beginnings of SIP messages that are lost, with the number of losses.
    pub lost: Vec<(String, u16)>,
    /// Time from which on nothing arrives any more.
    pub network_dies: Option<Duration>,
    /// Timed lines of the caller, the agent, the proxy and the target, in order.
    pub(super) actions: [Vec<(Duration, Action)>; 4],
    expectations: Vec<Expectation>,
}

fn holds(actions: &[(Duration, Action)]) -> bool {
    let is_hold = |hold: Option<Hold>| hold.is_some_and(|hold| hold != Hold::Off);
    actions.iter().any(|(_, action)| matches!(action, Action::Change(change) if is_hold(change.hold)))
}

/// Action of a side or of the proxy at its time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// A provisional response without media.
    Ring(u16),
    /// A provisional response with SDP, and a tone from this port.
    EarlyMedia(u16, Option<u16>),
    /// The tone of early media or of a hold ends.
    StopMedia,
    /// The call is answered, with media at this port.
    Answer(Option<u16>),
    /// The call is refused with this code.
    Refuse(u16),
    /// The call is sent to these contacts.
    Redirect(u16, Vec<String>),
    /// The session is changed by re-INVITE.
    Change(Change),
    /// The session is changed by UPDATE; `None`: it is asked for as it is.
    Update(Option<Change>),
    /// A branch of the forked call does something.
    Branch(u16, BranchAction),
    /// The other side is asked to call this address instead; quiet: without notifications of the outcome.
    Refer { to: String, is_quiet: bool },
    /// The call is ended by this side.
    Hangup,
    /// Action on the WebSocket.
    Socket(SocketAction),
}

impl Action {
    /// True for what a side can do in a call over a WebSocket, or by SIP.
    fn fits(&self, is_socket: bool) -> bool {
        match self {
            Action::Hangup | Action::Answer(None) | Action::Refuse(_) => true,
            Action::Redirect(_, contacts) if contacts.is_empty() => true,
            Action::Socket(_) => is_socket,
            _ => !is_socket,
        }
    }

    /// True for what answers an INVITE, or the upgrade request of a WebSocket.
    pub(crate) fn is_response(&self) -> bool {
        matches!(
            self,
            Action::Ring(_)
                | Action::EarlyMedia(..)
                | Action::Answer(_)
                | Action::Refuse(_)
                | Action::Redirect(..)
                | Action::StopMedia
                | Action::Branch(..)
        )
    }
}

/// New terms of a session; `None` leaves a term as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Change {
    /// Way in which the other side is put on hold, or taken back.
    pub hold: Option<Hold>,
    /// Address of the media, of this side or of nobody.
    pub address: Option<IpAddr>,
    /// Port of its RTP.
    pub port: Option<u16>,
    /// Length of a packet in milliseconds.
    pub ptime_ms: Option<u32>,
    /// Payload type of the codec in use.
    pub payload_type: Option<u8>,
    /// The one codec that is offered.
    pub codec: Option<Codec>,
}

/// Ways to put the other side on hold (RFC 3264 8.4), or to take it back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// `a=sendrecv`: it is taken back.
    Off,
    /// `a=sendonly`, with or without a tone for the other side.
    SendOnly { music: bool },
    /// `a=inactive`: neither side sends.
    Inactive,
    /// `c=0.0.0.0`: media have no address.
    NoAddress,
}

impl Script {
    /// True if the caller puts the agent on hold at some time.
    pub fn caller_holds(&self) -> bool {
        holds(&self.actions[0])
    }

    /// True if the agent puts the caller on hold at some time.
    pub fn agent_holds(&self) -> bool {
        holds(&self.actions[1])
    }

    /// Parses a file; `name` stands in messages.
    ///
    /// # Errors
    /// For a person, with file and line.
    pub fn parse(name: &str, text: &str) -> Result<Script, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("{name}: it is longer than {MOST_BYTES} bytes"));
        }
        let mut script = Script {
            name: name.to_owned(),
            caller: Manner::default(),
            agent: Manner::default(),
            target: Manner::default(),
            has_target: false,
            websocket: None,
            by_proxy: false,
            delay_ms: 20.0,
            jitter_ms: 0.0,
            loss: 0.0,
            until: Duration::from_secs(30),
            names: Vec::new(),
            lookup: Duration::ZERO,
            lost: Vec::new(),
            network_dies: None,
            actions: Default::default(),
            expectations: Vec::new(),
        };
        for (at, line) in text.lines().enumerate() {
            let read = Words::of(line).and_then(|words| script.read_line(at + 1, words));
            read.map_err(|why| format!("{name}:{}: {why}", at + 1))?;
        }
        for (actions, who) in script.actions.iter_mut().zip(["the caller", "the agent", "the proxy", "the target"]) {
            if actions.len() > MOST_ACTIONS {
                return Err(format!("{name}: {who} has more than {MOST_ACTIONS} timed lines"));
            }
            actions.sort_by_key(|(at, _)| *at);
            if let Some((at, _)) = actions.last().filter(|(at, _)| *at >= script.until) {
                let (at, until) = (at.as_secs_f64(), script.until.as_secs_f64());
                return Err(format!("{name}: {who} would act at {at} s, but the call ends at {until} s (until)"));
            }
        }
        match script.by_proxy && script.actions[PROXY].is_empty() {
            true => Err(format!("{name}: the proxy is dialled, and no line says what it does")),
            false => Ok(script),
        }
    }

    /// Returns every expectation that `outcome` does not meet, with file and line.
    pub fn unmet(&self, outcome: &Outcome) -> Vec<String> {
        let unmet = |expectation: &Expectation| {
            let why = expectation.check(outcome).err()?;
            Some(format!("{}:{}: {}: {why}", self.name, expectation.line, expectation.text))
        };
        self.expectations.iter().filter_map(unmet).collect()
    }

    /// Returns the number of expectations.
    pub fn expectations(&self) -> usize {
        self.expectations.len()
    }

    fn read_line(&mut self, number: usize, mut words: Words) -> Result<(), String> {
        if words.is_empty() {
            return Ok(());
        }
        if words.take("expect") {
            self.expectations.push(Expectation::parse(number, &mut words)?);
        } else if words.take("websocket") {
            if self.actions.iter().any(|actions| !actions.is_empty()) {
                return Err("websocket has to stand before the timed lines".to_owned());
            }
            self.websocket = Some(socket::dialect(&mut words)?);
        } else if words.take("until") {
            self.until = words.seconds("the end")?;
        } else if words.take("network") {
            match words.one_of("what the network does", &["delay", "loses", "jitter", "loss"])? {
                0 => self.delay_ms = words.number("the delay", 0.0, 10_000.0)?,
                2 => self.jitter_ms = words.number("the jitter", 0.0, 10_000.0)?,
                3 => self.loss = words.number("the loss in percent", 0.0, 90.0)? / 100.0,
                _ => {
                    let start = words.text("the beginning of the messages")?;
                    let count = if words.is_empty() { 1 } else { words.whole("the count", 1, 100)? };
                    self.lost.push((start, count));
                }
            }
        } else if words.take("name") {
            let host = words.text("the host name")?;
            words.keyword("is")?;
            self.names.push((host, address(&mut words)?));
        } else if words.take("names") {
            words.keyword("take")?;
            self.lookup = words.seconds("the time of a look-up")?;
        } else if words.take("caller") {
            match words.take("dials") {
                true => {
                    words.keyword("proxy")?;
                    self.by_proxy = true;
                }
                false => self.caller.take_words(&mut words)?,
            }
        } else if words.take("agent") {
            self.agent.take_words(&mut words)?;
        } else if words.take("target") {
            self.has_target = true;
            self.target.take_words(&mut words)?;
        } else {
            self.read_action(&mut words)?;
        }
        words.end()
    }

    fn read_action(&mut self, words: &mut Words) -> Result<(), String> {
        let at = words.seconds("the time (or caller, agent, network, until, expect)")?;
        let who = words.one_of("who acts", &["caller", "agent", "proxy", "target", "network"])?;
        if who == NETWORK {
            words.keyword("dies")?;
            self.network_dies = Some(at);
            return Ok(());
        }
        let action = action(words)?;
        let fits = match who {
            CALLER => {
                let of_agent = matches!(action, Action::Branch(..) | Action::Refer { .. } | Action::Socket(_))
                    || action.is_response();
                !of_agent || action == Action::StopMedia
            }
            AGENT | TARGET => true,
            _ => matches!(action, Action::Refuse(_) | Action::Redirect(..)),
        };
        if !fits {
            return Err("this side cannot do that".to_owned());
        }
        if !action.fits(self.websocket.is_some()) || (self.websocket.is_some() && who != CALLER && who != AGENT) {
            return Err(match self.websocket {
                Some(_) => "there is no such thing in a call over a WebSocket".to_owned(),
                None => "a call by SIP has no such thing: the line websocket has to stand before it".to_owned(),
            });
        }
        self.has_target |= who == TARGET;
        self.actions[who].push((at, action));
        Ok(())
    }
}

/// Places of the sides in `actions`.
pub(super) const CALLER: usize = 0;
pub(super) const AGENT: usize = 1;
pub(super) const PROXY: usize = 2;
pub(super) const TARGET: usize = 3;
const NETWORK: usize = 4;

fn targets(words: &mut Words) -> Result<Targets, String> {
    let mut entries = Vec::new();
    while !words.is_empty() {
        entries.push(words.text("a target")?);
    }
    Targets::parse(&entries).map_err(|bad| format!("{bad:?} is no host, address, network or prefix of numbers"))
}

fn codec(words: &mut Words) -> Result<Codec, String> {
    let name = words.text("a codec")?;
    let all: Vec<&str> = Codec::ALL.iter().map(|codec| codec.name()).collect();
    Codec::from_name(&name).ok_or_else(|| format!("{name:?} is no codec: it must be one of {}", all.join(", ")))
}

fn action(words: &mut Words) -> Result<Action, String> {
    const VERBS: [&str; 22] = [
        "rings",
        "early_media",
        "stops_media",
        "answers",
        "refuses",
        "redirects",
        "holds",
        "resumes",
        "moves_media",
        "changes",
        "refers",
        "hangs_up",
        "updates",
        "branch",
        "sends",
        "plays",
        "says",
        "marks",
        "clears",
        "closes",
        "drops",
        "goes_silent",
    ];
    let code = |words: &mut Words, otherwise: Option<u16>, least: u16, most: u16| match otherwise {
        Some(code) if !words.is_number() => Ok(code),
        _ => words.whole("the status code", least, most),
    };
    let port = |words: &mut Words| match words.take("port") {
        true => even_port(words).map(Some),
        false => Ok(None),
    };
    let change = |change| Ok(Action::Change(change));
    match words.one_of("the action", &VERBS)? {
        0 => Ok(Action::Ring(code(words, Some(180), 101, 199)?)),
        1 => Ok(Action::EarlyMedia(code(words, Some(183), 101, 199)?, port(words)?)),
        2 => Ok(Action::StopMedia),
        3 => Ok(Action::Answer(port(words)?)),
        4 => Ok(Action::Refuse(code(words, None, 400, 699)?)),
        5 => {
            let code = code(words, None, 300, 399)?;
            let mut contacts = Vec::new();
            if words.take("to") {
                contacts.push(words.text("a contact")?);
                while !words.is_empty() {
                    contacts.push(words.text("a contact")?);
                }
            }
            Ok(Action::Redirect(code, contacts))
        }
        6 => change(Change { hold: Some(hold(words)?), ..Change::default() }),
        7 => change(Change { hold: Some(Hold::Off), ..Change::default() }),
        8 => change(Change { port: Some(even_port(words)?), ..Change::default() }),
        9 => change(new_terms(words)?),
        10 => {
            words.keyword("to")?;
            Ok(Action::Refer { to: words.text("the address")?, is_quiet: words.take("quiet") })
        }
        11 => Ok(Action::Hangup),
        12 if words.is_empty() => Ok(Action::Update(None)),
        12 => Ok(Action::Update(Some(new_terms(words)?))),
        13 => BranchAction::parse(words).map(|(number, action)| Action::Branch(number, action)),
        verb => SocketAction::parse(VERBS[verb], words).map(Action::Socket),
    }
}

fn hold(words: &mut Words) -> Result<Hold, String> {
    let hold = if words.take("inactive") {
        Hold::Inactive
    } else if words.take("address") {
        Hold::NoAddress
    } else {
        words.take("sendonly");
        Hold::SendOnly { music: false }
    };
    match (words.take("music"), hold) {
        (false, hold) => Ok(hold),
        (true, Hold::SendOnly { .. }) => Ok(Hold::SendOnly { music: true }),
        (true, _) => Err("music goes with sendonly alone".to_owned()),
    }
}

fn new_terms(words: &mut Words) -> Result<Change, String> {
    let mut change = Change::default();
    while !words.is_empty() || change == Change::default() {
        match words.one_of("the change", &["address", "port", "ptime", "payload_type", "codec"])? {
            0 => change.address = Some(address(words)?),
            1 => change.port = Some(even_port(words)?),
            2 => change.ptime_ms = Some(words.whole("the packet length in milliseconds", 10, 60)?.into()),
            3 => change.payload_type = Some(words.whole("the payload type", 0, 127)? as u8),
            _ => change.codec = Some(codec(words)?),
        }
    }
    Ok(change)
}

fn address(words: &mut Words) -> Result<IpAddr, String> {
    let address = words.text("an address")?;
    address.parse().map_err(|_| format!("{address:?} is not an IP address"))
}

/// Reads a port, which must be even: RTP has an even port, RTCP the one above (RFC 3550 11).
fn even_port(words: &mut Words) -> Result<u16, String> {
    match words.whole("the port", 1024, 65_534)? {
        port if port % 2 == 0 => Ok(port),
        port => Err(format!("port {port} is odd: RTP has an even one")),
    }
}

#[cfg(test)]
mod tests;
