//! A call that tells in steps where an agent is lost: its address is resolved, it is connected to, it answers, it makes
//! a sound. Then the call is hung up. It keeps nothing.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::guard::Guard;
use ringer_media::call::{EndReason, EventKind, RemoteEnd, RemoteKind, Side, TimelineEntry};
use ringer_media::frame::PER_MS;
use ringer_sip::hop::{Hop, Transport};
use ringer_transport::sip::address::Address;
use ringer_transport::sip::names::Resolver;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

use super::{CallHandle, CallReport, CallUpdate, Engine, Placement};

/// Longest time for looking up a host, and for opening a connection.
const OPENING: Duration = Duration::from_secs(10);
/// Longest time from dialling to the answer, in milliseconds.
pub const RINGING_MS: u32 = 30_000;
/// Longest time from the answer to the first sound.
pub const SOUND: Duration = Duration::from_secs(15);
/// Longest time in which a call that is hung up has to end.
const HANGING_UP: Duration = Duration::from_secs(20);

/// Final SIP responses of an agent that was reached and does not take the call (RFC 3261 21.4.18, 21.4.24, 21.4.25,
/// 21.6.1, 21.6.2).
const DECLINES: [u16; 5] = [480, 486, 487, 600, 603];

/// Names of the steps, in their order.
pub const STEPS: [&str; 4] = ["resolved", "connected", "answered", "first_sound"];

/// Outcome of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Name of the step, one of [`STEPS`].
    pub name: &'static str,
    /// True if it holds.
    pub ok: bool,
    /// Duration in milliseconds: of the first sound from the answer, of the others from the end of the step before.
    pub ms: u64,
    /// Code of the failure; null when the step holds.
    pub code: Option<String>,
    /// Address, or what failed and what to do about it.
    pub message: Option<String>,
}

/// Steps of a check up to the first that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Steps in their order.
    pub steps: Vec<Step>,
    /// True if the agent was not reached: nothing is known of itself.
    #[serde(skip)]
    pub is_unreachable: bool,
    /// Address that was found, and connected to where that is done by a connection.
    #[serde(skip)]
    address: Option<SocketAddr>,
}

impl Checked {
    /// True if all steps hold.
    pub fn is_ok(&self) -> bool {
        self.steps.len() == STEPS.len() && self.steps.iter().all(|step| step.ok)
    }

    fn pass(&mut self, ms: u64, message: Option<String>) {
        self.steps.push(Step { name: self.next(), ok: true, ms, code: None, message });
    }

    fn lose(&mut self, ms: u64, code: impl Into<String>, message: String) {
        self.steps.push(Step { name: self.next(), ok: false, ms, code: Some(code.into()), message: Some(message) });
    }

    fn next(&self) -> &'static str {
        STEPS[self.steps.len().min(STEPS.len() - 1)]
    }
}

/// Address of an agent.
#[derive(Clone, Debug)]
pub enum Line {
    /// SIP address of the agent.
    Sip(Box<Address>),
    /// Server of a WebSocket, a pipeline or a room.
    Server(Url),
}

/// Rules for finding an address: who looks names up, and which addresses may be connected to.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Looks up the hosts of SIP addresses.
    pub names: Resolver,
    /// Addresses that may be connected to.
    pub guard: Guard,
}

impl Default for Reach {
    /// Returns the rules of a command of the user's own: every address may be connected to.
    fn default() -> Reach {
        Reach { names: Resolver::new(&[]), guard: Guard::by(|_| true) }
    }
}

/// Places a call and returns the steps that it took; the call is over then. Where it was placed, its report comes too.
pub async fn check(
    engine: &Engine,
    clock: &Clock,
    line: &Line,
    reach: &Reach,
    placement: Placement,
) -> (Checked, Option<Box<CallReport>>) {
    let mut checked = connect(clock, line, reach).await;
    let Some(address) = checked.address.filter(|_| checked.steps.iter().all(|step| step.ok)) else {
        return (checked, None);
    };
    let report = call(engine, clock, placement, address, &mut checked).await;
    (checked, report)
}

/// Looks an address up, and connects to it where that is done by a connection. Returns the steps that it took.
pub async fn connect(clock: &Clock, line: &Line, reach: &Reach) -> Checked {
    let mut checked = Checked { is_unreachable: true, ..Checked::default() };
    let began = clock.now_ms();
    let (addresses, is_stream) = match timeout(OPENING, resolve(line, reach))
        .await
        .unwrap_or_else(|_| Err("no answer of the name server".to_owned()))
    {
        Ok(found) => found,
        Err(why) => {
            let hint = "check how the host is written, and the name servers of this machine";
            checked.lose(since(clock, began), "NOT_RESOLVED", format!("{why}: {hint}"));
            return checked;
        }
    };
    let list = addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ");
    checked.pass(since(clock, began), Some(list));
    let mut address = addresses[0];
    if is_stream {
        let began = clock.now_ms();
        let opened = timeout(OPENING, TcpStream::connect(&addresses[..])).await;
        if let Ok(Ok(stream)) = &opened {
            address = stream.peer_addr().unwrap_or(address);
        }
        let (code, why) = match opened {
            Ok(Ok(_)) => {
                checked.pass(since(clock, began), None);
                ("", String::new())
            }
            Ok(Err(error)) => ("NOT_CONNECTED", error.to_string()),
            Err(_) => ("NOT_CONNECTED", format!("no answer within {} s", OPENING.as_secs())),
        };
        if !code.is_empty() {
            checked.lose(since(clock, began), code, connect_hint(&why, address));
            return checked;
        }
    }
    checked.address = Some(address);
    checked
}

fn connect_hint(why: &str, address: SocketAddr) -> String {
    format!("{why}: check that the agent runs at {address} and that no firewall is before it")
}

fn since(clock: &Clock, began: i64) -> u64 {
    clock.now_ms().saturating_sub(began).max(0) as u64
}

/// Returns the addresses that are called, at least one, and whether they are reached by a connection.
async fn resolve(line: &Line, reach: &Reach) -> Result<(Vec<SocketAddr>, bool), String> {
    match line {
        Line::Sip(address) => {
            let hops = address.hops(&reach.names, &reach.guard).await.map_err(|fault| fault.to_string())?;
            let first = hops.first().ok_or("the host has no address")?;
            let is_same = |hop: &&Hop| hop.transport == first.transport;
            let addresses = hops.iter().filter(is_same).map(|hop| hop.address).collect();
            Ok((addresses, first.transport != Transport::Udp))
        }
        Line::Server(url) => {
            let host = url.host().ok_or("the address has no host")?;
            let port = url.port_or_known_default().ok_or("the address has no port")?;
            let found: Vec<IpAddr> = match &host {
                Host::Ipv4(address) => vec![(*address).into()],
                Host::Ipv6(address) => vec![(*address).into()],
                Host::Domain(name) => reach.guard.names(name).await.map_err(|error| format!("{name}: {error}"))?,
            };
            if found.is_empty() {
                return Err(format!("{host} has no address"));
            }
            let allowed = found.into_iter().filter(|address| reach.guard.allows(*address));
            let addresses: Vec<SocketAddr> = allowed.map(|address| SocketAddr::new(address, port)).collect();
            match addresses.is_empty() {
                true => Err(format!("{host} points to an address that is not allowed")),
                false => Ok((addresses, true)),
            }
        }
    }
}

/// Places the call, and adds its steps. Returns the report of its end.
async fn call(
    engine: &Engine,
    clock: &Clock,
    placement: Placement,
    address: SocketAddr,
    checked: &mut Checked,
) -> Option<Box<CallReport>> {
    let mut began = clock.now_ms();
    let mut handle = match engine.place(placement).await {
        Ok(handle) => handle,
        Err(refusal) => {
            // A fault of this side.
            checked.is_unreachable = false;
            checked.lose(0, "NOT_PLACED", refusal.to_string());
            return None;
        }
    };
    let mut wait = Duration::from_millis(u64::from(RINGING_MS)) + OPENING;
    let mut is_live = false;
    loop {
        let Ok(news) = timeout(wait, handle.news.recv()).await else { break };
        is_live |= matches!(news, Some(CallUpdate::Event(_)));
        match news {
            Some(CallUpdate::Event(entry)) => match &entry.what {
                EventKind::Ringing { .. } | EventKind::EarlyMedia { .. } if checked.steps.len() == 1 => {
                    checked.pass(since(clock, began), None);
                    began = clock.now_ms();
                }
                EventKind::Connected { .. } => {
                    answer(checked, since(clock, began));
                    began = clock.now_ms();
                    wait = SOUND;
                }
                what if checked.steps.len() == 3 && entry.side == Side::Agent && is_sound(what) => {
                    checked.pass((entry.sample / PER_MS).max(0) as u64, None);
                    break;
                }
                _ if checked.steps.len() == 3 => {
                    wait = SOUND.saturating_sub(Duration::from_millis(since(clock, began)))
                }
                _ => {}
            },
            Some(CallUpdate::Ended(report)) => {
                if !is_live {
                    read_timeline(checked, &report.timeline);
                }
                if !checked.is_ok() {
                    note_end(checked, since(clock, began), address, &report);
                }
                return Some(report);
            }
            Some(CallUpdate::Dispatched | CallUpdate::Connected(_)) => {}
            None => {
                checked.lose(since(clock, began), "LOST", "the call was lost on this side".to_owned());
                return None;
            }
        }
    }
    let report = hang_up(handle).await;
    if !checked.is_ok() {
        let packets = report.as_ref().map_or(0, |report| report.ending.quality.received_packets);
        silent(checked, since(clock, began), packets);
    }
    report
}

/// Hangs up, and returns the report of the call; `None` where it does not end in time.
async fn hang_up(mut handle: CallHandle) -> Option<Box<CallReport>> {
    handle.control.hangup(EndReason::ApiHangup);
    let ended = async {
        while let Some(news) = handle.news.recv().await {
            if let CallUpdate::Ended(report) = news {
                return Some(report);
            }
        }
        None
    };
    timeout(HANGING_UP, ended).await.ok().flatten()
}

/// Takes the steps from the events of a call that tells them at its end only, as calls in virtual time do.
fn read_timeline(checked: &mut Checked, timeline: &[TimelineEntry]) {
    let mut began = timeline.first().map_or(0, |entry| entry.sample);
    for entry in timeline {
        let ms = ((entry.sample - began) / PER_MS).max(0) as u64;
        match &entry.what {
            EventKind::Ringing { .. } | EventKind::EarlyMedia { .. } if checked.steps.len() == 1 => {
                checked.pass(ms, None);
                began = entry.sample;
            }
            EventKind::Connected { .. } => answer(checked, ms),
            what if checked.steps.len() == 3 && entry.side == Side::Agent && is_sound(what) => {
                return checked.pass((entry.sample / PER_MS).max(0) as u64, None);
            }
            _ => {}
        }
    }
}

/// Takes note of the answer. Where no ringing was told, it is what shows that the agent is reached.
fn answer(checked: &mut Checked, ms: u64) {
    if checked.steps.len() == 1 {
        checked.pass(ms, None);
        checked.pass(0, None);
    } else {
        checked.pass(ms, None);
    }
    checked.is_unreachable = false;
}

/// True for a sound of the other side.
fn is_sound(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::AgentSpeechStarted { .. } | EventKind::LineTone { .. } | EventKind::AnsweringMachine { .. }
    )
}

/// Takes note of the silence of an agent that has answered, or of one that did not answer in time.
fn silent(checked: &mut Checked, ms: u64, packets: u64) {
    if checked.steps.len() < 3 {
        return checked.lose(ms, "NO_ANSWER", "nobody answered in time: check that the agent takes calls".to_owned());
    }
    let why = match packets {
        0 => {
            "the agent answered and no packet of its sound came: check firewalls between both sides, and the media address it tells"
        }
        _ => {
            "the agent answered and sent silence: check its speech synthesizer, and whether it waits for the caller to speak first"
        }
    };
    checked.lose(ms, if packets == 0 { "NO_MEDIA" } else { "SILENT" }, why.to_owned());
}

/// Takes note of the end of a call before its last step.
fn note_end(checked: &mut Checked, ms: u64, address: SocketAddr, report: &CallReport) {
    let ending = &report.ending;
    if checked.steps.len() >= 3 {
        let why =
            format!("the call ended before a sound of the agent ({}): see the agent's own log", ending.reason.as_str());
        return checked.lose(ms, "ENDED", why);
    }
    let Failure { code, message, is_reached, is_declined } = failure(ending.remote.as_ref(), ending.reason.as_str());
    if checked.steps.len() == 1 && is_reached {
        checked.pass(ms, None);
    }
    checked.is_unreachable = !is_declined;
    let message = if is_reached { message } else { connect_hint(&message, address) };
    checked.lose(ms, code, message);
}

/// Failure of a call that was never answered.
struct Failure {
    code: String,
    message: String,
    /// True if something answered at the address.
    is_reached: bool,
    /// True if the agent itself declined.
    is_declined: bool,
}

fn failure(remote: Option<&RemoteEnd>, reason: &str) -> Failure {
    let Some(remote) = remote else {
        let message = format!("the call ended: {reason}: check that the agent takes calls");
        return Failure { code: "NO_ANSWER".to_owned(), message, is_reached: false, is_declined: false };
    };
    let status = remote.sip_code().or_else(|| remote.http_status());
    let is_declined = remote.sip_code().is_some_and(|code| DECLINES.contains(&code));
    let hint = match remote.kind {
        RemoteKind::AuthFailed => "check user and password",
        RemoteKind::NoMedia => "no codec of this side is taken: check the codecs of both sides",
        RemoteKind::NoKeys => "the encryption of the media was not agreed on: check whether the agent wants SRTP",
        RemoteKind::NoSocket => "this side could not open its socket: check --listen",
        RemoteKind::Unreachable => "check that the agent runs, and its address",
        _ if is_declined => "the agent is there and does not take the call now",
        _ if status == Some(404) => "nothing is known by this name there: check the user or path of the address",
        _ => "see the agent's own log",
    };
    let code = match (status, remote.kind) {
        (Some(status), _) => status.to_string(),
        (None, RemoteKind::AuthFailed) => "AUTH_FAILED".to_owned(),
        (None, RemoteKind::Unreachable | RemoteKind::NoSocket) => "UNREACHABLE".to_owned(),
        (None, _) => "NOT_ANSWERED".to_owned(),
    };
    let is_reached = status.is_some() || !matches!(remote.kind, RemoteKind::Unreachable | RemoteKind::NoSocket);
    // A text that asks what to check needs no hint.
    let hint = if remote.text.ends_with('?') { String::new() } else { format!(": {hint}") };
    Failure { code, message: format!("{}{hint}", remote.text), is_reached, is_declined }
}

#[cfg(test)]
mod tests {
    use ringer_media::call::EndDetail;

    use super::*;

    fn end(kind: RemoteKind, code: Option<u16>) -> RemoteEnd {
        let detail = EndDetail::Sip { code, q850_cause: None, retry_after: false };
        RemoteEnd { kind, detail, text: "told".to_owned() }
    }

    #[test]
    fn a_call_that_is_not_answered_tells_what_to_do() {
        for (kind, code, expect, hint, reached, declined) in [
            (RemoteKind::Refused, Some(404), "404", "told: nothing is known by this name", true, false),
            (RemoteKind::Refused, Some(486), "486", "told: the agent is there", true, true),
            (RemoteKind::AuthFailed, Some(401), "401", "told: check user and password", true, false),
            (RemoteKind::Unreachable, None, "UNREACHABLE", "told: check that the agent runs", false, false),
        ] {
            let found = failure(Some(&end(kind, code)), "");
            assert_eq!((found.code.as_str(), found.is_reached, found.is_declined), (expect, reached, declined));
            assert!(found.message.starts_with(hint), "{}", found.message);
        }
    }

    #[test]
    fn steps_come_in_their_order_and_end_at_the_first_that_fails() {
        let mut checked = Checked { is_unreachable: true, ..Checked::default() };
        checked.pass(2, Some("127.0.0.1:5080".to_owned()));
        answer(&mut checked, 30);
        assert!(!checked.is_unreachable && !checked.is_ok());
        let mut silent_one = checked.clone();
        silent(&mut silent_one, 15_000, 0);
        let last = silent_one.steps.last().expect("a step");
        assert_eq!((last.name, last.ok, last.code.as_deref()), ("first_sound", false, Some("NO_MEDIA")));
        checked.pass(700, None);
        assert!(checked.is_ok());
        let names: Vec<&str> = checked.steps.iter().map(|step| step.name).collect();
        assert_eq!(names, STEPS);
    }
}
